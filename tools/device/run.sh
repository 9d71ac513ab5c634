#!/usr/bin/env bash
# Builds cuda/ alone on a machine with nvcc and a GPU, compares the kernels with the processor, runs the sanitizers
# over that, and measures. usage: tools/device/run.sh OUT; writes OUT/check.json, sanitize.json, bench.json and logs.
# Needs nvcc, g++, python3 with torch; no network, nothing else of what the engine needs. Takes at most 9 minutes.
# Exits with 1 if something is wrong, with 77 where there is no device (the build is then still checked).
set -uo pipefail
out=$(mkdir -p "${1:?usage: tools/device/run.sh OUT}" && cd "$1" && pwd)
cd "$(dirname "$0")/../.."
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

standard=c++20
if ! echo '#include <tl/expected.hpp>' | g++ -std=c++20 -E -x c++ - >/dev/null 2>&1; then
  standard=c++23  # whose std::expected is what tl::expected stands for
  mkdir -p "$work/include/tl"
  printf '#pragma once\n#include <expected>\nnamespace tl {\nusing std::expected;\nusing std::unexpected;\n}\n' \
    >"$work/include/tl/expected.hpp"
fi

sources=(cuda/cuda_device cuda/device_pool cuda/long_lists
  storage/base/status storage/base/escaped_text storage/base/utf8 cache/kernels/aggregate_portable
  tools/device/check tools/device/check_attention tools/device/check_gatv2)

build() {
  local object objects=() pids=() includes arch
  includes=(-I"$work/include" -I"$PWD" -I"$PWD/storage/api" -I"$PWD/cache/api")
  arch=(-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90)
  for object in kernels scan; do
    "$nvcc" -std=c++17 -O3 -Xcompiler -fPIC "${arch[@]}" "${includes[@]}" -c "cuda/$object.cu" -o "$work/$object.o" &
    pids+=($!)
  done
  for object in "${sources[@]}" tools/device/ctypes_api; do
    g++ -std=$standard -O2 -fPIC -ffp-contract=off -DRHIZOME_HAS_CUDA "${includes[@]}" \
      -isystem "$(dirname "$nvcc")/../include" -c "$object.cc" -o "$work/$(basename "$object").o" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || return 1; done
  for object in "${sources[@]}"; do objects+=("$work/$(basename "$object").o"); done
  "$nvcc" -o "$work/check" "${objects[@]}" "$work/kernels.o" "$work/scan.o" &&
    "$nvcc" -shared -o "$work/librhizome_device.so" "$work/ctypes_api.o" "$work/long_lists.o" "$work/kernels.o" \
      "$work/scan.o"
}
build >"$out/build.log" 2>&1 || { cat "$out/build.log" >&2; exit 1; }

failed=0
timeout 90 "$work/check" 40 >"$out/check.json" 2>"$out/check.log"
code=$?
cat "$out/check.json"
[ $code -eq 77 ] && exit 77
[ $code -eq 0 ] || failed=1

if sanitizer=$(command -v compute-sanitizer || ls "$(dirname "$nvcc")/compute-sanitizer" 2>/dev/null); then
  line=
  for tool in memcheck racecheck initcheck synccheck; do
    timeout 60 "$sanitizer" --tool $tool --error-exitcode 9 "$work/check" 1 >"$out/$tool.log" 2>&1
    code=$?
    [ $code -eq 0 ] || failed=1
    line+="${line:+, }\"$tool\": $code"
  done
  echo "{$line}" | tee "$out/sanitize.json"
else
  echo '{"skipped": "no compute-sanitizer"}' | tee "$out/sanitize.json"
fi

timeout 150 python3 tools/device/bench.py "$work/librhizome_device.so" >"$out/bench.json" 2>"$out/bench.log" || failed=1
cat "$out/bench.json"
exit $failed
