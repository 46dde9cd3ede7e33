#!/usr/bin/env bash
# Installs what building and testing fsdpq needs on Debian 12. Safe to repeat.
set -euo pipefail

packages=(
  g++ cmake ninja-build ccache git unzip python3 python3-pip
  llvm-22-dev libmlir-22-dev mlir-22-tools llvm-22-tools
  libflatbuffers-dev flatbuffers-compiler
  libdnnl-dev ocl-icd-opencl-dev
  nlohmann-json3-dev libyaml-cpp-dev libicu-dev libzstd-dev
  libgtest-dev libgmock-dev
)

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
    missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  echo "setup: everything is installed"
  exit 0
fi

as_root=()
[[ $(id -u) == 0 ]] || as_root=(sudo)
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -q
"${as_root[@]}" apt-get install -y -q --no-install-recommends "${missing[@]}"
