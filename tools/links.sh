#!/usr/bin/env bash
# Times trainings over ranks, in network namespaces whose links have a rate: a step's seconds by what is kept of other
# ranks' rows and when it is fetched, beside what `plan train` models, and the processor's seconds of each rank.
# usage: tools/links.sh [--rates R,...] [--rounds N] [--hosts N] [--ways PREFETCH OVERLAP,...] STORE [FLAGS OF TRAIN...]
# Prints a JSON object a training; by default two hosts, a rank each, and four ways of prefetching.
# A rate is what tc takes for bits a second (1gbit, 200mbit), or none. The ways take turns, --rounds times (3). Needs root,
# ip, tc and mpirun.
set -euo pipefail
source_folder=$(cd "$(dirname "$0")/.." && pwd)
: "${RHIZOME_BUILD:=$source_folder/build/release}" "${RHIZOME:=$RHIZOME_BUILD/bin/rhizome}"
rates=1gbit,10gbit rounds=3 count=2 given_ways="belady all,belady none,none all,none none"
while [ $# -gt 0 ]; do
  case $1 in
    --rates) rates=$2; shift 2 ;;
    --rounds) rounds=$2; shift 2 ;;
    --hosts) count=$2; shift 2 ;;
    --ways) given_ways=$2; shift 2 ;;
    *) break ;;
  esac
done
[ $# -gt 0 ] || { sed -n 's/^# usage: //p' "$0" >&2; exit 1; }
store=$(realpath "$1")
shift
set +e
# shellcheck source=tests/tools/common.bash
. "$source_folder/tests/tools/common.bash"
# shellcheck source=tests/tools/faults/hosts.bash
. "$source_folder/tests/tools/faults/hosts.bash"
need_mpirun
need_hosts
hosts_up "$count" none
IFS=, read -ra ways <<<"$given_ways"
cat >"$work/counted.sh" <<'SH'
#!/usr/bin/env bash
# A rank, and the processor's seconds that it took.
"${@:2}"
code=$?
times >"$1/times.$OMPI_COMM_WORLD_RANK" # the second line: of what it ran
exit $code
SH
chmod +x "$work/counted.sh"

compute_ms='
import json, sys
ranks = json.loads([line for line in sys.stdin if line.startswith("{")][-1])["ranks"]
print(1e3 * sum(r["compute_seconds"] for r in ranks) / sum(r["minibatches"] for r in ranks))'

# calibrate FLAGS...: sets the constants of the plans: computing a minibatch as one rank does that does nothing else
# meanwhile, the processor's time of a row between two ranks, and, past the page cache, a read from the disk that all share.
calibrate() {
  local compute read=0 io=auto
  case " $* " in *" --io mmap "*) io=mmap ;; esac
  compute=$("$RHIZOME" train "$store" "$@" --ranks 1 --overlap none --no-test --json --progress none 2>"$work/err" | python3 -c "$compute_ms") ||
    { cat "$work/err" >&2; return 1; }
  on_hosts "$count" "$RHIZOME" doctor "$store" --ranks --io "$io" --json >"$work/doctor" 2>"$work/err" || { cat "$work/err" >&2; return 1; }
  model=$(python3 - "$work/doctor" "$compute" "$count" "$io" <<'PY'
import json, os, sys
rows = json.loads([line for line in open(sys.argv[1]) if line.startswith("{")][-1])["pairs"][0]["rows"]
count = int(sys.argv[3])
read = 0 if sys.argv[4] == "mmap" else count * 1e6 / rows["rows_per_second"]
print(f"--compute-ms {float(sys.argv[2]):.3f} --processors {max(1, os.cpu_count() / count):g} "
      f"--row-us {1e6 * rows['processor_seconds_per_row']:.3f} --read-us {read:.3f}")
PY
  ) || return 1
  echo "model: $model" >&2
}

# time_one RATE PREFETCH OVERLAP FLAGS...: a training, and its plan.
time_one() {
  local rate=$1 prefetch=$2 overlap=$3
  shift 3
  local link=${rate%bit}
  [ "$rate" = none ] && link=20g
  on_hosts "$count" "$work/counted.sh" "$work" "$RHIZOME" train "$store" "$@" --link "${link^^},50us" \
    --prefetch "$prefetch" --overlap "$overlap" --no-test --json --progress none >"$work/trained" 2>"$work/err" || { cat "$work/err" >&2; return 1; }
  # shellcheck disable=SC2086
  "$RHIZOME" plan train "$store" "$@" --ranks "$count" --prefetch "$prefetch" --overlap "$overlap" --link "${link^^},50us" \
    $model --json --progress none >"$work/planned" 2>"$work/err" || { cat "$work/err" >&2; return 1; }
  python3 - "$rate" "$overlap" "$work/trained" "$(cut -d' ' -f1 /proc/loadavg)" "$work/planned" <<'PY'
import json, os, re, sys
rate, overlap, path, load, planned = sys.argv[1:]
plan = json.load(open(planned))["plans"][0]
def processor_seconds(rank):
    minutes = re.findall(r"(\d+)m([\d.]+)s", open(f"{os.path.dirname(path)}/times.{rank}").readlines()[1])
    return round(sum(60 * int(m) + float(s) for m, s in minutes), 2)
j = json.loads([line for line in open(path) if line.startswith("{")][-1])
ranks, seconds = j["ranks"], sum(e["seconds"] for e in j["epochs"])
steps = max(r["minibatches"] / (r["homes"][1] - r["homes"][0]) for r in ranks)
compute = sum(r["compute_seconds"] for r in ranks) / sum(r["minibatches"] for r in ranks)
print(json.dumps({
    "rate": rate, "prefetch": j["prefetch"], "overlap": overlap, "load": float(load), "steps": steps,
    "step_ms": round(1e3 * seconds / steps, 2), "modelled_ms": round(1e3 * plan["seconds"] / steps, 2),
    "compute_ms": round(1e3 * compute, 2), "planned_rows": plan["remote_rows_fetched"],
    "model_s": {part: round(max(s["seconds"][part] for s in plan["shares"]), 3) for part in plan["shares"][0]["seconds"]},
    "stall_s": [round(r["stall_seconds"], 3) for r in ranks], "wait_s": [round(r["wait_seconds"], 3) for r in ranks],
    "compute_s": [round(r["compute_seconds"], 3) for r in ranks],
    "processor_s": [processor_seconds(r["rank"]) for r in ranks],
    "serve_s": [round(r["serve_seconds"], 3) for r in ranks], "served_rows": [r["served_rows"] for r in ranks],
    "remote_rows": sum(r["remote_rows_fetched"] for r in ranks), "disk_rows": sum(r["disk_rows_fetched"] for r in ranks),
    "bytes_in": [r["bytes_in"] for r in ranks], "seconds": seconds}))
PY
}

hosts_rate none
calibrate "$@" || exit 1
IFS=, read -ra all_rates <<<"$rates"
for rate in "${all_rates[@]}"; do
  hosts_rate "$rate"
  for ((round = 0; round < rounds; ++round)); do
    for way in "${ways[@]}"; do
      # shellcheck disable=SC2086
      time_one "$rate" $way "$@" || exit 1
    done
  done
done
