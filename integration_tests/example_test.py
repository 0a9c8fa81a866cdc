"""The example runs end to end, and the README shows what is so."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "born_sharded.py"
README = ROOT / "README.md"
DEVICES = 8

BUILD = """
from rich.progress import Progress

import born_sharded as example
import keras

keras.distribution.set_distribution(example.distribution())
size = example.LAYERS, example.WIDTH
example.measured_build(*size, Progress(disable=True))
"""

CHECK = """
embedding = keras.layers.Embedding(1024, 64)
embedding.build()
print(tuple(embedding.embeddings.value.sharding.spec))
"""


def run(*arguments, cwd=ROOT, **settings):
    """Runs Python without the settings that the tests have made for JAX."""
    strange = {"KERAS_BACKEND", "XLA_FLAGS"}
    plain = {k: v for k, v in os.environ.items() if k not in strange}
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env=plain | settings,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def integer(text):
    return int(text.replace(",", ""))


@pytest.fixture(scope="module")
def said():
    """What the example prints about a small model."""
    return run(EXAMPLE, "--layers", 2, "--width", 64)


def test_table_shows_each_device_its_parts(said):
    # The vocabulary is split over both axes of the mesh, a norm over none.
    assert re.search(r"tokens/embeddings .*\(model, batch\) +1,024,000 ", said)
    assert re.search(r"2 x .*_mlp_norm/beta .* replicated +256 ", said)

    rows = re.findall(r"^ *(\d+ x)? +(\S+/\S+) .* ([\d,]+) *$", said, re.M)
    assert len(rows) == 20
    sum_of_rows = sum(
        integer(count.rstrip(" x") or "1") * integer(each)
        for count, _, each in rows
    )
    totals = re.findall(r"all, on device (\d) +([\d,]+) *$", said, re.M)
    assert totals == [
        (str(device), f"{sum_of_rows:,}") for device in range(DEVICES)
    ]


def test_tells_what_the_build_took(said):
    built = re.search(r"Built ([\d,]+) parameters in [\d.]+ s\.", said)
    assert integer(built[1]) > 32_000 * 64
    peak = re.search(r"Peak memory of the build is ([\d.]+) of", said)
    assert float(peak[1]) > 0


def test_loss_falls(said):
    losses = re.findall(r"Step (\d): loss ([\d.]+)", said)
    assert [step for step, _ in losses] == ["1", "2", "3"]
    first, second, third = (float(loss) for _, loss in losses)
    assert first > second > third


def test_loads_what_it_saved(said):
    assert said.endswith("Loaded into a fresh model: equal outputs.\n")


def test_output_is_plain_where_there_is_no_terminal(said):
    assert "\x1b" not in said
    assert "\r" not in said


def test_default_size_is_built_without_copies():
    said = run("-c", BUILD, cwd=EXAMPLE.parent)
    built = re.search(r"Built ([\d,]+) parameters", said)
    assert integer(built[1]) >= 100_000_000
    peak = re.search(r"Peak memory of the build is ([\d.]+) of", said)
    # Twice the largest weight would be another quarter.
    assert float(peak[1]) < 1.25


def test_readme_shows_a_graft_as_it_is():
    """Both sides of the README's example: the graft, and its difference."""
    graft = block("python", "class RandomNormal")
    path = "keras/src/initializers/random_initializers.py"
    assert graft in (ROOT / path).read_text()

    shown = block("diff", "layout=None")
    difference = run("-m", "graft", "diff", cwd=ROOT)
    assert shown in difference[difference.index(f"+++ b/{path}\n") :]


def test_readme_lines_for_a_script_run(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(block("python", "LayoutMap") + CHECK)
    flags = f"--xla_force_host_platform_device_count={DEVICES}"
    assert "('model', None)" in run(script, XLA_FLAGS=flags)


def block(language, word):
    """Returns the README's one code block in a language that has a word."""
    blocks = re.findall(
        rf"^```{language}\n(.*?)^```$", README.read_text(), re.M | re.S
    )
    (found,) = [text for text in blocks if word in text]
    return found
