#!/usr/bin/env bash
# Checks style, scripts, the lock, the API modules and the composed modules.
source "$(dirname "$0")/_env.sh"
environment venv -r requirements.txt -e .

failed=0
check() {
  if ! "$@"; then
    echo "lint: failed: $*" >&2
    failed=1
  fi
}

check "$PYTHON" -m ruff check
check "$PYTHON" -m ruff format --check

# Names that a graft leaves to its upstream module are there once composed.
composed=($(find keras -name '*.py' | sed 's|^|build/tree/|'))
check "$PYTHON" -m ruff check "${composed[@]}"
check "$PYTHON" -m ruff format --check "${composed[@]}"

check "$PYTHON" -m graft lock --check
check shell/api_gen.sh --check
for script in shell/*.sh .ci/run; do
  check bash -n "$script"
done
exit "$failed"
