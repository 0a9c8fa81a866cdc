"""Every layer with weights is born in its layout, with the same values.

Each is built twice from one seed: under a distribution that shards everything
divisible, and without one. So are optimizers, metrics and seed generators.

`KERAS_NNX_ENABLED=true` runs these tests on NNX variables.
"""

import functools
import inspect
import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import keras
from keras import distribution
from keras import layers
from keras import metrics
from keras import optimizers

IS_NNX = os.environ.get("KERAS_NNX_ENABLED") == "true"
ROOT = Path(__file__).resolve().parent.parent
ALSO_WITH_NNX = [
    "keras/src/backend/jax/tracing_test.py",
    "keras/src/initializers",
]
BATCH = 8


def quantized(layer, mode):
    def make():
        made = layer()
        made.after_build = lambda: made.quantize(mode)
        return made

    return make


def with_lora(layer, mode=None):
    def make():
        made = layer()

        def after_build():
            made.enable_lora(4)
            if mode:
                made.quantize(mode)

        made.after_build = after_build
        return made

    return make


def dense(**kwargs):
    return lambda: layers.Dense(32, **kwargs)


def einsum_dense(**kwargs):
    return lambda: layers.EinsumDense(
        "abc,cde->abde", (None, 4, 8), bias_axes="de", **kwargs
    )


def embedding(**kwargs):
    return lambda: layers.Embedding(64, 16, **kwargs)


def reversible_embedding(**kwargs):
    return lambda: layers.ReversibleEmbedding(
        64, 16, tie_weights=False, **kwargs
    )


# What makes a layer, and the shapes of its inputs without the batch.
VECTOR, TOKENS, SEQUENCE = [(16,)], [(12,)], [(12, 16)]
IMAGE, VOLUME = [(8, 8, 16)], [(8, 8, 8, 4)]
LAYERS = {
    "Dense": (dense(), VECTOR),
    "EinsumDense": (einsum_dense(), SEQUENCE),
    "Embedding": (embedding(), TOKENS),
    "ReversibleEmbedding": (reversible_embedding(), TOKENS),
    "PReLU": (layers.PReLU, VECTOR),
    "Conv1D": (lambda: layers.Conv1D(8, 3), SEQUENCE),
    "Conv2D": (lambda: layers.Conv2D(8, 3), IMAGE),
    "Conv3D": (lambda: layers.Conv3D(8, 3), VOLUME),
    "Conv1DTranspose": (lambda: layers.Conv1DTranspose(8, 3), SEQUENCE),
    "Conv2DTranspose": (lambda: layers.Conv2DTranspose(8, 3), IMAGE),
    "Conv3DTranspose": (lambda: layers.Conv3DTranspose(8, 3), VOLUME),
    "DepthwiseConv1D": (lambda: layers.DepthwiseConv1D(3), SEQUENCE),
    "DepthwiseConv2D": (lambda: layers.DepthwiseConv2D(3), IMAGE),
    "SeparableConv1D": (lambda: layers.SeparableConv1D(8, 3), SEQUENCE),
    "SeparableConv2D": (lambda: layers.SeparableConv2D(8, 3), IMAGE),
    "SimpleRNN": (lambda: layers.SimpleRNN(8), SEQUENCE),
    "GRU": (lambda: layers.GRU(8, dropout=0.1), SEQUENCE),
    "LSTM": (lambda: layers.LSTM(8, recurrent_dropout=0.1), SEQUENCE),
    "RNN of SimpleRNNCell": (
        lambda: layers.RNN(layers.SimpleRNNCell(8)),
        SEQUENCE,
    ),
    "StackedRNNCells of GRUCell and LSTMCell": (
        lambda: layers.RNN([layers.GRUCell(8), layers.LSTMCell(8)]),
        SEQUENCE,
    ),
    "Bidirectional": (
        lambda: layers.Bidirectional(layers.LSTM(8, dropout=0.1)),
        SEQUENCE,
    ),
    "TimeDistributed": (
        lambda: layers.TimeDistributed(layers.Dense(8)),
        SEQUENCE,
    ),
    "ConvLSTM1D": (lambda: layers.ConvLSTM1D(8, 3), [(4, 8, 4)]),
    "ConvLSTM2D": (lambda: layers.ConvLSTM2D(8, 3), [(4, 8, 8, 4)]),
    "ConvLSTM3D": (lambda: layers.ConvLSTM3D(8, 3), [(4, 8, 8, 8, 4)]),
    "MultiHeadAttention": (
        lambda: layers.MultiHeadAttention(4, 8, dropout=0.1),
        2 * SEQUENCE,
    ),
    "GroupQueryAttention": (
        lambda: layers.GroupQueryAttention(8, 4, 2, dropout=0.1),
        2 * SEQUENCE,
    ),
    "Attention": (
        lambda: layers.Attention(use_scale=True, score_mode="concat"),
        None,
    ),
    "AdditiveAttention": (lambda: layers.AdditiveAttention(), None),
    "BatchNormalization": (layers.BatchNormalization, IMAGE),
    "LayerNormalization": (layers.LayerNormalization, SEQUENCE),
    "GroupNormalization": (lambda: layers.GroupNormalization(4), IMAGE),
    "RMSNormalization": (layers.RMSNormalization, SEQUENCE),
    "SpectralNormalization": (
        lambda: layers.SpectralNormalization(layers.Dense(8)),
        VECTOR,
    ),
    "Normalization": (layers.Normalization, VECTOR),
    "STFTSpectrogram": (
        lambda: layers.STFTSpectrogram(
            mode="stft", frame_length=16, frame_step=8, fft_length=16
        ),
        [(64, 1)],
    ),
    "JaxLayer": (
        lambda: layers.JaxLayer(
            lambda params, inputs: inputs @ params["w"] + params["b"],
            lambda rng, inputs: {
                "w": jax.random.normal(rng, (16, 24)) * 0.3 + 1,
                "b": np.ones((24,), "float32"),
            },
        ),
        VECTOR,
    ),
    "Dense, orthogonal": (dense(kernel_initializer="orthogonal"), VECTOR),
    "Dense, bfloat16": (dense(dtype="bfloat16"), VECTOR),
    "Dense, function": (
        dense(
            kernel_initializer=lambda shape, dtype: (
                keras.random.normal(shape, dtype=dtype) * 0.3 + 1
            )
        ),
        VECTOR,
    ),
}
for name, layer, shapes in (
    ("Dense", dense, VECTOR),
    ("EinsumDense", einsum_dense, SEQUENCE),
    ("Embedding", embedding, TOKENS),
    ("ReversibleEmbedding", reversible_embedding, TOKENS),
):
    for mode in ("int8", "int4"):
        LAYERS[f"{name}, {mode}"] = quantized(layer(), mode), shapes
        LAYERS[f"{name}, {mode} policy"] = (
            layer(dtype=f"{mode}_from_mixed_bfloat16"),
            shapes,
        )
    if "Dense" in name:
        LAYERS[f"{name}, float8"] = layer(dtype="float8_from_float32"), shapes
    LAYERS[f"{name}, LoRA"] = with_lora(layer()), shapes
    LAYERS[f"{name}, LoRA and int8"] = with_lora(layer(), "int8"), shapes
