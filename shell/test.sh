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
  keras/src/backend/common # variables and the scopes they are made in
  keras/src/backend/tests  # shapes and dtypes of ops, devices
  keras/src/distribution
  keras/src/initializers
  keras/src/random
)
# On JAX also those of what makes, trains, saves and loads what we lay out.
around_on_jax=(
  keras/src/layers/core
  keras/src/models
  keras/src/optimizers
  keras/src/saving
  keras/src/trainers
)
# What everybody does, and without the packages of other backends.
flow=(integration_tests/flow_test.py integration_tests/packages_test.py)

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
  KERAS_BACKEND=${1%-nnx} "$PYTHON" -m pytest -n auto "${@:2}" || failed=1
}

# By class, since the tests of one class share what JAX has compiled. First what
# takes minutes in one piece, so that no worker is left alone with it.
suite jax --dist loadscope --no-loadscope-reorder \
  keras/src/ops/numpy_test.py keras/src/backend/jax integration_tests \
  graft suite "${around_on_jax[@]}" "${tests[@]}"
KERAS_NNX_ENABLED=true suite jax-nnx --dist loadfile "${flow[@]}" \
  keras/src/backend/jax/core_test.py

# On the other backends most of the time goes into what JAX compiles for
# upstream's tests to compare with, which is the same on each.
export JAX_COMPILATION_CACHE_DIR=$PWD/build/jax_cache
export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0
export JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES=-1
everywhere=($(printf '%s\n' "${tests[@]}" | grep -v ^keras/src/backend/jax/))
suite numpy --dist worksteal "${flow[@]}" "${everywhere[@]}"
# The tests of all array ops take as long as the others together. Seven of these
# ops are changed, which layout_support_test.py tests on each backend;
# shell/upstream_suite.sh runs all.
everywhere=($(printf '%s\n' "${everywhere[@]}" | grep -v ops/numpy_test.py))
for backend in tensorflow torch openvino; do
  suite "$backend" --dist worksteal "${flow[@]}" "${everywhere[@]}"
done
exit "$failed"
