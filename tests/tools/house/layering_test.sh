#!/usr/bin/env bash
# An upward include does not compile: each room's own compiler flags refuse the headers of later rooms and halls.
# (tests/tidy_test.py reads all includes; this one shows that the compiler refuses those that go up.)
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

compiles() {  # room header
  local command
  command=$(python3 - "$RHIZOME_BUILD/compile_commands.json" "$1" <<'PY'
import json, shlex, sys
target = "rhizome_python" if sys.argv[2] == "python/src" else "rhizome_" + sys.argv[2].replace("/", "_")
for entry in json.load(open(sys.argv[1])):
    if f"CMakeFiles/{target}.dir/" in entry["command"]:
        words = shlex.split(entry["command"])
        keep = [w for i, w in enumerate(words) if w.startswith(("-I", "-D", "-std=")) or
                words[i - 1] == "-isystem" or w == "-isystem"]
        print(" ".join(shlex.quote(w) for w in keep))
        break
PY
  )
  printf '#include "rhizome/%s"\n' "$2" >"$work/probe.cc"
  eval "g++ $command -fsyntax-only '$work/probe.cc'" 2>"$work/errors"
}

expect() {  # yes|no room header
  if compiles "$2" "$3"; then answer=yes; else answer=no; fi
  [ "$answer" = "$1" ] && return
  echo "$2 including $3: compiles=$answer, wanted $1" >&2
  cat "$work/errors" >&2
  exit 1
}

expect yes storage/care storage/store.h
expect yes storage/io storage/status.h
expect no storage/base storage/file_system.h
expect no storage/array storage/store.h
expect no storage/care index/graph.h
expect yes index/work storage/store.h
expect yes index/sample index/graph.h
expect no index/topology index/graph.h
expect no index/check cache/policy.h
expect yes cache/pool index/graph.h
expect no cache/policy cache/loader.h
expect no cache/blocks gnn/entry.h
# The Python module sees what is installed, where it is built at all.
if grep -q '/python/src/' "$RHIZOME_BUILD/compile_commands.json"; then
  expect yes python/src index/graph.h
  expect no python/src cache/buffer_pool.h
fi
