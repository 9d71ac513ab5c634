# A control group with limited memory, for scripts that prove a bound. Source it after common.bash.

# limit_memory BYTES: sets the limit. `limited VERB...` then runs rhizome in the group, where
# exceeding the limit kills it. Ends the script, with the reason, if no group can be created.
limit_memory() {
  if [ -z "${group:-}" ]; then
    local v1=/sys/fs/cgroup/memory v2=/sys/fs/cgroup
    if [ -w $v1/memory.limit_in_bytes ] || [ -e $v1/memory.usage_in_bytes ]; then
      group=$v1/rhizome-test-$$
      group_file=memory.limit_in_bytes
    else
      group=$v2/rhizome-test-$$
      group_file=memory.max
    fi
    if [ "$(id -u)" -ne 0 ] || ! mkdir "$group" 2>/dev/null || ! echo "$1" 2>/dev/null >"$group/$group_file"; then
      [ -d "$group" ] && rmdir "$group"
      echo "skipped: no cgroup whose memory could be limited"
      exit 0
    fi
    [ -e "$group/memory.swap.max" ] && echo 0 >"$group/memory.swap.max"
    trap 'rm -rf "$work"; for _ in 1 2 3 4 5; do rmdir "$group" 2>/dev/null && break; sleep 0.2; done' EXIT
  fi
  echo "$1" >"$group/$group_file" || fail "set the limit"
}

limited() { bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$RHIZOME" "$@"; }
