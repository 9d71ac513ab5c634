#!/usr/bin/env bash
# tools/device/run.sh, which measures cuda/ on a machine with a GPU, builds with this tree. Without a GPU it ends after
# the build, with 77. Skipped without nvcc.
set -euo pipefail
nvcc=$(sed -n 's/^CMAKE_CUDA_COMPILER:[A-Z]*=//p' "$RHIZOME_BUILD/CMakeCache.txt")
if [ ! -x "$nvcc" ]; then
  echo "skipped: this build has no nvcc"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
code=0
CUDA_VISIBLE_DEVICES="" PATH=$(dirname "$nvcc"):$PATH "$RHIZOME_SOURCE/tools/device/run.sh" "$work/out" || code=$?
if [ $code -ne 77 ]; then
  echo "exit code $code, wanted 77: no device" >&2
  exit 1
fi
