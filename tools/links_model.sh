#!/usr/bin/env bash
# Compares modelled with measured seconds in twelve trainings on two ranks, each rank in its own network namespace: rows
# of two widths, several fanouts and models, and links of two rates and three latencies.
# usage: tools/links_model.sh [--rounds N] [--only N,...]
# Prints one JSON object per training, then one line per configuration with the median of its rounds (1). The constants
# of the model are measured before each configuration. Needs an otherwise idle machine, and the tools of tools/links.sh.
set -euo pipefail
source_folder=$(cd "$(dirname "$0")/.." && pwd)
: "${RHIZOME_BUILD:=$source_folder/build/release}" "${RHIZOME:=$RHIZOME_BUILD/bin/rhizome}"
rounds=1 only=
while [ $# -gt 0 ]; do
  case $1 in
    --rounds) rounds=$2; shift 2 ;;
    --only) only=,$2,; shift 2 ;;
    *) sed -n 's/^# usage: //p' "$0" >&2; exit 1 ;;
  esac
done
work=$(mktemp -d "${TMPDIR:-/tmp}/rhizome-model.XXXXXX")
trap 'rm -rf "$work"' EXIT
for width in 256 64; do "$RHIZOME" generate planted --scale 16 --dim $width --out "$work/$width" >"$work/out"; done
"$RHIZOME" ingest "$work/s.rz" --edges "$work/256/edges.npy" --nodes "$work/256/nodes.tsv" --node-columns id,label,split \
  --array feat="$work/256/features.npy" --array narrow="$work/64/features.npy" --partitions 4 --homes edgecut >"$work/out"
sync # the disk has nothing left to write when the first is timed

# Rate, latency, and flags of the training. Pools have a third of a rank's rows.
number=0
while read -r rate latency flags; do
  number=$((number + 1))
  [ -z "$only" ] || [[ $only == *,$number,* ]] || continue
  # shellcheck disable=SC2086
  "$source_folder/tools/links.sh" --rates "$rate" --latencies "$latency" --rounds "$rounds" --ways "belady all" "$work/s.rz" \
    $flags --epochs 1 --steps 40 --superbatch 16 --threads 1 --io mmap </dev/null | sed "s/^{/{\"configuration\": $number, \"flags\": \"$flags\", /" |
    tee -a "$work/all"
done <<'CONFIGURATIONS'
1gbit 0 --features feat --fanout 10,10 --batch-size 500 --hidden 16 --cache-bytes 24M
10gbit 0 --features feat --fanout 10,10 --batch-size 500 --hidden 16 --cache-bytes 24M
1gbit 50us --features feat --fanout 10,10 --batch-size 250 --hidden 64 --cache-bytes 24M
10gbit 50us --features feat --fanout 5,5,5 --batch-size 250 --hidden 32 --cache-bytes 24M
1gbit 500us --features feat --fanout 15,10 --batch-size 250 --hidden 32 --cache-bytes 24M
10gbit 500us --features feat --fanout 10,10 --batch-size 500 --hidden 16 --cache-bytes 24M
1gbit 0 --features narrow --fanout 15,10 --batch-size 500 --hidden 64 --cache-bytes 6M
10gbit 0 --features narrow --fanout 5,5,5 --batch-size 250 --hidden 128 --cache-bytes 6M
1gbit 50us --features narrow --fanout 10,10 --batch-size 500 --hidden 32 --cache-bytes 6M
10gbit 50us --features narrow --fanout 10,10 --batch-size 1000 --hidden 32 --cache-bytes 6M
1gbit 500us --features narrow --fanout 10,10 --batch-size 250 --hidden 256 --cache-bytes 6M
10gbit 500us --features narrow --fanout 15,10 --batch-size 500 --hidden 64 --cache-bytes 6M
CONFIGURATIONS
python3 - "$work/all" <<'PY'
import collections, json, statistics, sys
runs = collections.defaultdict(list)
for line in open(sys.argv[1]):
    run = json.loads(line)
    runs[run["configuration"]].append(run)
print("modelled over measured, ms a step, rate, one way, load, configuration")
within = 0
for number, of_one in runs.items():
    run = sorted(of_one, key=lambda r: r["modelled_over_measured"])[len(of_one) // 2]
    within += abs(run["modelled_over_measured"] - 1) <= .15
    print(f"{run['modelled_over_measured']:5.2f} {run['modelled_ms']:7.1f} / {run['step_ms']:.1f}  {run['rate']:8} "
          f"{run['one_way_us']:6.1f} us  {run['load']:5.2f}  {number}: {run['flags']}")
print(f"{within} of {len(runs)} within 15 %")
PY
