"""A decoder of more than 100 M parameters whose weights are born sharded.

Run it by `bash shell/demo.sh`, or with any Python that has this Keras:

    python examples/born_sharded.py

One CPU stands in for eight devices. On hosts with eight TPUs or GPUs of their
own, `distribution` and all that follows stays as it is.
"""

import argparse
import collections
import os
import re
import resource
import sys
import tempfile
import time
from pathlib import Path

# Keras and JAX read these when they are imported.
os.environ.setdefault("KERAS_BACKEND", "jax")
if "host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = " ".join(
        [
            os.environ.get("XLA_FLAGS", ""),
            "--xla_force_host_platform_device_count=8",
        ]
    )

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn
from rich.progress import Progress
from rich.progress import TextColumn
from rich.progress import TimeElapsedColumn
from rich.table import Table

import keras

LAYERS = 12
WIDTH = 768
HEADS = 8
VOCABULARY = 32_000
LENGTH = 32
BATCH = 8
STEPS = 3


def distribution():
    """Splits large weights over all devices, along both axes of a mesh."""
    devices = keras.distribution.list_devices()
    rows = 1 if len(devices) % 2 else 2
    mesh = keras.distribution.DeviceMesh(
        (rows, len(devices) // rows), ("batch", "model"), devices
    )
    layouts = keras.distribution.LayoutMap(mesh)
    # A rule is a regular expression for whole paths of variables. What no rule
    # matches is small here, and each device has all of it.
    layouts["tokens/embeddings"] = ("model", "batch")
    layouts[".*attention/(query|key|value)/kernel"] = ("batch", "model", None)
    layouts[".*attention/(query|key|value)/bias"] = ("model", None)
    layouts[".*attention/attention_output/kernel"] = ("model", None, "batch")
    layouts[".*mlp_up/kernel"] = ("batch", "model")
    layouts[".*mlp_up/bias"] = ("model",)
    layouts[".*mlp_down/kernel"] = ("model", "batch")
    return keras.distribution.ModelParallel(
        layout_map=layouts, batch_dim_name="batch"
    )


class PositionEmbedding(keras.layers.Layer):
    """Adds a trained vector to each position."""

    def build(self, input_shape):
        self.embeddings = self.add_weight(
            shape=input_shape[1:], initializer="uniform", name="embeddings"
        )

    def call(self, x):
        return x + self.embeddings


def decoder_block(x, name):
    """Attends to earlier positions, then applies two dense layers."""
    width = x.shape[-1]
    y = keras.layers.LayerNormalization(name=f"{name}_attention_norm")(x)
    y = keras.layers.MultiHeadAttention(
        HEADS, width // HEADS, name=f"{name}_attention"
    )(y, y, use_causal_mask=True)
    x = keras.layers.Add()([x, y])
    y = keras.layers.LayerNormalization(name=f"{name}_mlp_norm")(x)
    y = keras.layers.Dense(4 * width, "gelu", name=f"{name}_mlp_up")(y)
    y = keras.layers.Dense(width, name=f"{name}_mlp_down")(y)
    return keras.layers.Add()([x, y])


def build_decoder(layers, width, progress):
    """Builds the model. Each device draws its own part of each weight."""
    task = progress.add_task("Building", total=layers)
    inputs = keras.Input((LENGTH,), dtype="int32")
    tokens = keras.layers.ReversibleEmbedding(VOCABULARY, width, name="tokens")
    x = PositionEmbedding(name="positions")(tokens(inputs))
    for i in range(layers):
        x = decoder_block(x, f"block_{i}")
        progress.advance(task)
    x = keras.layers.LayerNormalization(name="norm")(x)
    model = keras.Model(inputs, tokens(x, reverse=True))
    for variable in model.variables:
        variable.value.block_until_ready()  # JAX works in the background.
    progress.remove_task(task)
    return model


def resident_bytes():
    """Returns the memory that this process holds, now and at its peak."""
    status = Path("/proc/self/status")
    if not status.exists():  # macOS tells the peak only, and in bytes.
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak, peak
    text = status.read_text()
    now, peak = (
        1024 * int(re.search(rf"{field}:\s+(\d+) kB", text)[1])
        for field in ("VmRSS", "VmHWM")
    )
    return now, peak


def measured_build(layers, width, progress):
    """Builds the model and prints what that took."""
    # Starts what JAX starts once, whatever the size of the model.
    keras.layers.Dense(8).build((None, 8))
    before, _ = resident_bytes()
    start = time.perf_counter()
    model = build_decoder(layers, width, progress)
    seconds = time.perf_counter() - start
    _, peak = resident_bytes()

    on_device = bytes_on_devices(model.variables)
    size = on_device.total()
    progress.print(table_of(model, on_device))
    progress.print(
        f"Built {model.count_params():,} parameters in {seconds:.1f} s.\n"
        f"Peak memory of the build is {(peak - before) / size:.2f} of the "
        f"model's final size ({decimal(peak - before)} / {decimal(size)})."
    )
    return model


def bytes_on_devices(variables):
    """Returns a `Counter` of the bytes that each device holds."""
    on_device = collections.Counter()
    for variable in variables:
        for shard in variable.value.addressable_shards:
            on_device[shard.device.id] += shard.data.nbytes
    return on_device


def table_of(model, on_device):
    """Shows where the variables are. Blocks that are alike share rows."""
    alike = collections.defaultdict(list)
    for variable in model.variables:
        name = re.sub(r"block_\d+_", "block_*_", variable.path)
        axes = tuple(variable.value.sharding.spec)
        layout = str(axes).replace("'", "") if any(axes) else "replicated"
        alike[name, str(variable.shape), layout].append(variable)

    table = Table(box=SIMPLE_HEAD)
    table.add_column("", justify="right")
    table.add_column("variable", overflow="fold")
    table.add_column("shape")
    table.add_column("layout")
    table.add_column("bytes on\neach device", justify="right")
    for row, variables in alike.items():
        count = f"{len(variables)} x" if len(variables) > 1 else ""
        on_each = set(bytes_on_devices(variables[:1]).values())
        table.add_row(count, *row, " or ".join(f"{n:,}" for n in on_each))
    table.add_section()
    for device, total in sorted(on_device.items()):
        table.add_row("", f"all, on device {device}", "", "", f"{total:,}")
    return table


def next_token_task():
    """Returns sequences that each count up by a number of their own."""
    rng = np.random.default_rng(0)
    start, step = rng.integers(1, 100, (2, BATCH, 1))
    sequences = (start + step * np.arange(LENGTH + 1)) % VOCABULARY
    return sequences[:, :-1].astype("int32"), sequences[:, 1:].astype("int32")


def train(model, x, y, progress):
    """Takes a few steps and prints the loss at each."""
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    task = progress.add_task("Training", total=STEPS)
    for step in range(STEPS):
        start = time.perf_counter()
        loss = float(model.train_on_batch(x, y))
        seconds = time.perf_counter() - start
        progress.print(f"Step {step + 1}: loss {loss:.3f} ({seconds:.1f} s)")
        progress.advance(task)
    progress.remove_task(task)


def save_and_load(model, fresh, x, progress):
    """Loads a model's weights into another and compares their outputs."""
    task = progress.add_task("Saving", total=None)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "decoder.weights.h5"
        model.save_weights(path)
        size = decimal(path.stat().st_size)
        progress.print(f"Saved {size}, the optimizer's state included.")
        progress.update(task, description="Loading")
        fresh.load_weights(path)
    progress.update(task, description="Comparing outputs")
    # Calling a model runs a program for each op. On a busy machine, too many
    # of them can wait for each other's devices, which XLA simulates on a CPU.
    np.testing.assert_array_equal(
        fresh.predict_on_batch(x), model.predict_on_batch(x)
    )
    progress.remove_task(task)
    progress.print("Loaded into a fresh model: equal outputs.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=LAYERS)
    parser.add_argument("--width", type=int, default=WIDTH)
    options = parser.parse_args()
    size = (options.layers, options.width)
    console = Console(width=None if sys.stdout.isatty() else 108)
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()

    keras.utils.set_random_seed(0)
    keras.distribution.set_distribution(distribution())
    with Progress(
        *columns,
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        model = measured_build(*size, progress)
        x, y = next_token_task()
        train(model, x, y, progress)
        fresh = build_decoder(*size, progress)
        save_and_load(model, fresh, x, progress)


if __name__ == "__main__":
    main()
