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

backend=
for ((i = 1; i <= $#; i++)); do
  case ${!i} in
  --backend) next=$((i + 1)) && backend=${!next-} ;;
  --backend=*) backend=${!i#--backend=} ;;
  esac
done
if [[ ! -f requirements-$backend.txt || $backend == suite ]]; then
  echo "Which backend? Received: --backend=$backend" >&2
  sed -n '2,9s/^# \?//p' "$BASH_SOURCE" >&2
  exit 2
fi
environment "suite/$backend/venv" \
  -r requirements-suite.txt -r "requirements-$backend.txt" -e .
exec "$PYTHON" -m suite "$@"
