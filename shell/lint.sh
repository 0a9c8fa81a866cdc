#!/usr/bin/env bash
# Checks style, scripts, the lock, the API modules and the composed modules.
source "$(dirname "$0")/_env.sh"
environment venv -r requirements.txt -e .

failed=0
check() {
  if ! "${@:2}"; then
    echo "lint: $1: see above" >&2
    failed=1
  fi
}

check "style" "$PYTHON" -m ruff check
check "format" "$PYTHON" -m ruff format --check

# Names that a graft leaves to its upstream module are there once composed.
composed=($(find keras -name '*.py' | sed 's|^|build/tree/|'))
check "style, composed" "$PYTHON" -m ruff check "${composed[@]}"
check "format, composed" "$PYTHON" -m ruff format --check "${composed[@]}"

check "review of upstream" "$PYTHON" -m graft lock --check
check "public API" shell/api_gen.sh --check
for script in shell/*.sh .ci/run; do
  check "syntax of $script" bash -n "$script"
done
exit "$failed"
