#!/usr/bin/env bash
# No kernel spills a register or uses more than 64, on sm_80 and sm_90, according to ptxas. Prints
# the table.
set -euo pipefail
nvcc=$(sed -n 's/^CMAKE_CUDA_COMPILER:[A-Z]*=//p' "$RHIZOME_BUILD/CMakeCache.txt")
if [ ! -x "$nvcc" ]; then
  echo "skipped: this build has no nvcc"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for sm in 80 90; do
  "$nvcc" -std=c++17 -O3 -gencode "arch=compute_$sm,code=sm_$sm" -Xptxas -v -I"$RHIZOME_SOURCE" \
    -c "$RHIZOME_SOURCE/cuda/kernels.cu" -o "$work/kernels.o" 2>"$work/sm_$sm"
done
python3 - "$work/sm_80" "$work/sm_90" <<'PY'
import re
import subprocess
import sys

KERNEL = re.compile(r"Compiling entry function '(\S+)' for '(\S+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores, "
                    r"(\d+) bytes spill loads.*?Used (\d+) registers(?:.*?(\d+) bytes smem)?", re.S)
rows = []
for file in sys.argv[1:]:
    for part in re.split(r"(?=ptxas info\s+: Compiling entry function)", open(file).read())[1:]:
        rows.append(KERNEL.search(part).groups())
names = subprocess.run(["c++filt"], input="\n".join(row[0] for row in rows), capture_output=True, text=True, check=True)
wrong = 0
for row, name in zip(rows, names.stdout.splitlines()):
    stack, stores, loads, registers = map(int, row[2:6])
    name = re.sub(r"rhizome::cuda::|\(.*|^void ", "", name)
    bad = stack > 0 or stores + loads > 0 or registers > 64
    wrong += bad
    print(f"{row[1]}  {registers:3} registers  {stack:3} bytes of stack  {row[6] or 0:>5} shared  {name}"
          + ("  <- too much" if bad else ""))
if len(rows) < 60 or len({row[1] for row in rows}) != 2:
    sys.exit(f"only {len(rows)} kernels were found")
sys.exit(wrong > 0)
PY
