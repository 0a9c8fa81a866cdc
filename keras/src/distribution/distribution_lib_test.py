"""Grafts: errors about a rule name it."""


class LayoutMapTest:
    def test_errors_name_the_rule(self):
        layout_map = distribution_lib.LayoutMap(self.device_mesh)
        for key, layout in (
            (".*kernel", ["data"]),
            (".*kernel", ("unknown", None)),
            ("dense(/kernel", ("data", None)),
        ):
            with self.assertRaises(ValueError) as error:
                layout_map[key] = layout
            self.assertIn(f"key={key!r}", str(error.exception))
            self.assertLen(layout_map, 0)
