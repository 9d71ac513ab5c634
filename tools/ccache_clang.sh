#!/usr/bin/env bash
# Compiles through ccache with Clang, so that another clone finds what this one compiled though it uses a precompiled
# header. usage: ccache_clang.sh CCACHE COMPILER ARGUMENT...; runs in the build folder, as Ninja does.
#
# The bytes of that header hold the paths at which it was made: it is compiled here, and gets a checksum by the text of
# all that it includes, which ccache takes for its bytes (CCACHE_PCH_EXTSUM). CMake names it by its whole path, which
# ccache does not know to be one behind -Xclang: it becomes a relative one.
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
