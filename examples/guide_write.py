"""Writes docs/guide.md: examples/guide.py, and what that prints as it runs.

    python examples/guide_write.py [--to FILE] [arguments of guide.py]

A string that stands by itself in the guide is text, all between two such
strings is a piece of code. In a text, a block that starts with `$ ` is a
command, which is run too, with the same arguments if it runs the guide.
"""

import argparse
import ast
import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GUIDE = ROOT / "examples" / "guide.py"
NOTE = "<!-- examples/guide_write.py wrote this. Change examples/guide.py. -->"
COMMAND = re.compile(r"^```text\n\$ (.*?)\n```$", re.M | re.S)


def pieces(source):
    """Yields (whether it is text, the lines) for each piece of a guide."""
    lines = source.splitlines()
    start = 0
    for node in ast.parse(source).body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield False, "\n".join(lines[start : node.lineno - 1])
            yield True, node.value.value
            start = node.end_lineno
    yield False, "\n".join(lines[start:])


def block(language, content):
    content = re.sub(" +$", "", content.strip("\n"), flags=re.M)
    return f"```{language}\n{content}\n```"


def run_commands(text, arguments):
    """Runs the commands in a text, and puts below each what it prints."""
    return COMMAND.sub(lambda found: run_command(found[1], arguments), text)


def run_command(command, arguments):
    script = str(GUIDE.relative_to(ROOT))
    command = command.replace(script, shlex.join([script, *arguments]))
    done = subprocess.run(
        ["bash", "-c", f'python() {{ "{sys.executable}" "$@"; }}\n{command}'],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    print(done.stdout, file=sys.stderr)
    return block("text", f"$ {command}\n{done.stdout}")


def run_code(code, names):
    """Returns blocks with a piece of code and what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    print(printed.getvalue(), file=sys.stderr)
    blocks = [block("python", code)]
    if printed.getvalue():
        blocks.append(block("text", printed.getvalue()))
    return "\n\n".join(blocks)


def write(file, arguments):
    # What XLA has to say about the machine would be in the middle of outputs.
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    sys.argv = [str(GUIDE), *arguments]
    names = {"__name__": "__main__"}
    parts = [part for part in pieces(GUIDE.read_text()) if part[1].strip()]
    # The commands come first, while this process holds no model of its own.
    parts = [
        (is_text, run_commands(content, arguments) if is_text else content)
        for is_text, content in parts
    ]
    sections = [
        content.strip() if is_text else run_code(content, names)
        for is_text, content in parts
    ]
    file.write_text("\n\n".join([NOTE, *sections]) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, default=ROOT / "docs" / "guide.md")
    own, arguments = parser.parse_known_args()
    write(own.to, arguments)
