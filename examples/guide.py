"""
# A decoder of a billion parameters, from `ImportError` to two processes

This guide builds a decoder whose weights are born sharded, trains it for a few
steps, saves it, and loads it on another mesh: first on eight devices of one
process, then on two processes, and in the end on hosts with TPUs or GPUs. One
CPU stands in for all devices, so it runs anywhere with 16 GB of memory, and 4.1
GB in the folder for temporary files, or in that of `--folder`: a billion
parameters take as much in float32, and what a step of training needs besides is
in the peaks below. Seconds are those of two CPU cores.

The guide is made of a script, which a clone of this repository has:

```bash
python examples/guide.py                         # a billion parameters
python examples/guide.py --layers 2 --width 256  # ten million
```

`examples/guide_write.py` runs it and puts below each piece of code what that
has printed.

## Install it

This is Python where nothing is installed, which `-IS` makes sure of:

```text
$ python -IS -c "import keras"
```

One command installs this Keras and JAX, in Python 3.11 or newer. The address
is that of this repository, as you would clone it:

```bash
pip install "keras[jax] @ git+https://HOST/OWNER/REPOSITORY"
```

## Devices

The backend is chosen before Keras is imported. JAX then has to know how many
devices one CPU is to stand in for, and, before it looks for devices, whether
there are other processes. Here there is only one.
"""

import argparse
import os
import re
import resource
import sys
import tempfile
import time
from pathlib import Path

os.environ["KERAS_BACKEND"] = "jax"

import jax
import numpy as np
from jax.experimental import multihost_utils

import keras

parser = argparse.ArgumentParser()
parser.add_argument("--layers", type=int, default=19)
parser.add_argument("--width", type=int, default=2048)
parser.add_argument("--processes", type=int, default=1)
parser.add_argument("--process", type=int, default=0)
parser.add_argument("--coordinator", default="localhost:8476")
parser.add_argument("--folder", type=Path, default=tempfile.gettempdir())
options = parser.parse_args()

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 8 // options.processes)
if options.processes > 1:
    jax.distributed.initialize(
        options.coordinator, options.processes, options.process
    )
if options.process > 0:
    sys.stdout = open(os.devnull, "w")  # One process tells it all.

print("Keras", keras.__version__, "on JAX", jax.__version__)
devices = keras.distribution.list_devices()
print(len(devices), "devices:", *devices)


"""
## What goes where

A mesh gives the devices rows and columns with names. A `LayoutMap` says which
axis of the mesh splits which dimension of a weight. A rule is a regular
expression for the whole path of a variable; what no rule matches, each device
has all of.

With all devices in one row, the axis `batch` is of size 1 and splits nothing.
The rules name it all the same, so that they serve other meshes too.
"""


