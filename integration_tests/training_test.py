"""A small transformer trains as with upstream's Keras, sharded or not."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from graft.upstream import locate

ROOT = Path(__file__).resolve().parent.parent

SCRIPT = """
import json
import os
import sys

sharded, folder = sys.argv[1] == "sharded", sys.argv[2]

import keras
import numpy as np
from keras import layers

if sharded:
    mesh = keras.distribution.DeviceMesh(
        (2, 4), ["batch", "model"], keras.distribution.list_devices()
    )
    layouts = keras.distribution.LayoutMap(mesh)
    layouts[".*embeddings"] = ("model", None)
    layouts[".*(query|key|value).kernel"] = (None, "model", None)
    layouts[".*up.kernel"] = (None, "model")
    layouts[".*down.kernel"] = ("model", None)
    keras.distribution.set_distribution(
        keras.distribution.ModelParallel(
            layout_map=layouts, batch_dim_name="batch"
        )
    )


def make_model():
    keras.utils.set_random_seed(11)
    tokens = keras.Input((12,), dtype="int32")
    x = layers.Embedding(64, 32)(tokens)
    for i in range(2):
        attention = layers.MultiHeadAttention(4, 8, dropout=0.1)
        x = layers.LayerNormalization()(x + attention(x, x))
        y = layers.Dense(64, activation="gelu", name=f"{i}_up")(x)
        y = layers.Dense(32, name=f"{i}_down")(y)
        x = layers.LayerNormalization()(x + y)
    model = keras.Model(tokens, layers.Dense(64)(x))
    model.compile(
        keras.optimizers.Adam(1e-2),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=True,
    )
    return model


class Losses(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.values = []

    def on_train_batch_end(self, batch, logs):
        self.values.append(logs["loss"])


rng = np.random.default_rng(0)
x = rng.integers(0, 64, (160, 12))
y = (x + 1) % 64
model = make_model()
losses = Losses()
model.fit(
    x, y, batch_size=16, epochs=2, shuffle=False, verbose=0, callbacks=[losses]
)
path = os.path.join(folder, "model.keras")
model.save(path)
loaded = keras.saving.load_model(path)
result = {
    "losses": losses.values,
    "evaluated": model.evaluate(x, y, verbose=0),
    "predicted": model.predict(x[:4], verbose=0).tolist(),
    "loaded": loaded.evaluate(x, y, verbose=0),
    "version": keras.__version__,
}
print(json.dumps(result))
"""


def run(folder, how, keras_folder=None):
    environment = dict(os.environ)
    if keras_folder is not None:
        environment["PYTHONPATH"] = str(keras_folder)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, how, str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("how", ["sharded", "unsharded"])
def test_losses_are_those_of_upstream(tmp_path, how):
    ours = run(tmp_path, how)
    theirs = run(tmp_path, how, locate(ROOT))
    assert ours["version"] != theirs["version"]
    assert len(ours["losses"]) == 20
    assert ours["losses"][-1] < 0.9 * ours["losses"][0]
    # Sums over devices may be taken in any order. All else is the same.
    rtol, atol = (1e-5, 1e-6) if how == "sharded" else (0, 0)
    for figure in ("losses", "evaluated", "predicted"):
        np.testing.assert_allclose(
            ours[figure], theirs[figure], rtol, atol, err_msg=figure
        )
    assert ours["loaded"] == ours["evaluated"]
