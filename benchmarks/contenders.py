"""Ways to make a large array of random numbers in shards, to be measured.

Each is made for `measure.measure`. All use eight simulated devices and wait
for the result.
"""

import os

os.environ["KERAS_BACKEND"] = "jax"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

AXES = ("model", None)


def keras_initializer(shape):
    """An initializer called with a layout, which upstream's do not take."""
    import jax

    import keras

    layout = keras.distribution.TensorLayout(AXES, _mesh())

    def work():
        initializer = keras.initializers.RandomNormal(seed=1)
        return jax.block_until_ready(initializer(shape, layout=layout))

    return work


def keras_embedding(shape):
    """A layer under `ModelParallel`, the same lines for every Keras."""
    import jax

    import keras

    layouts = keras.distribution.LayoutMap(_mesh())
    layouts[".*embeddings"] = AXES
    keras.distribution.set_distribution(
        keras.distribution.ModelParallel(layout_map=layouts)
    )

    def work():
        layer = keras.layers.Embedding(
            *shape, embeddings_initializer="random_normal"
        )
        layer.build()
        return jax.block_until_ready(layer.embeddings.value)

    return work


def _mesh():
    import keras

    devices = keras.distribution.list_devices()
    return keras.distribution.DeviceMesh((8,), ("model",), devices)
