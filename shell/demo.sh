#!/usr/bin/env bash
# Trains a model whose weights are born sharded, in an environment of its own.
source "$(dirname "$0")/_env.sh"
environment demo -c requirements-jax.txt libcst -e ".[jax]"
exec "$PYTHON" examples/born_sharded.py
