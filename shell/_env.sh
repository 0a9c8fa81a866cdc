# Sourced by the scripts beside it, which may be called from any folder: goes to
# the repository and offers `packages` and `environment`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

PYTHON=${PYTHON:-python3}
found=$("$PYTHON" --version 2>/dev/null) || found="no Python"
if ! "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
  2>/dev/null; then
  echo "This needs Python 3.11 or newer; set PYTHON to one." \
    "Received: PYTHON=$PYTHON, which is $found" >&2
  exit 1
fi

# packages NAME ARGUMENT...: has a virtual environment in build/NAME, made with
# `pip install ARGUMENT...` unless it is there from the same requirements, and
# lets PYTHON be its Python.
packages() {
  local folder="$PWD/build/$1" stamp
  shift
  stamp=$(echo "$found $PWD $*" && cat pyproject.toml requirements*)
  if [[ ! -e $folder/stamp || $(<"$folder/stamp") != "$stamp" ]]; then
    echo "Making the environment $folder (once)"
    rm -rf "$folder"
    "$PYTHON" -m venv "$folder"
    "$folder/bin/python" -m pip install --disable-pip-version-check "$@"
    echo "$stamp" >"$folder/stamp"
  fi
  PYTHON=$folder/bin/python
}

# environment NAME ARGUMENT...: as `packages`, and composes the tree that its
# `keras` comes from.
environment() {
  packages "$@"
  "$PYTHON" -m graft tree
}