for rank, name in ((1, "Conv1D"), (2, "Conv2D"), (3, "Conv3D")):
    LAYERS[f"{name}, LoRA"] = with_lora(LAYERS[name][0]), LAYERS[name][1]


class EverythingDivisible(distribution.ModelParallel):
    """Shards each dimension that a mesh axis divides, large ones first."""

    def __init__(self):
        mesh = distribution.DeviceMesh((2, 4), ("batch", "model"))
        super().__init__(layout_map=distribution.LayoutMap(mesh))

    def get_variable_layout(self, variable):
        if getattr(variable, "_layout", None) is not None:
            return variable._layout
        return distribution.TensorLayout(self.axes(variable), self.device_mesh)

    def axes(self, variable):
        shape = variable.shape
        axes = [None] * len(shape)
        if "seed_generator_state" in variable.path:
            return axes  # JAX takes no key whose words are apart.
        for axis, parts in (("model", 4), ("batch", 2)):
            free = [i for i, used in enumerate(axes) if used is None]
            fits = [i for i in free if shape[i] and shape[i] % parts == 0]
            if fits:
                axes[max(fits, key=lambda i: shape[i])] = axis
        return axes


def built(make, shapes):
    layer = make()
    if shapes is None:  # Inputs in a list.
        layer.build(2 * [(BATCH, 8, 16)])
    else:
        dtype = "int32" if shapes is TOKENS else "float32"
        layer(*[keras.Input(s, BATCH, dtype=dtype) for s in shapes])
    if hasattr(layer, "after_build"):
        layer.after_build()
    return layer


def variables_of(thing):
    """All variables, with those of seed generators."""
    if isinstance(thing, keras.Layer):
        return thing.variables
    return list(thing.variables)


def assert_born_alike(make):
    """Compares the variables of what is made in a layout and without one."""
    keras.utils.clear_session()
    keras.utils.set_random_seed(11)
    wanted = variables_of(make())
    assert wanted
    keras.utils.clear_session()
    keras.utils.set_random_seed(11)
    everything = EverythingDivisible()
    with everything.scope():
        variables = variables_of(make())
    assert [v.path for v in variables] == [v.path for v in wanted]
    for variable, want in zip(variables, wanted):
        assert_born(variable, want, everything)


def assert_born(variable, want, everything):
    value, axes = variable.value, everything.axes(variable)
    layout = distribution.TensorLayout(axes, everything.device_mesh)
    sharding = layout.backend_layout
    assert value.sharding.is_equivalent_to(sharding, value.ndim), variable.path
    shard_shape = sharding.shard_shape(value.shape)
    assert len(value.addressable_shards) == 8
    for shard in value.addressable_shards:
        assert shard.data.shape == shard_shape, variable.path
    assert value.dtype == want.value.dtype, variable.path
    np.testing.assert_array_equal(
        np.asarray(value), np.asarray(want.value), err_msg=variable.path
    )


