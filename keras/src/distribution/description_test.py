import doctest
import math
import os

import jax
import numpy as np
import pytest

import keras
from keras.src import backend
from keras.src import testing
from keras.src.distribution import description


def model_parallel(rules, sizes=(2, 4), kind="cpu"):
    devices = [f"{kind}:{i}" for i in range(math.prod(sizes))]
    mesh = keras.distribution.DeviceMesh(sizes, ("batch", "model"), devices)
    layouts = keras.distribution.LayoutMap(mesh)
    for rule, axes in rules.items():
        layouts[rule] = axes
    return keras.distribution.ModelParallel(layout_map=layouts)


def model(width=128):
    return keras.Sequential(
        [
            keras.Input((64,)),
            keras.layers.Dense(width, name="up"),
            keras.layers.Dense(64, use_bias=False, name="down"),
        ],
        name="mlp",
    )


RULES = {
    "mlp/up/kernel": ("batch", "model"),
    ".*down/kernel": ("model", None),
    "up/bias": ("model",),
}


@pytest.mark.skipif(backend.backend() == "jax", reason="JAX distributes.")
class DescribeOnOtherBackendsTest(testing.TestCase):
    def test_refuses_a_distribution(self):
        backend_name = backend.backend()
        with self.assertRaisesRegex(ValueError, f"The {backend_name} backend"):
            keras.distribution.describe(model(), model_parallel(RULES))

    def test_without_a_distribution(self):
        told = keras.distribution.describe(model(), print_fn=id)
        self.assertEqual(list(told.device_bytes), ["the default device"])


@pytest.mark.multi_device
@pytest.mark.skipif(backend.backend() != "jax", reason="JAX distributes.")
class DescribeTest(testing.TestCase):
    def describe(self, *args):
        self.text = []
        return keras.distribution.describe(*args, print_fn=self.text.append)

    def test_is_what_each_device_will_hold(self):
        with model_parallel(RULES).scope():
            with keras.StatelessScope(initialize_variables=False):
                planned = model()
            planned = self.describe(planned)
            built = model()
            self.assertEqual(self.describe(built), planned)
        held = {}
        for variable, told in zip(built.variables, planned.variables):
            self.assertEqual(told.path, variable.path)
            for shard in variable.value.addressable_shards:
                self.assertEqual(told.shard_bytes, shard.data.nbytes)
                device = f"cpu:{shard.device.id}"
                held[device] = held.get(device, 0) + shard.data.nbytes
        self.assertEqual(planned.device_bytes, held)

    def test_rules(self):
        distribution = model_parallel(RULES)
        with keras.StatelessScope(initialize_variables=False):
            planned = model()
        told = self.describe(planned, distribution)
        self.assertEqual(
            [one.rule for one in told.variables],
            ["mlp/up/kernel", None, ".*down/kernel"],
        )
        self.assertEqual(told.unmatched_variables, ["mlp/up/bias"])
        self.assertEqual(told.unused_rules, ["up/bias"])
        (text,) = self.text
        for words in ("('batch', 'model')", "mlp/up/bias", "cpu:7", "up/bias"):
            self.assertIn(words, text)

    def test_a_layout_of_its_own(self):
        mesh = jax.make_mesh((8,), ("x",))
        spec = jax.sharding.PartitionSpec(None, "x")
        layout = jax.sharding.NamedSharding(mesh, spec)
        variable = keras.Variable(np.zeros((3, 16)), layout=layout, name="own")
        told = self.describe([variable], model_parallel({"own": (None, None)}))
        (one,) = told.variables
        self.assertEqual((one.axes, one.rule), ((None, "x"), None))
        self.assertEqual(one.shard_bytes, 3 * 16 * 4 // 8)
        self.assertEqual(told.unmatched_variables, [])
        self.assertEqual(told.unused_rules, ["own"])

    def test_without_a_distribution(self):
        told = self.describe(model())
        self.assertEqual(list(told.device_bytes), ["the default device"])
        self.assertEqual(
            sum(told.device_bytes.values()), 4 * (64 * 128 + 128 + 128 * 64)
        )

    def test_optimizers(self):
        with model_parallel(RULES).scope():
            built = model()
            optimizer = keras.optimizers.Adam()
            optimizer.build(built.trainable_variables)
            told = self.describe(optimizer)
        sharded = [one for one in told.variables if any(one.axes)]
        # Two slots for each of two kernels.
        self.assertEqual(
            [one.rule for one in sharded],
            2 * ["mlp/up/kernel"] + 2 * [".*down/kernel"],
        )
        self.assertEqual(told.unused_rules, ["up/bias"])

    def test_devices_of_another_machine(self):
        rules = {".*kernel": ("batch", "model")}
        with keras.StatelessScope(initialize_variables=False):
            planned = model(width=64)
        told = self.describe(planned, model_parallel(rules, (16, 32), "tpu"))
        self.assertLen(told.device_bytes, 512)
        self.assertEqual(
            told.device_bytes["tpu:511"],
            4 * (64 * 64 // 512 + 64 + 64 * 64 // 512),
        )

    def test_errors(self):
        with self.assertRaisesRegex(ValueError, "build it first"):
            self.describe(keras.Sequential([keras.layers.Dense(2)]))
        with keras.StatelessScope(initialize_variables=False):
            planned = model(width=126)
        for axes, words in (
            (("batch", "model"), "126 cannot be split into the 4 .*'model'"),
            (("batch", None, None), "3 entries .* 2 dimensions"),
            (("batch", "batch"), "'batch' can shard one dimension only"),
        ):
            received = r".*path='mlp/up/kernel', shape=\(64, 126\).*model=4"
            with self.assertRaisesRegex(ValueError, words + received):
                self.describe(planned, model_parallel({".*up/kernel": axes}))

    def test_docstring(self):
        (test,) = doctest.DocTestFinder().find(
            description.describe, globs={"keras": keras}
        )
        self.assertGreater(len(test.examples), 5)
        runner = doctest.DocTestRunner()
        failed, _ = runner.run(test, out=os.devnull.join, clear_globs=False)
        self.assertEqual(failed, 0)
        # As it says, nothing is in memory.
        self.assertIsNone(test.globs["dense"].kernel._value)

    def test_paths_and_rules_stay_in_one_piece(self):
        rule = ".*" + "/".join(80 * ["(a|b)?"]) + ".*kernel"
        with keras.StatelessScope(initialize_variables=False):
            planned = keras.Sequential(
                [keras.Input((8,)), keras.layers.Dense(8)], name=100 * "long"
            )
        self.describe(planned, model_parallel({rule: (None, None)}))
        (row,) = [line for line in self.text[0].split("\n") if "(8, 8)" in line]
        self.assertIn(planned.variables[0].path, row)
