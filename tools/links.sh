#!/usr/bin/env bash
# Times distributed trainings in network namespaces whose links have a given rate and latency. Reports the seconds per
# step for several ways of prefetching remote rows, next to the model of `plan train`, and the processor time per rank.
# usage: tools/links.sh [--rates R,...] [--latencies T,...] [--rounds N] [--hosts N] [--ways PREFETCH OVERLAP,...] STORE [FLAGS OF TRAIN...]
# Prints one JSON object per training. Default: two hosts with one rank each, and four ways of prefetching. A rate is a
# value that tc accepts (1gbit, 200mbit), or none. A latency is one-way (0, 50us) and is measured before the trainings.
# The ways alternate, --rounds times (3). Needs root, ip, tc and mpirun.
set -euo pipefail
source_folder=$(cd "$(dirname "$0")/.." && pwd)
: "${RHIZOME_BUILD:=$source_folder/build/release}" "${RHIZOME:=$RHIZOME_BUILD/bin/rhizome}"
rates=1gbit,10gbit latencies=0 rounds=3 count=2 given_ways="belady all,belady none,none all,none none"
while [ $# -gt 0 ]; do
  case $1 in
    --rates) rates=$2; shift 2 ;;
    --latencies) latencies=$2; shift 2 ;;
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
[[ $latencies =~ ^(0(us)?,?)*$ ]] || need_latency
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

# together COMMAND...: runs it once for each rank at the same time, so that it has a rank's share of this machine; %RANK in
# it is replaced. The output of rank 0 is kept in $work/together.0, and so on.
together() {
  local i pids=() code=0
  for ((i = 0; i < count; ++i)); do
    "${@//%RANK/$i}" >"$work/together.$i" 2>"$work/err.$i" &
    pids+=($!)
  done
  for i in "${!pids[@]}"; do wait "${pids[i]}" || { cat "$work/err.$i" >&2; code=1; }; done
  return $code
}

# calibrate FLAGS...: sets the constants of the plans that come from a rank alone, medians of three trainings: computing a
# minibatch, and reading a row out of the page cache (of one from the disk most is waiting, and no processor's time), while
# nothing else is done (all minibatches are sampled before, and rows are read between them), and the bytes of gradients.
calibrate() {
  local flags=() i
  while [ $# -gt 0 ]; do
    [ "$1" = --superbatch ] && shift || flags+=("$1")
    shift
  done
  : >"$work/alone"
  for _ in 1 2 3; do
    together "$RHIZOME" train "$store" "${flags[@]}" --superbatch 100000 --ranks 1 --overlap none --no-test --job "calibrate%RANK" \
      --out "$work/m%RANK.st" --json --progress none || return 1
    for ((i = 0; i < count; ++i)); do grep '^{' "$work/together.$i" | tail -1 >>"$work/alone"; done
  done
  of_rank=$(python3 - "$work" "$count" "$mapped" <<'PY'
import json, os, statistics, sys
work, count, mapped = sys.argv[1], int(sys.argv[2]), sys.argv[3]
trained = [json.loads(line) for line in open(f"{work}/alone")]
def median_of_trainings(seconds_of):
    return statistics.median(seconds_of(trained[i : i + count]) for i in range(0, len(trained), count))
def own_seconds(ranks):
    epochs = [epoch for t in ranks for epoch in t["epochs"]]
    return sum(e["gather_seconds"] + e["switch_seconds"] for e in epochs) / max(1, sum(e["rows_read"] for e in epochs))
def compute_seconds(ranks):
    alone = [t["ranks"][0] for t in ranks]
    return sum(r["compute_seconds"] for r in alone) / sum(r["minibatches"] for r in alone)
own, compute = bool(mapped) * median_of_trainings(own_seconds), median_of_trainings(compute_seconds)
with open(f"{work}/m0.st", "rb") as file:
    tensors = json.loads(file.read(int.from_bytes(file.read(8), "little")))
gradients = max(tensor["data_offsets"][1] for name, tensor in tensors.items() if name != "__metadata__")
print(f"--compute-ms {1e3 * compute:.3f} --gradients {gradients} --own-us {1e6 * own:.3f} --processors {max(1, os.cpu_count() / count):g}")
PY
  ) || return 1
}

# link_use: the processor's seconds, and bytes, of the processes that give links their latency.
link_use() {
  local i process seconds=0
  for process in "${slow_links[@]}"; do
    seconds+=+$(awk -v ticks="$(getconf CLK_TCK)" '{ print ($14 + $15) / ticks }' "/proc/$process/stat")
  done
  echo "$seconds"
  for i in "${!hosts[@]}"; do ip netns exec "$host_prefix-net" cat "/sys/class/net/p$i/statistics/"{r,t}x_bytes; done | paste -sd+
}

# measure_rows FLAGS...: sets the constants that come from the links: the processor's time of a row between two ranks, with that
# of links that are processes here, and, past the page cache, a read from the disk that all share.
measure_rows() {
  local io=auto features=feat flag before=
  for flag in "$@"; do
    case $flag in
      mmap) io=mmap ;;
      *) [ "$before" = --features ] && features=$flag ;;
    esac
    before=$flag
  done
  link_use >"$work/use"
  on_hosts "$count" "$RHIZOME" doctor "$store" --ranks --features "$features" --io "$io" --json >"$work/doctor" 2>"$work/err" ||
    { cat "$work/err" >&2; return 1; }
  link_use >>"$work/use"
  of_links=$(python3 - "$work" "$count" "$io" <<'PY'
import json, sys
work, count, io = sys.argv[1], int(sys.argv[2]), sys.argv[3]
rows = json.loads([line for line in open(f"{work}/doctor") if line.startswith("{")][-1])["pairs"][0]["rows"]
seconds, octets, seconds_after, octets_after = (sum(map(float, line.split("+"))) for line in open(f"{work}/use"))
# A row goes through the links of two hosts.
carried = 2 * rows["row_bytes"] * (seconds_after - seconds) / (octets_after - octets)
read = 0 if io == "mmap" else count * 1e6 / rows["rows_per_second"]
print(f"--row-us {1e6 * (rows['processor_seconds_per_row'] + carried):.3f} --read-us {read:.3f}")
PY
  ) || return 1
  echo "$one_way_us us: $of_rank $of_links" >&2
}

