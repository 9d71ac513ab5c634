#!/usr/bin/env bash
# A project that has Rhizome as a part (FetchContent) gets librhizome, shared or static, and nothing else: no programs,
# tests, install rules, compiler flags or variables. To save time, the library of this build is placed where the project
# would build it, and only the project's own programs are compiled; linking_long_test.sh builds everything.
set -euo pipefail
if grep -qE '^RHIZOME_(COVERAGE|FUZZ):BOOL=ON' "$RHIZOME_BUILD/CMakeCache.txt"; then
  echo "skipped: instrumented libraries do not fit programs that are compiled without these options"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  printf '%s\n' "$@" >&2
  exit 1
}
printf '0\t1\n0\t2\n2\t1\n' >"$work/edges.tsv"
"$RHIZOME" ingest "$work/g.rz" --edges "$work/edges.tsv" --partitions 2 >/dev/null

# Writes what the project can see, before and after it includes Rhizome.
cat >"$work/record.cmake" <<'CMAKE'
function(record file)
  get_cmake_property(names VARIABLES)
  set(text "")
  foreach(name IN LISTS names)
    string(APPEND text "variable ${name}=${${name}}\n")
  endforeach()
  foreach(property COMPILE_DEFINITIONS COMPILE_OPTIONS INCLUDE_DIRECTORIES LINK_DIRECTORIES LINK_OPTIONS TESTS)
    get_directory_property(value ${property})
    string(APPEND text "property ${property}=${value}\n")
  endforeach()
  file(WRITE ${CMAKE_BINARY_DIR}/${file} "${text}")
endfunction()
record(before)
cmake_language(DEFER CALL record after)
CMAKE

# configure NAME OPTION...: configures the project in the folder NAME.
configure() {
  local build=$work/$1
  shift
  mkdir -p "$build/.cmake/api/v1/query"
  touch "$build/.cmake/api/v1/query/codemodel-v2"
  cmake -G Ninja -S "$RHIZOME_SOURCE/tests/consumer/subproject" -B "$build" -DRHIZOME_SOURCE="$RHIZOME_SOURCE" \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
    -DCMAKE_PROJECT_subproject_INCLUDE="$work/record.cmake" "$@" >"$build/log" 2>&1 || fail "$(cat "$build/log")"
}

# check_project NAME TYPE: the project has no more than it asked for, and a librhizome of TYPE.
check_project() {
  local build=$work/$1 new
  new=$(comm -13 <(sort "$build/before") <(sort "$build/after") | grep -E '^(property |variable (CMAKE|BUILD)_)' |
    grep -vE '^variable CMAKE_(INSTALL_[A-Z]*DIR|PROJECT_VERSION[A-Z_]*|HAVE_LIBC_PTHREAD|CURRENT_LIST_(DIR|FILE))=' || true)
  [ -z "$new" ] || fail "Rhizome changes the project that includes it:" "$new"
  python3 - "$build" "$2" "$RHIZOME_SOURCE" <<'PY'
import json, pathlib, shlex, sys
build, kind, source = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
targets = [json.load(open(file)) for file in (build / ".cmake/api/v1/reply").glob("target-*.json")]
def of_type(*types):
    return sorted(t["name"] for t in targets if t["type"] in types and not t.get("isGeneratorProvided"))
def expect(what, found, wanted):
    if found != wanted:
        sys.exit(f"{what}: found {found}, expected {wanted}")
expect("programs", of_type("EXECUTABLE"), ["consumer"])
expect("modules and commands", of_type("MODULE_LIBRARY", "UTILITY"), [])
both = of_type("SHARED_LIBRARY"), of_type("STATIC_LIBRARY")
expect("libraries", both, {"shared": (["rhizome"], ["rhizome_engine"]),
                           "static": ([], ["rhizome", "rhizome_engine"])}[kind])
for entry in json.load(open(build / "compile_commands.json")):
    words = shlex.split(entry["command"])
    if words[0].rsplit("/")[-1] not in ("c++", "g++", "clang++") or "-Werror" in words:
        sys.exit(f"{entry['file']} is not compiled as the project chooses: {entry['command']}")
    if entry["file"].startswith(f"{source}/tests/consumer/"):
        flags = [word for word in words[1:words.index("-o")] if not word.startswith("-I")]
        expect(f"flags of {entry['file']}", flags, ["-O3", "-DNDEBUG", "-std=gnu++20"])
        roots = sorted(word[2:] for word in words if word.startswith("-I"))
        expect("include folders", roots, [f"{source}/{layer}/api" for layer in ("cache", "index", "storage")])
PY
  if grep -n fuse-ld "$build/build.ninja"; then
    fail "Rhizome chooses the linker of the project"
  fi
  cmake --install "$build" --prefix "$build/installed" >"$build/log" 2>&1 || fail "$(cat "$build/log")"
  [ ! -e "$build/installed" ] || fail "installing the project installs Rhizome:" "$(find "$build/installed")"
}

# library_folder NAME: the folder in which the project builds librhizome.
library_folder() {
  mkdir -p "$work/$1/_deps/rhizome-build/lib"
  echo "$work/$1/_deps/rhizome-build/lib"
}

# build_program NAME PROGRAM: runs the commands of the build that make PROGRAM, without those that make the library.
build_program() {
  local build=$work/$1 command object
  ninja -C "$build" -t commands "$2" | grep -E -- "-o (CMakeFiles/$2\.dir/[^ ]*|$2) " >"$build/commands"
  [ "$(wc -l <"$build/commands")" = 2 ] || fail "expected two commands for $2:" "$(cat "$build/commands")"
  while read -r command; do
    object=${command#* -o }
    object=${object%% *}
    (cd "$build" && mkdir -p "$(dirname "$object")" && sh -c "$command")
  done <"$build/commands"
}

configure shared
check_project shared shared
cp -P "$RHIZOME_BUILD"/lib/librhizome.so* "$(library_folder shared)/"
build_program shared consumer
[ "$("$work/shared/consumer" "$work/g.rz" 0)" = "3 2" ]

# The archive that the tests link is what the project would build.
configure static -DBUILD_SHARED_LIBS=OFF
check_project static static
cp "$RHIZOME_BUILD/librhizome_engine.a" "$(library_folder static)/librhizome.a"
build_program static consumer
[ "$("$work/static/consumer" "$work/g.rz" 2)" = "3 1" ]
if readelf -d "$work/static/consumer" | grep -F 'librhizome'; then
  fail "consumer is linked statically, and needs a librhizome"
fi

if [ -e "$RHIZOME_BUILD/lib/librhizome_gnn.so" ]; then
  configure gnn -DRHIZOME_GNN=ON -DRHIZOME_TORCH="$(sed -n 's/^RHIZOME_TORCH:PATH=//p' "$RHIZOME_BUILD/CMakeCache.txt")"
  cp -P "$RHIZOME_BUILD"/lib/librhizome{,_gnn}.so* "$(library_folder gnn)/"
  build_program gnn gnn_consumer
  message=$("$work/gnn/gnn_consumer" "$work/g.rz" 2>&1 || true)
  grep -qF 'no such array' <<<"$message" || fail "gnn_consumer does not say that an array is missing:" "$message"
fi
