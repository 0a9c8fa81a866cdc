#!/usr/bin/env bash
# Runs our tests of the JAX backend with another JAX, or with another Python.
#
#   shell/versions.sh 0.10.0
#   PYTHON=python3.13 shell/versions.sh 0.10.2
#   shell/versions.sh 0.10.1 PATH -k NAME   any arguments of pytest
source "$(dirname "$0")/_env.sh"
jax=${1:?"which JAX, such as 0.10.0"}
shift

environment "jax-$jax-${found// /-}" "jax==$jax" "jaxlib==$jax" -e '.[test]' \
  h5py libcst matplotlib pytest-xdist rich
if (($#)); then
  exec "$PYTHON" -m pytest "$@"
fi
# Upstream's own tests need TensorFlow, which not every Python has.
exec "$PYTHON" -m pytest -n auto --dist loadscope \
  $(git ls-files 'keras/*_test.py' 'integration_tests/*processes_test.py')
