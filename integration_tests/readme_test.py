"""The README's script runs, and prints what the README says."""

import os
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"


def blocks(language, section):
    text = README.read_text().split(f"\n## {section}\n")[1].split("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def test_description_is_that_of_the_script():
    (script,) = blocks("python", "What you add to a script")
    (planned,) = blocks("python", "See that it fits before it is there")
    (printed,) = blocks("text", "See that it fits before it is there")
    done = subprocess.run(
        [sys.executable, "-c", script + planned],
        env=os.environ
        | {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    lines = [line.rstrip() for line in done.stdout.strip("\n").splitlines()]
    assert "\n".join(lines) == printed.rstrip()
