"""One decoder's weights, made in shards, to be measured by `curves.py`.

Each contender is made for `measure.measure_processes`: it gets ready and
returns the work. A contender of JAX uses `devices` simulated devices in one
process, or one in each of several; PyTorch has no simulated devices. All draw
from a normal distribution, float32, and wait for the result.
"""

import os

os.environ["KERAS_BACKEND"] = "jax"

BLOCKS = 4
STDDEV = 0.02
ROWS, COLUMNS = ("model", None), (None, "model")


def weights(mebibytes):
    """The weights of a decoder of four blocks.

    Attention and MLP kernels make up three quarters of it and the embedding
    the rest, about as in language models of a billion parameters.

    Args:
        mebibytes: The size of all float32 weights together, an integer.

    Returns:
        A dict of `(shape, axes)` for each name. `axes` says which dimension is
        sharded over `"model"`; it can be split among eight devices.
    """
    elements = mebibytes * 2**18
    # A block has 12 x width^2 elements. Real widths are multiples of 64; that
    # is too coarse for a warm-up.
    step = 64 if mebibytes >= 64 else 8
    width = step * round((elements * 3 / 4 / 12 / BLOCKS) ** 0.5 / step)
    rest = elements - BLOCKS * 12 * width**2
    made = {"embedding": ((rest // width // 8 * 8, width), ROWS)}
    for i in range(BLOCKS):
        for name in ("query", "key", "value"):
            made[f"block_{i}_{name}"] = ((width, width), COLUMNS)
        made[f"block_{i}_output"] = ((width, width), ROWS)
        made[f"block_{i}_up"] = ((width, 4 * width), COLUMNS)
        made[f"block_{i}_down"] = ((4 * width, width), ROWS)
    return made


def keras_model(mebibytes, devices, processes, process, coordinator):
    """A layer under `ModelParallel`, the same lines for every Keras."""
    jax = _start(devices, processes, process, coordinator)
    import keras

    shapes = weights(mebibytes)
    layouts = keras.distribution.LayoutMap(_keras_mesh(jax, keras))
    for name, (_, axes) in shapes.items():
        layouts[f".*{name}$"] = axes
    keras.distribution.set_distribution(
        keras.distribution.ModelParallel(layout_map=layouts)
    )

    class Decoder(keras.layers.Layer):
        def build(self):
            for name, (shape, _) in shapes.items():
                initializer = keras.initializers.RandomNormal(stddev=STDDEV)
                self.add_weight(shape, initializer, name=name)

    def work():
        keras.utils.set_random_seed(1)  # The same in each process.
        decoder = Decoder()
        decoder.build()
        return jax.block_until_ready([w.value for w in decoder.weights])

    return work


def upstream_layout(mebibytes, devices, processes, process, coordinator):
    """Variables whose initializer hands its layout to `jax.random`."""
    jax = _start(devices, processes, process, coordinator)
    import keras

    mesh = _keras_mesh(jax, keras)

    class WithLayout(keras.initializers.Initializer):
        def __init__(self, seed):
            self.key = jax.random.key(seed)

        def __call__(self, shape, dtype=None, layout=None):
            return STDDEV * jax.random.normal(
                self.key, shape, dtype, out_sharding=layout
            )

    def work():
        values = []
        for i, (shape, axes) in enumerate(weights(mebibytes).values()):
            layout = keras.distribution.TensorLayout(axes, mesh)
            variable = keras.Variable(
                WithLayout(i), shape, "float32", layout=layout
            )
            values.append(variable.value)
        return jax.block_until_ready(values)

    return work


def jax_jit(mebibytes, devices, processes, process, coordinator):
    """`jax.jit` of all the draws with `out_shardings`."""
    jax = _start(devices, processes, process, coordinator)
    mesh = jax.sharding.Mesh(jax.devices(), ("model",))
    shapes = weights(mebibytes)
    shardings = {
        name: jax.sharding.NamedSharding(
            mesh, jax.sharding.PartitionSpec(*axes)
        )
        for name, (_, axes) in shapes.items()
    }

    def init(key):
        keys = jax.random.split(key, len(shapes))
        return {
            name: STDDEV * jax.random.normal(key, shape)
            for key, (name, (shape, _)) in zip(keys, shapes.items())
        }

    program = jax.jit(init, out_shardings=shardings)
    key = jax.random.key(1)
    return lambda: jax.block_until_ready(program(key))


def flax_nnx(mebibytes, devices, processes, process, coordinator):
    """A module with annotated parameters, made under `nnx.jit`.

    Since Flax 0.12, a parameter that is annotated with a sharding constrains
    its value to it, so `nnx.jit` of the constructor is all that is needed.
    """
    jax = _start(devices, processes, process, coordinator)
    from flax import nnx

    class Decoder(nnx.Module):
        def __init__(self, rngs):
            initializer = nnx.initializers.normal(STDDEV)
            for name, (shape, axes) in weights(mebibytes).items():
                init = nnx.with_partitioning(initializer, axes)
                setattr(self, name, nnx.Param(init(rngs.params(), shape)))

    mesh = jax.make_mesh(
        (len(jax.devices()),),
        ("model",),
        axis_types=(jax.sharding.AxisType.Auto,),
    )
    create = nnx.jit(lambda: Decoder(nnx.Rngs(1)))

    def work():
        with jax.set_mesh(mesh):
            decoder = create()
        return jax.block_until_ready(nnx.state(decoder, nnx.Param))

    return work


def torch_dtensor(mebibytes, devices, processes, process, coordinator):
    """A module made on the meta device, then filled as `DTensor`s by gloo.

    On CPU, every process draws from its own generator, so that the values
    depend on the number of processes.
    """
    import torch
    from torch import distributed
    from torch.distributed import tensor

    if not distributed.is_initialized():
        distributed.init_process_group(
            "gloo",
            init_method=f"tcp://{coordinator}",
            world_size=processes,
            rank=process,
        )
    mesh = distributed.device_mesh.init_device_mesh("cpu", (processes,))
    torch.manual_seed(1 + process)
    shapes = weights(mebibytes)

    def work():
        module = torch.nn.ParameterDict()
        for name, (shape, axes) in shapes.items():
            whole = torch.empty(shape, device="meta")
            shard = tensor.Shard(axes.index("model"))
            sharded = tensor.distribute_tensor(whole, mesh, [shard])
            module[name] = torch.nn.Parameter(sharded)
        module.to_empty(device="cpu")
        for parameter in module.values():
            torch.nn.init.normal_(parameter, std=STDDEV)
        return module

    return work


def _start(devices, processes, process, coordinator):
    flag = f"--xla_force_host_platform_device_count={devices}"
    os.environ["XLA_FLAGS"] = flag
    import jax

    if processes > 1 and not jax.distributed.is_initialized():
        jax.distributed.initialize(coordinator, processes, process)
    return jax


def _keras_mesh(jax, keras):
    count = len(jax.devices())
    devices = keras.distribution.list_devices()
    return keras.distribution.DeviceMesh((count,), ["model"], devices)
