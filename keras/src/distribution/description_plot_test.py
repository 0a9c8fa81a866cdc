import contextlib
import doctest
import os
import re
import sys
from unittest import mock

import matplotlib
import pytest

import keras
from keras.src import backend
from keras.src import testing
from keras.src.distribution.description import DistributionDescription
from keras.src.distribution.description import VariableDescription

RULE = r"mlp_\d+/(up|down)$^_{2}"  # Signs of TeX are to be left alone.


def describe(layers=2):
    """Two devices: kernels in halves, biases whole, one more on the second."""
    variables = []
    for i in range(layers):
        kernel = (f"mlp_{i}/kernel", (512, 1024), "float32", (None, "model"))
        bias = (f"mlp_{i}/bias", (256,), "float32", (None,))
        variables += [
            VariableDescription(*kernel, RULE, 2**20, ("tpu:0", "tpu:1")),
            VariableDescription(*bias, None, 2**10, ("tpu:0", "tpu:1")),
        ]
    own = ("own", (3, 2**20), "bfloat16", (None, None), None, 3 * 2**21)
    variables.append(VariableDescription(*own, ("tpu:1",)))
    whole = layers * (2**20 + 2**10)
    device_bytes = {"tpu:0": whole, "tpu:1": whole + 3 * 2**21}
    return DistributionDescription(variables, device_bytes, [], ["none.*"])


class PlotTest(testing.TestCase):
    def text(self, description, **options):
        """What is written in a picture, line by line."""
        file = os.path.join(self.get_temp_dir(), "picture.svg")
        with matplotlib.rc_context({"svg.fonttype": "none"}):
            self.assertIsNone(description.plot(file, **options))
        with open(file) as svg:
            text = re.findall(r"<text[^>]*>(.*?)</text>", svg.read())
        text = [line.replace("&gt;", ">") for line in text]
        return [re.sub("(\xa0| )+", " ", line).strip() for line in text]

    def test_text(self):
        text = self.text(describe())
        for line in (
            "variable shape layout rule",
            rf"2 x mlp_*/kernel (512, 1024) (None, 'model') {RULE}",
            "2 x mlp_*/bias (256,) (None,)",
            "own (3, 1048576) (None, None)",
            "2.00 MB",  # Both kernels.
            "2.00 KB",
            "6.00 MB",
            "on each of its devices",
            "in all, on each of these devices",
            "tpu:0",
            "tpu:1",
            "8.00 MB",
            "none.*",
        ):
            self.assertIn(line, text)
        self.assertEqual(text.count("2.00 MB"), 2)  # And all of `tpu:0`.

    def test_devices_that_hold_the_same_share_a_row(self):
        description = describe(1)
        description.variables.pop()
        text = self.text(description)
        self.assertIn("tpu:0 to tpu:1 (2 devices)", text)
        self.assertIn("mlp_0/kernel", " ".join(text))

    def test_columns(self):
        text = self.text(describe(), show_dtype=True, show_rules=False)
        self.assertIn("variable shape dtype layout", text)
        self.assertIn("own (3, 1048576) bfloat16 (None, None)", text)
        self.assertNotIn("none.*", text)

    def test_same_colors_in_both_charts(self):
        figures = []
        with mock.patch(
            "matplotlib.figure.Figure.savefig",
            lambda figure, *args, **kwargs: figures.append(figure),
        ):
            describe().plot("picture.svg")
        upper, lower = figures[0].axes
        ((kernels, biases, own),) = upper.containers
        self.assertEqual(biases.get_facecolor(), own.get_facecolor())
        self.assertNotEqual(kernels.get_facecolor(), own.get_facecolor())
        bars = [bar for (bar,) in lower.containers]
        self.assertEqual(
            [bar.get_facecolor() for bar in bars],
            [kernels.get_facecolor(), own.get_facecolor()] * 2,
        )
        ends = [bar.get_x() + bar.get_width() for bar in bars[1::2]]
        self.assertEqual(ends, list(describe().device_bytes.values()))

    def test_png(self):
        file = os.path.join(self.get_temp_dir(), "picture.png")
        ipython = mock.Mock()
        for module, image in ((None, None), (ipython, ipython.display.Image())):
            with mock.patch.dict(sys.modules, {"IPython": module}):
                self.assertIs(describe().plot(file, dpi=50), image)
            with open(file, "rb") as png:
                self.assertEqual(png.read(4), b"\x89PNG")
        ipython.display.Image.assert_called_with(filename=file)

    def test_errors(self):
        for file in ("picture", "picture.txt"):
            with self.assertRaisesRegex(
                ValueError, f"'png'.*to_file={re.escape(file)}"
            ):
                describe().plot(file)
        with mock.patch.dict(sys.modules, {"matplotlib.figure": None}):
            with self.assertRaisesRegex(ImportError, "pip install matplotlib"):
                describe().plot("picture.png")

    @pytest.mark.skipif(backend.backend() != "jax", reason="JAX only")
    def test_docstring(self):
        (test,) = doctest.DocTestFinder().find(
            DistributionDescription.plot, globs={"keras": keras}
        )
        with contextlib.chdir(self.get_temp_dir()):
            failed, _ = doctest.DocTestRunner().run(test)
            self.assertEqual(failed, 0)
            self.assertEqual(os.listdir(), ["dense.png"])
