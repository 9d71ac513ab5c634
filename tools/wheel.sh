#!/usr/bin/env bash
# Builds wheels that run on other machines, and checks them: build/wheel/dist/. usage: tools/wheel.sh [rhizome|gnn ...]
#   rhizome  rhizome-store: the package with the libraries that it needs, the command line, licences and SBOM, and the sdist
#            from which the wheel is built (the default)
#   gnn      rhizome-store-gnn: librhizome_gnn for the torch in build/venv
# Both require a glibc at least as new as that of Ubuntu 22.04; rhizome supports every Python from 3.10 on.
# RHIZOME_PYTHONS="python3.10 ..." lists the Pythons in which the wheel is tried; default: the one in build/venv.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$PWD/build/wheel
platform=manylinux_2_35_$(uname -m)

# Runs a command, and shows the progress of its build; what it says otherwise is shown only if it fails.
logged() {
  "$@" 2>&1 | tools/backend/build_progress.py "$folder/log" && return
  tail -n 40 "$folder/log" >&2
  echo "tools/wheel.sh: failed: $*" >&2
  exit 1
}

# make_wheel NAME MINUTES PROJECT [OPTION of auditwheel...]: builds PROJECT, a folder of the unpacked sdist, brings in the
# libraries that it needs, adds licences and SBOM, and checks the result.
make_wheel() {
  local name=$1 about=$2 project=$3 stage=$folder/$1 build=$folder/source/build/$1
  shift 3
  rm -rf "$stage"
  mkdir "$stage"
  echo "$name: compiling takes $about minutes on 2 cores, less if the compiler cache has the objects"
  logged python -m build --no-isolation --wheel --outdir "$stage/built" -C build-dir="$build" "$project"
  logged auditwheel repair --strip --only-plat --plat "$platform" "$@" --wheel-dir "$stage/repaired" \
    "$stage"/built/*.whl
  logged python -m wheel unpack --dest "$stage/unpacked" "$stage"/repaired/*.whl
  tools/wheel_sbom.py "$stage"/unpacked/* "$build"
  rm -f "$folder/dist/$name"-*.whl
  logged python -m wheel pack --dest-dir "$folder/dist" "$stage"/unpacked/*
  tools/wheel_check.py "$folder/dist/$name"-*.whl "$build"
}

tools/install_deps.sh --wheel
export PATH=$PWD/build/venv/bin:$PATH
export RHIZOME_PROGRESS=0 # of the backend: it is shown here
# The compiler cache finds what the preset `release` has compiled, if compiler and folders have the same names.
export CXX=g++
mkdir -p "$folder/dist"
# The wheels are made of what the sdist holds, so that it is known to build.
rm -rf "$folder"/dist/*.tar.gz "$folder/source"
logged python -m build --no-isolation --sdist --outdir "$folder/dist" .
mkdir -p "$folder/source/build"
tar -xzf "$folder"/dist/*.tar.gz -C "$folder/source" --strip-components 1
ln -s "$PWD/build/venv" "$folder/source/build/venv"

for what in "${@:-rhizome}"; do
  case $what in
    rhizome)
      make_wheel rhizome_store 8 "$folder/source"
      ;;
    gnn)
      make_wheel rhizome_store_gnn 16 "$folder/source/python/gnn" \
        --exclude 'librhizome.so.*' --exclude libtorch_cpu.so --exclude libc10.so
      ;;
    *)
      sed -n 's/^# \{0,1\}//p' "$0" | sed -n 1,6p >&2
      exit 1
      ;;
  esac
done
ls -l "$folder"/dist
