# Network namespaces as hosts, linked by a bridge in a namespace of its own, with a rate for each link; ranks of mpirun in
# them. Sourced after common.bash, by root. Nothing is changed outside of these namespaces. They are removed when the
# script ends; those of a script that was killed, when the next one begins.
#
#   hosts_up COUNT RATE     RATE as tc has it (1gbit), or "none"; sets `hosts` (addresses) and `host_names`
#   hosts_rate RATE         another one, for all links
#   on_hosts N COMMAND...   mpirun, N ranks dealt out over the hosts; `mpi_options` are further options of mpirun
#   host_pids I             the processes on host I
#   cut_link I, mend_link I
hosts=()
host_names=()
mpi_options=()
host_prefix=rzh$$

# need_hosts: ends the script, skipped, where no namespaces can be made.
need_hosts() {
  local reason=
  if [ "$(id -u)" -ne 0 ]; then
    reason="network namespaces are for root"
  elif ! command -v ip >/dev/null || ! command -v tc >/dev/null; then
    reason="there is no ip or tc (Debian: iproute2)"
  elif ! ip netns add "$host_prefix-try" 2>/dev/null; then
    reason="no network namespace can be made here"
  elif ! ip -n "$host_prefix-try" link add try type veth peer name other 2>/dev/null; then
    reason="no virtual links can be made here"
  elif ! ip netns exec "$host_prefix-try" tc qdisc add dev try root tbf rate 1gbit burst 256kb latency 50ms 2>/dev/null; then
    reason="links cannot be given a rate here (tbf)"
  fi
  ip netns del "$host_prefix-try" 2>/dev/null
  [ -z "$reason" ] && return 0
  [ $failures -eq 0 ] || exit 1
  echo "skipped: $reason"
  exit 77
}

# remove_hosts PREFIX: ends what runs on these hosts, and removes them.
remove_hosts() {
  local namespace process
  for namespace in $(ip netns list | awk -v p="$1-" 'index($1, p) == 1 { print $1 }'); do
    for process in $(ip netns pids "$namespace" 2>/dev/null); do kill -9 "$process" 2>/dev/null; done
    ip netns del "$namespace"
    rm -rf "/etc/netns/$namespace"
  done
}

# Those of scripts that are gone.
sweep_hosts() {
  local owner
  for owner in $(ip netns list | sed -n 's/^rzh\([0-9]*\)-.*/\1/p' | sort -u); do
    [ -d "/proc/$owner" ] || remove_hosts "rzh$owner"
  done
}

hosts_up() {
  local count=$1 rate=$2 i name
  sweep_hosts
  trap 'remove_hosts "$host_prefix"; rm -rf "$work"' EXIT
  ip netns add "$host_prefix-net" && ip -n "$host_prefix-net" link add bridge type bridge &&
    ip -n "$host_prefix-net" link set bridge up || fail "the bridge"
  for ((i = 0; i < count; ++i)); do
    name=$host_prefix-$i
    hosts[i]=10.77.0.$((i + 1))
    host_names[i]=rzhost$i
    mkdir -p "/etc/netns/$name"
    for ((j = 0; j < count; ++j)); do echo "10.77.0.$((j + 1)) rzhost$j"; done >"/etc/netns/$name/hosts"
    echo "127.0.0.1 localhost" >>"/etc/netns/$name/hosts"
    ip netns add "$name" && ip -n "$name" link set lo up &&
      ip -n "$host_prefix-net" link add "p$i" type veth peer name eth0 netns "$name" &&
      ip -n "$host_prefix-net" link set "p$i" master bridge && ip -n "$host_prefix-net" link set "p$i" up &&
      ip -n "$name" addr add "${hosts[i]}/24" dev eth0 && ip -n "$name" link set eth0 up || fail "host $i"
  done
  hosts_rate "$rate"
  # What mpirun calls in place of ssh.
  cat >"$work/agent" <<AGENT
#!/usr/bin/env bash
host=\$1
shift
index=\$((\${host##*.} - 1))
exec ip netns exec "$host_prefix-\$index" unshare --uts sh -c 'hostname "\$0" && eval "\$@"' "rzhost\$index" "\$@"
AGENT
  chmod +x "$work/agent"
}

# Both ways: what a host sends, and what the bridge hands on to it.
hosts_rate() {
  local i
  for i in "${!hosts[@]}"; do
    limit_link "$host_prefix-$i" eth0 "$1"
    limit_link "$host_prefix-net" "p$i" "$1"
  done
}

limit_link() {
  ip netns exec "$1" tc qdisc del dev "$2" root 2>/dev/null
  [ "$3" = none ] && return
  ip netns exec "$1" tc qdisc add dev "$2" root tbf rate "$3" burst 512kb latency 50ms || fail "a rate of $3"
}

on_hosts() {
  local ranks=$1 list= i slots
  shift
  for i in "${!hosts[@]}"; do
    slots=$(((ranks + ${#hosts[@]} - 1 - i) / ${#hosts[@]}))
    [ $slots -gt 0 ] && list+=${list:+,}${hosts[i]}:$slots
  done
  ip netns exec "$host_prefix-0" unshare --uts sh -c 'hostname "$0" && exec "$@"' rzhost0 \
    mpirun --mca plm_rsh_agent "$work/agent" --mca plm_rsh_no_tree_spawn 1 --mca btl tcp,self \
    --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 --mca hwloc_base_binding_policy none \
    "${mpi_options[@]}" --host "$list" -n "$ranks" "$@"
}

host_pids() { ip netns pids "$host_prefix-$1"; }
cut_link() { ip -n "$host_prefix-net" link set "p$1" down; }
mend_link() { ip -n "$host_prefix-net" link set "p$1" up; }
