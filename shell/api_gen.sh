#!/usr/bin/env bash
# Writes the grafts of the public API modules, or with --check compares them.
source "$(dirname "$0")/_env.sh"
environment venv -r requirements.txt -e .
"$PYTHON" -m graft.api "$@"
if [[ ${1-} != --check ]]; then
  shell/format.sh
fi
