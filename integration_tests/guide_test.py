"""The guide runs, on one process and on two, and docs/guide.md is of a run."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
WRITE = ROOT / "examples" / "guide_write.py"
GUIDE = ROOT / "docs" / "guide.md"

OUTPUT = re.compile(r"^```text\n(.*?)^```$\n", re.M | re.S)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The guide of a small model."""
    folder = tmp_path_factory.mktemp("guide")
    with socket.socket() as free:
        free.bind(("localhost", 0))
        coordinator = f"localhost:{free.getsockname()[1]}"
    arguments = {
        "--to": folder / "guide.md",
        "--folder": folder,
        "--layers": 2,
        "--width": 64,
        "--coordinator": coordinator,
    }
    strange = {"KERAS_BACKEND", "XLA_FLAGS"}
    done = subprocess.run(
        [
            sys.executable,
            WRITE,
            *(str(v) for pair in arguments.items() for v in pair),
        ],
        env={k: v for k, v in os.environ.items() if k not in strange},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert os.listdir(folder) == ["guide.md"]
    return (folder / "guide.md").read_text()


def halves(guide):
    """What the guide shows of one process, and of two."""
    return guide.split("## On two processes")


def test_starts_without_keras(small):
    first = OUTPUT.search(small)[1]
    assert "ModuleNotFoundError: No module named 'keras'" in first


def test_two_processes_do_what_one_does(small):
    losses = [re.findall(r"loss ([\d.]+),", half) for half in halves(small)]
    assert len(losses[0]) == 3
    assert losses[0] == losses[1]
    assert losses[0] == sorted(losses[0], key=float, reverse=True)


def test_each_mesh_has_its_shards(small):
    for half in halves(small):
        shapes = re.findall(r"^on cpu:[01] (.*)$", half, re.M)
        assert shapes == 2 * ["(64, 32)"] + 2 * ["(32, 64)"]


def test_loaded_model_says_the_same(small):
    for half in halves(small):
        found = re.search(r"largest output (.*), largest difference (.*)", half)
        largest, difference = map(float, found.groups())
        assert difference < 1e-5 * largest


def test_description_shows_one_block(small):
    for half in halves(small):
        assert re.search(r"block_0_mlp_up/kernel +\(64, 256\) ", half)
        assert "block_1_mlp" not in half


def test_guide_is_that_of_the_script(small):
    guide = GUIDE.read_text()
    assert OUTPUT.sub("", guide) == OUTPUT.sub("", small)
    for half in halves(guide):
        parameters = re.search(r"([\d,]+) parameters, peak", half)[1]
        assert int(parameters.replace(",", "")) > 1e9
    # That is how much memory it says to need.
    peaks = re.findall(r"peak so far ([\d.]+) GB", guide)
    assert max(map(float, peaks)) < 15.5
