"""Ways to draw a large random array, to be measured by `draws.py`.

Each is made for `measure.measure`: it gets ready and returns the work. All of
`jax` use eight simulated devices, or one for each of several processes.
"""

import os

os.environ["KERAS_BACKEND"] = "jax"


def fork(op, dtype, shape, axes, processes=1, process=0, coordinator=None):
    """`keras.random` with a layout; `axes=None` is for no layout."""
    jax = _start(processes, process, coordinator)
    import keras

    draw = getattr(keras.random, op)
    sharding = _sharding(jax, axes)
    return lambda: draw(
        shape, dtype=dtype, seed=1, layout=sharding
    ).block_until_ready()


def raw_bits(shape, axes):
    """The bits that a float32 draw is made of, drawn in windows."""
    jax = _start()
    import numpy as np

    from keras.src.backend.jax import draws
    from keras.src.backend.jax import programs

    sharding = _sharding(jax, axes)
    key = np.array([1, 0], np.uint32)
    statics = (_bits, tuple(shape), np.dtype("uint32"), sharding)
    return lambda: programs.run(
        draws._windowed, statics, (key,), sharding
    ).block_until_ready()


def _bits(key, shape, dtype, rounded):
    import jax

    return jax.random.bits(key, shape, dtype)


def upstream_variable(op, dtype, shape, axes):
    """A variable with a built-in initializer, under `ModelParallel`."""
    jax = _start()
    import keras

    mesh = keras.distribution.DeviceMesh(
        (8,), ["model"], keras.distribution.list_devices()
    )
    layouts = keras.distribution.LayoutMap(mesh)
    layouts[".*weight"] = tuple(axes)
    keras.distribution.set_distribution(
        keras.distribution.ModelParallel(layout_map=layouts)
    )
    name = {"uniform": "random_uniform", "normal": "random_normal"}.get(op, op)

    def work():
        initializer = keras.initializers.get(name)
        variable = keras.Variable(initializer, shape, dtype, name="weight")
        return jax.block_until_ready(variable.value)

    return work


def upstream_layout(op, dtype, shape, axes):
    """A variable with an initializer that hands its layout to `jax.random`."""
    jax = _start()
    import keras

    draw = _jax_draw(jax, op)

    class WithLayout(keras.initializers.Initializer):
        def __call__(self, shape, dtype=None, layout=None):
            return draw(jax.random.key(1), shape, dtype, out_sharding=layout)

    sharding = _sharding(jax, axes)

    def work():
        variable = keras.Variable(
            WithLayout(), shape, dtype, layout=sharding, name="weight"
        )
        return jax.block_until_ready(variable.value)

    return work


def jax_jit(op, dtype, shape, axes):
    """`jax.jit` of the draw with `out_shardings`."""
    jax = _start()
    draw = _jax_draw(jax, op)
    program = jax.jit(
        lambda key: draw(key, shape, dtype),
        out_shardings=_sharding(jax, axes),
    )
    key = jax.random.key(1)
    return lambda: program(key).block_until_ready()


def torch_init(op, dtype, shape, axes):
    """`torch.nn.init` on all cores, unsharded."""
    import torch

    init = {
        "normal": torch.nn.init.normal_,
        "uniform": torch.nn.init.uniform_,
        "truncated_normal": torch.nn.init.trunc_normal_,
    }[op]
    return lambda: init(torch.empty(shape, dtype=getattr(torch, dtype)))


def numpy_generator(op, dtype, shape, axes):
    """NumPy's `Generator`, float32, which draws on one core."""
    import numpy as np

    generator = np.random.default_rng(1)
    draw = {
        "normal": generator.standard_normal,
        "uniform": generator.random,
    }[op]
    return lambda: draw(shape, dtype=dtype)


def many_shapes(count, sizes, axes, small=None):
    """Variables of as many shapes, each drawn for the first time.

    With `small`, the number of elements up to which the fork draws variables
    on the host, where those with more get a program of their own each.
    """
    jax = _start(devices=8 if axes else 1)
    import keras

    if small is not None:
        from keras.src.backend.jax import initialization

        initialization.SMALL = small

    if axes:
        mesh = keras.distribution.DeviceMesh(
            (8,), ["model"], keras.distribution.list_devices()
        )
        layouts = keras.distribution.LayoutMap(mesh)
        layouts[".*weight"] = tuple(axes)
        keras.distribution.set_distribution(
            keras.distribution.ModelParallel(layout_map=layouts)
        )
    first, last = sizes
    # Rows of 1024, so that no two shapes are the same and all can be split.
    step = (last - first) // count // 1024 // 8 * 8

    def work():
        values = []
        for i in range(count):
            variable = keras.Variable(
                keras.initializers.GlorotUniform(seed=i),
                (first // 1024 + i * step, 1024),
                "float32",
                name="weight",
            )
            values.append(variable.value)
        return jax.block_until_ready(values)

    return work


def repeated(op, size, times):
    """Calls `keras.random` again and again, without a layout."""
    _start(devices=1)
    import keras

    draw = getattr(keras.random, op)

    def work():
        for _ in range(times):
            draw((size,), seed=1).block_until_ready()

    work()
    return work


def _start(processes=1, process=0, coordinator=None, devices=8):
    if processes > 1:
        devices = 1
    flag = f"--xla_force_host_platform_device_count={devices}"
    os.environ["XLA_FLAGS"] = flag
    import jax

    if processes > 1 and not jax.distributed.is_initialized():
        jax.distributed.initialize(coordinator, processes, process)
    return jax


def _sharding(jax, axes):
    if axes is None:
        return None
    mesh = jax.sharding.Mesh(jax.devices(), ("model",))
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes))


def _jax_draw(jax, op):
    if op == "truncated_normal":
        return lambda key, *args, **kwargs: jax.random.truncated_normal(
            key, -2.0, 2.0, *args, **kwargs
        )
    return getattr(jax.random, op)
