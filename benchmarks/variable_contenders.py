"""Variables to make, to be measured by `variables.py`, on any Keras."""

import os

os.environ["KERAS_BACKEND"] = "jax"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"


def variable(initializer, shape):
    """Makes one variable, its first dimension sharded over eight devices.

    Args:
        initializer: The name of one below.
        shape: The shape of the variable.
    """
    import jax

    import keras

    mesh = keras.distribution.DeviceMesh(
        (8,), ["model"], keras.distribution.list_devices()
    )
    layout = keras.distribution.TensorLayout(("model", None), mesh)
    make = initializers(jax, keras)[initializer]

    def work():
        made = keras.Variable(make(), shape, "float32", layout=layout)
        return jax.block_until_ready(made.value)

    return work


def initializers(jax, keras):
    """By name, functions that make an initializer."""

    class DrawnByKeras(keras.initializers.Initializer):
        def __call__(self, shape, dtype=None):
            return keras.random.normal(shape, stddev=0.02, dtype=dtype, seed=1)

    class DrawnByJax(keras.initializers.Initializer):
        def __call__(self, shape, dtype=None):
            return 0.02 * jax.random.normal(jax.random.key(1), shape, dtype)

    built_in = keras.initializers
    row = 4096 * [0.5]
    return {
        "Zeros": built_in.Zeros,
        "Ones": built_in.Ones,
        "Constant of a number": lambda: built_in.Constant(0.5),
        "Constant of a row": lambda: built_in.Constant(row),
        "Identity": built_in.Identity,
        "GlorotUniform": lambda: built_in.GlorotUniform(seed=1),
        "TruncatedNormal": lambda: built_in.TruncatedNormal(seed=1),
        "Orthogonal": lambda: built_in.Orthogonal(seed=1),
        "own, by keras.random": DrawnByKeras,
        "own, by jax.random": DrawnByJax,
    }
