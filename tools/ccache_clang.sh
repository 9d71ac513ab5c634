#!/usr/bin/env bash
# Runs Clang through ccache so that the cache is shared between clones of the repository, although the build uses a
# precompiled header. usage: ccache_clang.sh CCACHE COMPILER ARGUMENT...; run in the build folder, as Ninja does.
#
# A precompiled header contains absolute paths, so its bytes differ between clones. It is therefore compiled without
# ccache and gets a checksum of the text of all files that it includes, which ccache uses in place of the bytes
# (CCACHE_PCH_EXTSUM). CMake passes the absolute path of the header behind -Xclang, where ccache does not recognise it
# as a path; this script makes it relative.
set -euo pipefail
ccache=$1
compiler=$2
shift 2
output=
arguments=()
while [ $# -gt 0 ]; do
  [ "$1" != -o ] || output=$2
  arguments+=("${1#"$PWD/"}")
  shift
done
case $output in
*.pch)
  "$compiler" "${arguments[@]}"
  {
    "$compiler" --version
    sed 's/\\$//; s/^[^ ]*: //' "$output.d" | tr -s ' ' '\n' | sed '/^$/d' | xargs cat
  } | sha256sum >"$output.sum"
  ;;
*) exec "$ccache" "$compiler" "${arguments[@]}" ;;
esac
