#!/usr/bin/env bash
# Runs the tests in an environment of their own.
#
#   shell/test.sh                 everything that CI runs
#   shell/test.sh PATH -k NAME    any arguments of pytest; KERAS_BACKEND counts
#
# A path below keras/ may be one of ours or of upstream's: keras/src/random.
source "$(dirname "$0")/_env.sh"
environment venv -r requirements.txt -e .

if (($#)); then
  exec "$PYTHON" -m pytest "$@"
fi

# Upstream's tests of what our modules change, beyond the test modules that
# stand beside ours.
around=(
  keras/src/backend/common  # variables and the scopes they are made in
  keras/src/backend/jax     # distribution, the trainer, several processes
  keras/src/backend/tests   # shapes and dtypes of ops, devices
  keras/src/distribution
  keras/src/initializers
  keras/src/random
)

# The test modules of the tree that stand beside a graft or a new module.
beside() {
  find keras -name '*.py' | sed -E 's/(_test)?\.py$/_test.py/' | sort -u |
    while read -r test; do
      if [[ -f build/tree/$test ]]; then echo "$test"; fi
    done
}

tests=("${around[@]}" $(beside))
failed=0
suite() {
  echo "== $1"
  # By file, since the tests of one file share what jax has compiled.
  KERAS_BACKEND=$1 "$PYTHON" -m pytest -n auto --dist loadfile "${@:2}" ||
    failed=1
}
suite jax graft integration_tests "${tests[@]}"
suite numpy "${tests[@]}"
exit "$failed"
