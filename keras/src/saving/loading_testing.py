"""Models and files that the tests of loading share."""

import os

import numpy as np

from keras.src import layers
from keras.src import models
from keras.src import testing
from keras.src.distribution import distribution_lib


def make_distribution(columns=8, axes=(None, "model")):
    devices = distribution_lib.DeviceMesh(
        (8 // columns, columns), ["batch", "model"]
    )
    layout_map = distribution_lib.LayoutMap(devices)
    layout_map[".*kernel"] = axes
    layout_map[".*embeddings"] = axes
    return distribution_lib.ModelParallel(
        layout_map=layout_map, batch_dim_name="batch"
    )


def make_model(units=16, dtype=None):
    model = models.Sequential(
        [
            layers.Input((8,), dtype="int32"),
            layers.Embedding(32, 16, dtype=dtype),
            layers.Dense(units, dtype=dtype),
            layers.BatchNormalization(dtype=dtype),
            layers.Dense(8, name="last", dtype=dtype),
        ]
    )
    model.compile("adam", "mse")
    model.optimizer.build(model.trainable_variables)
    return model


def randomize(model):
    rng = np.random.default_rng(0)
    for variable in model.variables + model.optimizer.variables:
        if variable.ndim:
            variable.assign(rng.normal(size=variable.shape))


def values(model):
    variables = model.weights + model.optimizer.variables
    return [np.asarray(variable.value) for variable in variables]


class Files(testing.TestCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(distribution_lib.set_distribution, None)

    def path(self, name):
        return os.path.join(self.get_temp_dir(), name)

    def saved(self, model, name, **kwargs):
        path = self.path(name)
        if name.endswith(".keras"):
            model.save(path)
        else:
            model.save_weights(path, **kwargs)
        return path

    def assert_same(self, first, second):
        self.assertEqual(len(first), len(second))
        for a, b in zip(first, second):
            np.testing.assert_array_equal(a, b)