@functools.cache
def source_of(module):
    return inspect.getsource(sys.modules[module])


def classes_with_weights():
    """The public layers of which some class of their own adds weights."""
    names = set()
    for name, cls in vars(layers).items():
        if not inspect.isclass(cls) or not issubclass(cls, keras.Layer):
            continue
        own = [c for c in cls.__mro__ if issubclass(c, keras.Layer)]
        own = own[: own.index(keras.Layer)]
        if any("self.add_weight(" in source_of(c.__module__) for c in own):
            names.add(cls.__name__)
    return names


def test_no_layer_is_missing():
    told = " ".join(LAYERS)
    missing = {name for name in classes_with_weights() if name not in told}
    assert not missing - {"FlaxLayer"}  # A JaxLayer for modules of Flax.


@pytest.mark.multi_device
@pytest.mark.parametrize("name", LAYERS)
def test_layer(name):
    if name == "JaxLayer":
        pytest.importorskip("tensorflow")  # It wants it even so.
        if IS_NNX:
            pytest.skip("Upstream's takes NNX's arrays for variables.")
    make, shapes = LAYERS[name]
    assert_born_alike(lambda: built(make, shapes))


def built_optimizer(make):
    model = keras.Sequential(
        [keras.Input((16,)), layers.Dense(8), layers.Dense(3)]
    )
    optimizer = make()
    optimizer.build(model.trainable_variables)
    return optimizer


ACCUMULATION = {"gradient_accumulation_steps": 2}
OPTIMIZERS = {
    "SGD": lambda: optimizers.SGD(momentum=0.9),
    "RMSprop": lambda: optimizers.RMSprop(momentum=0.9, centered=True),
    "Adam": lambda: optimizers.Adam(amsgrad=True),
    "AdamW": lambda: optimizers.AdamW(),
    "Adadelta": lambda: optimizers.Adadelta(),
    "Adagrad": lambda: optimizers.Adagrad(initial_accumulator_value=0.3),
    "Adamax": lambda: optimizers.Adamax(),
    "Adafactor": lambda: optimizers.Adafactor(),
    "Ftrl": lambda: optimizers.Ftrl(initial_accumulator_value=0.3),
    "Nadam": lambda: optimizers.Nadam(),
    "Lion": lambda: optimizers.Lion(),
    "Lamb": lambda: optimizers.Lamb(),
    "Muon": lambda: optimizers.Muon(),
    "LossScaleOptimizer": lambda: optimizers.LossScaleOptimizer(
        optimizers.Adam()
    ),
    "MultiOptimizer": lambda: optimizers.MultiOptimizer(
        optimizers.OptimizerMap(
            optimizers.Adam(), {".*bias": optimizers.SGD(momentum=0.9)}
        )
    ),
    "ScheduleFreeAdamW": lambda: optimizers.ScheduleFreeAdamW(),
    "Adam, EMA": lambda: optimizers.Adam(use_ema=True),
    "Adam, accumulation": lambda: optimizers.Adam(**ACCUMULATION),
    "Adam, everything": lambda: optimizers.LossScaleOptimizer(
        optimizers.Adam(use_ema=True, amsgrad=True, **ACCUMULATION)
    ),
}


def test_no_optimizer_is_missing():
    classes = {
        cls.__name__
        for cls in vars(optimizers).values()
        if inspect.isclass(cls) and issubclass(cls, optimizers.Optimizer)
    }
    assert not {n for n in classes - {"Optimizer"} if n not in OPTIMIZERS}


@pytest.mark.multi_device
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizer(name):
    assert_born_alike(lambda: built_optimizer(OPTIMIZERS[name]))


@pytest.mark.multi_device
@pytest.mark.parametrize(
    "make",
    [
        metrics.Mean,
        metrics.BinaryAccuracy,
        metrics.AUC,
        lambda: metrics.MeanIoU(8),
        lambda: metrics.PrecisionAtRecall(0.5),
    ],
)
def test_metric(make):
    assert_born_alike(make)


@pytest.mark.multi_device
def test_seed_generators():
    assert_born_alike(Seeds)


class Seeds(keras.Layer):
    """Seed generators of all kinds."""

    def __init__(self):
        super().__init__()
        self.seeded = keras.random.SeedGenerator(3)
        self.unseeded = keras.random.SeedGenerator()


@pytest.mark.multi_device
@pytest.mark.skipif(IS_NNX, reason="runs it")
def test_nnx():
    pytest.importorskip("flax")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", __file__, *ALSO_WITH_NNX],
        cwd=ROOT,
        env={**os.environ, "KERAS_NNX_ENABLED": "true"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
