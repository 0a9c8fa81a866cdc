#!/usr/bin/env bash
# Runs the tests that upstream ships on the fork, with one backend.
#
#   shell/upstream_suite.sh --backend jax|jax-nnx|numpy|tensorflow|torch|openvino
#   shell/upstream_suite.sh --backend torch --part 1/3
#   shell/upstream_suite.sh --backend numpy keras/src/ops keras/src/wrappers
#
# It ends with a table, and fails if a test fails here that passes on upstream.
# Interrupted, it goes on where it was. `--help` lists all options.
source "$(dirname "$0")/_env.sh"

environment venv -r requirements.txt -e .
exec "$PYTHON" -m suite "$@"
