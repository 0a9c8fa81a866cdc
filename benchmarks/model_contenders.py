"""Models to build, to be measured by `build.py`. They run on any Keras."""

import os

os.environ["KERAS_BACKEND"] = "jax"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"


def build(model, sharded):
    """Builds a model, by default on one device.

    Args:
        model: The name of a function below.
        sharded: Whether to shard over eight devices all that can be.
    """
    import jax

    import keras

    if sharded:
        _distribute(keras)

    def work():
        keras.utils.set_random_seed(1)
        built = globals()[model](keras)
        jax.block_until_ready([w.value for w in built.weights])
        return built

    return work


def count_programs(model, sharded):
    """Builds a model and returns how many programs that compiled."""
    import jax

    work = build(model, sharded)
    compiled = []

    def listen(event, duration, **kwargs):
        if event == "/jax/core/compile/backend_compile_duration":
            compiled.append(duration)

    jax.monitoring.register_event_duration_secs_listener(listen)
    work()
    return len(compiled)


def build_adam(layers, sharded):
    """Builds Adam's slots for equal layers of 16.8 MB each.

    Args:
        layers: The number of layers, an integer.
        sharded: As for `build`.
    """
    import jax

    import keras

    if sharded:
        _distribute(keras)
    model = keras.Sequential([keras.Input((2048,))])
    for _ in range(layers):
        model.add(keras.layers.Dense(2048, use_bias=False))
    jax.block_until_ready([w.value for w in model.weights])

    def work():
        optimizer = keras.optimizers.Adam()
        optimizer.build(model.trainable_variables)
        jax.block_until_ready([v.value for v in optimizer.variables])
        return optimizer

    return work


def dense_layers(layers, processes=1, process=0, coordinator=None):
    """Builds layers of 256 units in a layout, one device for each process.

    Args:
        layers: The number of layers, an integer.
        processes: The number of processes.
        process: Which of them this is.
        coordinator: The address for `jax.distributed.initialize`.
    """
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=1"
    import jax

    if processes > 1 and not jax.distributed.is_initialized():
        jax.distributed.initialize(coordinator, processes, process)
    import keras

    mesh = keras.distribution.DeviceMesh(
        (processes,), ["model"], keras.distribution.list_devices()
    )
    layouts = keras.distribution.LayoutMap(mesh)
    layouts[".*kernel"] = (None, "model")
    keras.distribution.set_distribution(
        keras.distribution.ModelParallel(layout_map=layouts)
    )

    def work():
        keras.utils.set_random_seed(1)  # The same in each process.
        built = [keras.layers.Dense(256) for _ in range(layers)]
        for layer in built:
            layer.build((None, 256))
        jax.block_until_ready([layer.kernel.value for layer in built])
        return built

    return work


def tiny(keras):
    return keras.Sequential([keras.Input((8,)), keras.layers.Dense(8)])


def efficientnet(keras):
    return keras.applications.EfficientNetB0(weights=None)


def resnet(keras):
    return keras.applications.ResNet50(weights=None)


def gpt_12(keras):
    return _gpt(keras, blocks=12, width=384, mixed=True)


def gpt_24(keras):
    return _gpt(keras, blocks=24, width=768, mixed=False)


def _gpt(keras, blocks, width, mixed):
    """A decoder; with `mixed`, each block has an inner width of its own."""
    tokens = keras.Input((64,), dtype="int32")
    x = keras.layers.Embedding(32_000, width)(tokens)
    x = x + keras.layers.Embedding(64, width)(keras.ops.arange(64))
    for i in range(blocks):
        inner = width * 4 - (64 * i if mixed else 0)
        y = keras.layers.LayerNormalization()(x)
        attention = keras.layers.MultiHeadAttention(8, width // 8)
        x = x + attention(y, y, use_causal_mask=True)
        y = keras.layers.LayerNormalization()(x)
        y = keras.layers.Dense(inner, activation="gelu")(y)
        x = x + keras.layers.Dense(width)(y)
    x = keras.layers.LayerNormalization()(x)
    return keras.Model(tokens, keras.layers.Dense(32_000)(x))


def _distribute(keras):
    devices = keras.distribution.list_devices()
    mesh = keras.distribution.DeviceMesh((1, 8), ("batch", "model"), devices)
    layouts = keras.distribution.LayoutMap(mesh)
    layouts[".*embeddings"] = ("model", None)
    layouts[".*(query|key|value)/kernel"] = (None, "model", None)
    layouts[".*attention_output/kernel"] = ("model", None, None)
    layouts[".*dense(_[0-9]*)?/kernel"] = (None, "model")
    keras.distribution.set_distribution(
        keras.distribution.ModelParallel(
            layout_map=layouts, batch_dim_name="batch"
        )
    )