# time_one RATE PREFETCH OVERLAP FLAGS...: a training, and its plan.
time_one() {
  local rate=$1 prefetch=$2 overlap=$3
  shift 3
  local link=${rate%bit}
  [ "$rate" = none ] && link=20g
  link=${link^^},${one_way_us}us
  on_hosts "$count" "$work/counted.sh" "$work" "$RHIZOME" train "$store" "$@" --link "$link" \
    --prefetch "$prefetch" --overlap "$overlap" --no-test --json --progress none >"$work/trained" 2>"$work/err" || { cat "$work/err" >&2; return 1; }
  # shellcheck disable=SC2086
  together "$RHIZOME" plan train "$store" "$@" --ranks "$count" --prefetch "$prefetch" --overlap "$overlap" --link "$link" \
    $of_rank $of_links --json --progress none || return 1
  python3 - "$rate" "$one_way_us" "$overlap" "$work/trained" "$(cut -d' ' -f1 /proc/loadavg)" "$work/together.0" <<'PY'
import json, os, re, sys
rate, one_way_us, overlap, path, load, planned = sys.argv[1:]
plan = json.load(open(planned))["plans"][0]
def processor_seconds(rank):
    minutes = re.findall(r"(\d+)m([\d.]+)s", open(f"{os.path.dirname(path)}/times.{rank}").readlines()[1])
    return round(sum(60 * int(m) + float(s) for m, s in minutes), 2)
j = json.loads([line for line in open(path) if line.startswith("{")][-1])
ranks, seconds = j["ranks"], sum(e["seconds"] for e in j["epochs"])
steps = max(r["minibatches"] / (r["homes"][1] - r["homes"][0]) for r in ranks)
compute = sum(r["compute_seconds"] for r in ranks) / sum(r["minibatches"] for r in ranks)
print(json.dumps({
    "rate": rate, "one_way_us": float(one_way_us), "prefetch": j["prefetch"], "overlap": overlap, "load": float(load), "steps": steps,
    "step_ms": round(1e3 * seconds / steps, 2), "modelled_ms": round(1e3 * plan["seconds"] / steps, 2),
    "modelled_over_measured": round(plan["seconds"] / seconds, 3),
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

# Rows that come out of the page cache are there from the first training on.
mapped=
[[ " $* " != *" mmap "* ]] || mapped=yes
[ -z "$mapped" ] || find "$store" -type f -exec cat {} + >/dev/null
calibrate "$@" || exit 1
IFS=, read -ra all_rates <<<"$rates"
IFS=, read -ra all_latencies <<<"$latencies"
for latency in "${all_latencies[@]}"; do
  hosts_latency "${latency%us}"
  hosts_rate none
  one_way_us=1 of_links= # a host alone has no link
  if [ "$count" -gt 1 ]; then
    one_way_us=$(python3 -c "print($(round_trip_us 0 1) / 2)") || exit 1
    measure_rows "$@" || exit 1
  fi
  for rate in "${all_rates[@]}"; do
    hosts_rate "$rate"
    for ((round = 0; round < rounds; ++round)); do
      for way in "${ways[@]}"; do
        # shellcheck disable=SC2086
        time_one "$rate" $way "$@" || exit 1
      done
    done
  done
done
