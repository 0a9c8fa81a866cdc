"""What is saved under one mesh is the same when loaded under another."""

import re

import numpy as np
import pytest

from keras.src import backend
from keras.src import layers
from keras.src import models
from keras.src import optimizers
from keras.src import saving
from keras.src.distribution import distribution_lib
from keras.src.saving.loading_testing import Files
from keras.src.saving.loading_testing import make_distribution

pytestmark = [
    pytest.mark.multi_device,
    pytest.mark.skipif(
        backend.backend() != "jax", reason="Other backends lay nothing out."
    ),
]

X = np.random.default_rng(0).normal(size=(8, 16)).astype("float32")
Y = np.random.default_rng(1).normal(size=(8, 16)).astype("float32")


def make_layers():
    return [
        layers.Input((16,)),
        layers.Dense(32, name="first"),
        layers.Dense(16, use_bias=False, name="second"),
    ]


def trained(use_ema=False):
    """A model with all the kinds of state that training makes."""
    normalization = layers.Normalization()
    normalization.adapt(X)
    model = models.Sequential(
        [
            layers.Input((16,)),
            normalization,
            layers.Dense(32, name="first"),
            layers.BatchNormalization(),
            layers.Dropout(0.3),
            layers.Dense(16, name="second"),
        ]
    )
    model.compile(
        optimizers.Adam(
            optimizers.schedules.ExponentialDecay(0.01, 3, 0.9),
            amsgrad=True,
            use_ema=use_ema,
            ema_overwrite_frequency=3 if use_ema else None,
        ),
        "mse",
    )
    model.fit(X, Y, epochs=2, batch_size=4, verbose=0)
    return model


def quantized(mode):
    def make():
        model = models.Sequential(make_layers())
        model.quantize(mode)
        return model

    return make


def with_lora(mode=None):
    def make():
        model = models.Sequential(make_layers())
        if mode is not None:
            model.quantize(mode)
        for layer in model.layers:
            layer.enable_lora(4)
            # It starts with zeros.
            layer.lora_kernel_b.assign(
                0.01 * np.ones(layer.lora_kernel_b.shape)
            )
        return model

    return make


KINDS = {
    "trained": trained,
    "moving averages": lambda: trained(use_ema=True),
    "int8": quantized("int8"),
    "int4": quantized("int4"),
    "float8": quantized("float8"),
    "LoRA": with_lora(),
    "int8 and LoRA": with_lora("int8"),
    "int4 and LoRA": with_lora("int4"),
}


def state(model):
    """The values that a file has, by the paths of their variables."""
    variables = list(model.variables)
    if getattr(model, "optimizer", None) is not None:
        variables += model.optimizer.variables
    # A model that is loaded is built with other paths. What seed generators
    # and metrics have, Keras does not save.
    return {
        re.sub(r"sequential(_\d+)?[/_]", "", variable.path): np.asarray(
            variable.value
        )
        for variable in variables
        if "seed_generator" not in variable.path
    }


def kernels(model, with_lora):
    """The kernels as they are, or with what LoRA adds, as they are saved."""
    values = {}
    for layer in model.layers:
        names = ("_kernel", "kernel_scale", "kernel_zero")
        parts = [getattr(layer, name, None) for name in names]
        if with_lora:
            parts = layer._get_kernel_with_merged_lora()
        for name, part in zip(names, parts):
            if part is not None:
                values[layer.name, name] = np.asarray(part)
    return values


def under(columns):
    distribution_lib.set_distribution(
        make_distribution(columns) if columns else None
    )


class StatesTest(Files):
    def check(self, kind):
        for saved_under in (None, 2):
            under(saved_under)
            model = KINDS[kind]()
            archive = self.saved(model, "a.keras")
            weights = self.saved(model, "a.weights.h5")
            for loaded_under in (None, 8):
                under(loaded_under)
                loaded = saving.load_model(archive)
                self.assert_same_state(kind, model, loaded)
                for variable in loaded.weights:
                    variable.assign(np.zeros(variable.shape))
                loaded.load_weights(weights)
                self.assert_same_state(kind, model, loaded)

    def assert_same_state(self, kind, model, loaded):
        expected, result = state(model), state(loaded)
        if "LoRA" in kind:
            expected = kernels(model, with_lora=True)
            result = kernels(loaded, with_lora=False)
        self.assertEqual(set(expected), set(result))
        for name, value in expected.items():
            self.assertEqual(value.dtype, result[name].dtype)
            np.testing.assert_array_equal(value, result[name], str(name))


for kind in KINDS:
    name = "test_" + kind.replace(" ", "_")
    setattr(StatesTest, name, lambda self, kind=kind: self.check(kind))
