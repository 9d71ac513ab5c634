# Simulates hosts by network namespaces, linked by a bridge in another namespace, with a rate and a
# latency for each link, and runs ranks of mpirun in them. Source it after common.bash, as root. It
# changes nothing outside of these namespaces. They are removed when the script ends; those of a
# script that was killed are removed when the next one begins.
#
#   hosts_up COUNT RATE     creates hosts; RATE as for tc (1gbit), or "none"; sets `hosts`
#                           (addresses) and `host_names`
#   hosts_rate RATE         changes the rate of all links
#   hosts_latency US        sets the one-way latency between hosts in microseconds; 0: none is added
#   round_trip_us I J       prints the round-trip time of a packet from host I to host J
#   on_hosts N COMMAND...   runs mpirun with N ranks, distributed over the hosts; `mpi_options`:
#                           more options of mpirun
#   host_pids I             prints the processes on host I
#   cut_link I, mend_link I
hosts=()
host_names=()
mpi_options=()
host_prefix=rzh$$
link_rate=none
link_latency=0
slow_links=() # processes
slow_link=${RHIZOME_BUILD:-}/bin/rhizome_slow_link

# need_hosts: ends the script, skipped, if namespaces cannot be created.
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

# need_latency: ends the script, skipped, if links cannot have a latency. Call it after need_hosts.
# (A kernel with netem could do without rhizome_slow_link; not all have it.)
need_latency() {
  local reason=
  ip netns add "$host_prefix-try"
  if [ ! -x "$slow_link" ]; then
    reason="this build has no rhizome_slow_link"
  elif ! ip -n "$host_prefix-try" tuntap add try mode tap 2>/dev/null; then
    reason="no TAP devices can be made here"
  fi
  ip netns del "$host_prefix-try"
  [ -z "$reason" ] && return 0
  [ $failures -eq 0 ] || exit 1
  echo "skipped: $reason"
  exit 77
}

# remove_hosts PREFIX: ends all processes on these hosts, and removes the hosts.
remove_hosts() {
  local namespace process
  for namespace in $(ip netns list | awk -v p="$1-" 'index($1, p) == 1 { print $1 }'); do
    for process in $(ip netns pids "$namespace" 2>/dev/null); do kill -9 "$process" 2>/dev/null; done
    ip netns del "$namespace"
    rm -rf "/etc/netns/$namespace"
  done
}

# sweep_hosts: removes the hosts of scripts that no longer run.
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
    ip netns add "$name" && ip -n "$name" link set lo up && link_host "$i" || fail "host $i"
  done
  hosts_rate "$rate"
  # Called by mpirun instead of ssh.
  cat >"$work/agent" <<AGENT
#!/usr/bin/env bash
host=\$1
shift
index=\$((\${host##*.} - 1))
exec ip netns exec "$host_prefix-\$index" unshare --uts sh -c 'hostname "\$0" && eval "\$@"' "rzhost\$index" "\$@"
AGENT
  chmod +x "$work/agent"
}

# link_host I: links a host to the bridge by a veth pair. If links have a latency, it uses two TAP
# devices instead, and a process between them that holds each frame for half of the latency, since a
# frame between hosts passes two links. Frames are as long as in clusters (MTU 9000). The process
# runs in the bridge's namespace, so it is not a process of the host.
link_host() {
  local i=$1 name=$host_prefix-$1 net=$host_prefix-net
  if [ "$link_latency" = 0 ]; then
    ip -n "$net" link add "p$i" type veth peer name eth0 netns "$name" || return
  else
    ip -n "$name" tuntap add eth0 mode tap && ip -n "$net" tuntap add "p$i" mode tap || return
    # High priority, so that it runs as soon as a frame is due.
    nice -n -20 "$slow_link" "$(python3 -c "print($link_latency / 2)")" "$name" eth0 "$net" "p$i" &
    slow_links+=($!)
    disown
  fi
  ip -n "$net" link set "p$i" mtu 9000 master bridge up && ip -n "$name" link set eth0 mtu 9000 up &&
    ip -n "$name" addr add "${hosts[i]}/24" dev eth0
}

hosts_latency() {
  local i
  [ ${#slow_links[@]} = 0 ] || kill "${slow_links[@]}"
  slow_links=()
  for i in "${!hosts[@]}"; do
    ip -n "$host_prefix-$i" link del eth0
    [ "$link_latency" = 0 ] || ip -n "$host_prefix-net" link del "p$i"
  done
  link_latency=$1
  for i in "${!hosts[@]}"; do link_host "$i" || fail "a latency of $1 us for host $i"; done
  hosts_rate "$link_rate"
}

# round_trip_us I J [min]: prints the median of 25 echoes, or with "min" the minimum, which a busy
# CPU hardly affects. The first echoes, while the ends find each other, may be lost. Fails if no
# echo returns.
round_trip_us() {
  ip netns exec "$host_prefix-$1" python3 - "${hosts[$2]}" "${3:-median}" "${RHIZOME_TEST_PATIENCE:-1}" <<'PY'
import socket, statistics, struct, sys, time

def message(kind, number):
    """An ICMP message with its checksum; none of its sums of 16-bit words carries over."""
    words = (kind << 8, 77, number)
    return struct.pack("!HHHH", words[0], ~sum(words) & 0xFFFF, *words[1:])

link = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
link.settimeout(0.5 * int(sys.argv[3]))
link.connect((sys.argv[1], 0))
times = []
for number in range(29):
    sent = time.perf_counter()
    link.send(message(8, number))
    try:
        while link.recv(256)[20:] != message(0, number):
            pass
        times.append(time.perf_counter() - sent)
    except TimeoutError:
        if number - len(times) >= 4:
            sys.exit("no echo comes back")
print(round(1e6 * (min(times) if sys.argv[2] == "min" else statistics.median(times)), 1))
PY
}

# hosts_rate RATE: limits both directions, from the host and from the bridge.
hosts_rate() {
  local i
  link_rate=$1
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
