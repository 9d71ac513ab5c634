#!/usr/bin/env bash
# An upward include does not compile: the headers of later modules and layers are not in a module's search path.
# (tests/tidy_test.py reads all includes; this test shows that the compiler refuses those that go up.)
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

compiles() {  # module header
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
  printf '#include "%s"\n' "$2" >"$work/probe.cc"
  eval "g++ $command -fsyntax-only '$work/probe.cc'" 2>"$work/errors"
}

expect() {  # yes|no module header
  if compiles "$2" "$3"; then answer=yes; else answer=no; fi
  [ "$answer" = "$1" ] && return
  echo "$2 including $3: compiles=$answer, wanted $1" >&2
  cat "$work/errors" >&2
  exit 1
}

expect yes storage/maintenance rhizome/store.h
expect yes storage/io storage/base/check.h
expect no storage/base storage/io/file_scan.h
expect no storage/array storage/store/store_files.h
expect no storage/maintenance rhizome/graph.h
expect yes index/base rhizome/store.h
expect yes index/sample index/graph/graph_writer.h
expect no index/topology index/graph/graph_writer.h
expect no index/check rhizome/policy.h
expect yes cache/pool rhizome/graph.h
expect no cache/policy cache/pool/buffer_pool.h
expect no cache/blocks rhizome/train_options.h
# The Python module includes public headers, and those of the list tools_only.
if grep -q '/python/src/' "$RHIZOME_BUILD/compile_commands.json"; then
  expect yes python/src rhizome/graph.h
  expect yes python/src storage/base/check.h
  expect no python/src cache/pool/buffer_pool.h
fi
