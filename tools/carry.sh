#!/usr/bin/env bash
# Packs fsdpq_gpu for a machine that has neither LLVM nor this project's libraries:
# MLIR and LLVM are linked in, other libraries lie beside it, and the test of devices.
# bin/fsdpq-run is fsdpq_gpu by another name. See tools/gpu_check.sh.
#
#   tools/carry.sh FILE.tar.xz [BUILD]      BUILD: build (made by the preset release)
set -euo pipefail
file=${1:?usage: tools/carry.sh FILE.tar.xz [BUILD]}
root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "${2:-$root/build}" && pwd)
ninja -C "$build" carried-fsdpq_gpu fsdpq_test_cuda_device
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/bin/lib"
cp "$build/carried/fsdpq_gpu" "$build/unit/fsdpq_test_cuda_device" "$scratch/bin"
# The C library is the machine's own; all others come along.
ldd "$scratch"/bin/fsdpq_* | awk '$3 ~ /^\// {print $3}' |
  grep -Ev '/(libc|libm|libdl|librt|libpthread|libresolv)\.so' |
  xargs -I{} cp -nL {} "$scratch/bin/lib"
ln "$scratch/bin/fsdpq_gpu" "$scratch/bin/fsdpq-run"
cp -r "$root/models" "$scratch/models"
strip --strip-unneeded "$scratch"/bin/lib/*.so* 2>/dev/null || true
tar -C "$scratch" -c . | xz -T2 -3 >"$file.part"
mv "$file.part" "$file"
ls -l "$file"