def model_parallel(rows):
    """Splits large weights over both axes of a mesh."""
    mesh = keras.distribution.DeviceMesh(
        (rows, len(devices) // rows), ("batch", "model"), devices
    )
    layouts = keras.distribution.LayoutMap(mesh)
    layouts["tokens/embeddings"] = ("model", "batch")
    layouts[".*(query|key|value)/kernel"] = ("batch", "model", None)
    layouts[".*(query|key|value)/bias"] = ("model", None)
    layouts[".*attention_output/kernel"] = ("model", None, "batch")
    layouts[".*mlp_up/kernel"] = ("batch", "model")
    layouts[".*mlp_up/bias"] = ("model",)
    layouts[".*mlp_down/kernel"] = ("model", "batch")
    return keras.distribution.ModelParallel(
        layout_map=layouts, batch_dim_name="batch"
    )


one_row = model_parallel(rows=1)
keras.distribution.set_distribution(one_row)


"""
## The model

It has nothing about devices in it. (Causal attention tells positions apart
well enough for this guide, so there is no embedding of positions.)
"""

VOCABULARY, LENGTH, BATCH, HEADS = 32_000, 16, 8, 16


def decoder_block(x, name):
    """Attends to earlier positions, then applies two dense layers."""
    width = x.shape[-1]
    y = keras.layers.LayerNormalization(name=f"{name}_attention_norm")(x)
    attention = keras.layers.MultiHeadAttention(
        HEADS, width // HEADS, name=f"{name}_attention"
    )
    x = keras.layers.Add()([x, attention(y, y, use_causal_mask=True)])
    y = keras.layers.LayerNormalization(name=f"{name}_mlp_norm")(x)
    y = keras.layers.Dense(4 * width, "gelu", name=f"{name}_mlp_up")(y)
    y = keras.layers.Dense(width, name=f"{name}_mlp_down")(y)
    return keras.layers.Add()([x, y])


def decoder(layers, width):
    inputs = keras.Input((LENGTH,), dtype="int32")
    tokens = keras.layers.ReversibleEmbedding(VOCABULARY, width, name="tokens")
    x = tokens(inputs)
    for i in range(layers):
        x = decoder_block(x, f"block_{i}")
    x = keras.layers.LayerNormalization(name="norm")(x)
    return keras.Model(inputs, tokens(x, reverse=True), name="decoder")


"""
## See that it fits

In a `keras.StatelessScope` a model is built without values: shapes, paths and
layouts are there, memory is not touched. `keras.distribution.describe` tells
what each device is going to hold, which rule says so, which variables have no
rule, and which rules no variable. Its MB are 2**20 bytes. `print_fn` gets its
text; here it leaves out all blocks but the first.
"""


def first_block_only(text):
    print(re.sub(r" *block_[1-9].*\n", "", text))


def peak():
    """The most memory that this process has held so far, in GB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


keras.utils.set_random_seed(0)
with keras.StatelessScope(initialize_variables=False):
    model = decoder(options.layers, options.width)
description = keras.distribution.describe(model, print_fn=first_block_only)
print(f"\n{model.count_params():,} parameters, peak so far {peak():.1f} GB")


"""
`description.plot("decoder.png")` draws the same, if matplotlib is installed.

## Initialize it

Values are there as soon as they are read. (Without `initialize_variables=False`
the scope would have made them at its end.) Each device draws its own part of
each weight, so nothing is held twice: the peak is about the size of the model.
"""

start = time.perf_counter()
jax.block_until_ready([variable.value for variable in model.variables])
print(f"{time.perf_counter() - start:.1f} s, peak so far {peak():.1f} GB")

kernel = model.get_layer("block_0_mlp_up").kernel
print("whole:", kernel.shape)
for shard in kernel.value.addressable_shards[:2]:
    print("on", shard.device, shard.data.shape)


"""
## Train it

Sequences that count up, each by a number of its own. Each process passes those
rows of the batch that its devices have; where all devices are in one row of the
mesh that is all of them. SGD keeps no state, so that what a step needs is the
weights, their gradients, and little else. Adam would need twice the weights
more.
"""

rng = np.random.default_rng(0)
first, step = rng.integers(1, 100, (2, BATCH, 1))
sequences = first + step * np.arange(LENGTH + 1)
x, y = sequences[:, :-1].astype("int32"), sequences[:, 1:].astype("int32")

model.compile(
    optimizer=keras.optimizers.SGD(0.1),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
)
for number in range(1, 4):
    start = time.perf_counter()
    loss = float(model.train_on_batch(x, y))
    seconds = time.perf_counter() - start
    print(f"step {number}: loss {loss:.4f}, {seconds:.1f} s")
print(f"peak so far {peak():.1f} GB")


"""
The first step compiles the program.

## Save it

All processes call `save`, and one of them writes, one weight at a time. (Where
every weight is replicated, call it in one process.) A `.keras` file is put
together in memory if the weights take less than half of what is free, which is
why the peak grows here; `model.save_weights("decoder.weights.h5")` writes to
the disk at once. Both have the state of a compiled optimizer too.
"""

start = time.perf_counter()
path = options.folder / "decoder.keras"
model.save(path)
print(f"{path.stat().st_size / 1e9:.2f} GB in", end=" ")
print(f"{time.perf_counter() - start:.1f} s, peak so far {peak():.1f} GB")


def outputs(model, distribution):
    """What the model says of the batch, as a NumPy array in each process."""
    layout = keras.distribution.TensorLayout(
        ("batch", None), distribution.device_mesh
    )
    rows = keras.distribution.distribute_tensor(x, layout)
    state = [
        [variable.value for variable in variables]
        for variables in (
            model.trainable_variables,
            model.non_trainable_variables,
        )
    ]
    # One program, where `model(rows)` would run each op by itself.
    logits, _ = jax.jit(model.stateless_call)(*state, rows)
    return multihost_utils.process_allgather(logits, tiled=True)


before = outputs(model, one_row)
del model, kernel, shard
keras.utils.clear_session()


"""
## Load it on another mesh

Two rows of four devices. A file knows no layouts: each weight is read straight
into that of the current distribution, by each process only its own part.
`clear_session` has forgotten the distribution too, so it is set anew.
"""

two_rows = model_parallel(rows=2)
keras.distribution.set_distribution(two_rows)
start = time.perf_counter()
model = keras.saving.load_model(path)
print(f"{time.perf_counter() - start:.1f} s, peak so far {peak():.1f} GB")

kernel = model.get_layer("block_0_mlp_up").kernel
for shard in kernel.value.addressable_shards[:2]:
    print("on", shard.device, shard.data.shape)

after = outputs(model, two_rows)
difference = np.abs(after - before).max()
print(f"largest output {np.abs(before).max():.3f}", end=", ")
print(f"largest difference {difference:.1e}")
if difference > 1e-3:
    sys.exit("The loaded model says something else.")
if options.process == 0:
    path.unlink()


"""
The outputs differ in the last bits, for on another mesh sums are split in
another way.

## On two processes

The same script. Each process has four of the eight devices, of which
`jax.distributed.initialize`, at its top, makes one mesh. It is told how many
processes there are, which of them this is, and where the first listens. Seconds
and memory are those of one process. `grep` leaves out what XLA's library for
talk between CPUs says when it is connected.

```text
$ { python examples/guide.py --processes 2 --process 1 &
    python examples/guide.py --processes 2; wait; } | grep -v "peer ranks"
```

The losses are those of one process, since a weight has the same values however
many devices and processes draw it.

## On TPUs or GPUs

- Install the JAX of the device, `pip install "jax[tpu]"` or `"jax[cuda13]"`,
  and leave out the two lines with `jax.config.update`. The script's two rows of
  devices need an even number of them.
- Start the script once on each host. On Cloud TPUs, under Slurm and under Open
  MPI `jax.distributed.initialize()` needs no arguments; elsewhere it takes the
  address of the first host, the number of hosts, and which of them it is on.
  It comes before everything that looks for devices.
- `list_devices()` has the devices of all hosts. Let the axis that has the most
  to send, `model`, be the devices of one host, which are next to each other in
  that list on most machines (`jax.experimental.mesh_utils` knows the others),
  and `batch` the hosts: `rows` is then the number of hosts. Each process passes
  to `fit` only its own rows of the batch, and `auto_shard_dataset=False` to the
  distribution.
- `keras.distribution.describe` needs none of these devices' memory. So try
  rules and meshes on a laptop first: the mesh can name devices that are not
  there, such as `[f"tpu:{i}" for i in range(256)]`. What it tells is what
  weights take. Adam takes twice as much again, gradients once, and activations
  grow with the batch.
- `keras.config.set_dtype_policy("mixed_bfloat16")` keeps weights in float32 and
  computes in bfloat16, which these devices are made for.
- Save to a folder that all hosts see. One of them writes, and each reads its
  own parts.
"""
