#!/usr/bin/env bash
# Formats our Python files.
source "$(dirname "$0")/_env.sh"
environment venv -r requirements.txt -e .
"$PYTHON" -m ruff check --select I --fix
"$PYTHON" -m ruff format
