#!/usr/bin/env bash
# Measures everything side by side and writes the tables to docs/benchmarks/.
#
#   benchmarks/run_all.sh [REPEATS [NAME...]]
#
# A NAME is curves, draws, build, variables or load.
#
# All five times take about four hours of two cores, and nothing else should run
# on the machine.
source "$(dirname "$0")/../shell/_env.sh"
repeats=${1-5}
names=("${@:2}")
if ((${#names[@]} == 0)); then names=(curves draws build variables load); fi

pin=$(sed -n 's/.*"\(keras==[^"]*\)".*/\1/p' pyproject.toml)
base=$PYTHON
packages unmodified "$pin" -r requirements-jax.txt
unmodified=$PYTHON
PYTHON=$base
environment benchmarks -r requirements-jax-nnx.txt -r requirements-torch.txt \
  libcst matplotlib -e .

folder=docs/benchmarks
mkdir -p "$folder"
for name in "${names[@]}"; do
  case $name in
    curves) more=(--flax "$PYTHON" --torch "$PYTHON" --output "$folder") ;;
    draws) more=(--torch "$PYTHON" --output "$folder") ;;
    *) more=(--json "$folder/$name.json") ;;
  esac
  {
    echo "$(date -u +%F), runs of each: $repeats"
    "$PYTHON" "benchmarks/$name.py" --repeats "$repeats" \
      --upstream "$unmodified" "${more[@]}"
  } | sed 's/ *$//' | tee "$folder/$name.txt.part"
  mv "$folder/$name.txt.part" "$folder/$name.txt"
done
