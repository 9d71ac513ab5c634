#!/usr/bin/env bash
# An upward include does not compile: each layer's own compiler flags refuse the headers to its right. And no type is
# defined in two headers.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

compiles() {  # layer header
  local command
  command=$(python3 - "$RHIZOME_BUILD/compile_commands.json" "$1" <<'PY'
import json, re, shlex, sys
for entry in json.load(open(sys.argv[1])):
    if re.search(rf"/{sys.argv[2]}/[a-z0-9_]+\.cc$", entry["file"]) and "/tests/" not in entry["file"]:
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

expect() {  # yes|no layer header
  if compiles "$2" "$3"; then answer=yes; else answer=no; fi
  [ "$answer" = "$1" ] && return
  echo "$2 including $3: compiles=$answer, wanted $1" >&2
  cat "$work/errors" >&2
  exit 1
}

expect yes storage storage/store.h
expect no storage index/graph.h
expect yes index storage/store.h
expect no index cache/policy.h
expect yes cache index/graph.h
expect no cache gnn/entry.h

# A program that links the libraries sees one type of a name: none is defined by two headers.
twice=$(cd "$RHIZOME_SOURCE" && grep -oE '^(struct|class|enum class) [A-Za-z0-9]+( final)?( :[^{]*)? ?\{' \
  storage/*.h index/*.h cache/*.h gnn/*.h cuda/*.h tools/*.h tools/bench/*.h |
  sed -E 's/^([^:]*):(struct|class|enum class) ([A-Za-z0-9]+).*/\3 \1/' | sort -u | awk '{ print $1 }' | uniq -d)
if [ -n "$twice" ]; then
  echo "defined in two headers: $twice" >&2
  exit 1
fi
