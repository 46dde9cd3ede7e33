#!/usr/bin/env bash
# Packs the programs for a machine that has neither LLVM nor this project's
# libraries: MLIR and LLVM are linked in, other libraries lie beside the programs.
# There: tar xf FILE; bin/fsdpq-run, bin/fsdpq_gpu (see tools/gpu_check.sh).
#
#   tools/carry.sh FILE.tar.xz [BUILD]      BUILD: build (made by the preset release)
set -euo pipefail
file=${1:?usage: tools/carry.sh FILE.tar.xz [BUILD]}
root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "${2:-$root/build}" && pwd)
ninja -C "$build" carried-fsdpq-run carried-fsdpq_gpu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/bin/lib"
for program in fsdpq-run fsdpq_gpu; do
  cp "$build/carried/$program" "$scratch/bin"
  # The C library is the machine's own; all others come along.
  ldd "$build/carried/$program" | awk '$3 ~ /^\// {print $3}' |
    grep -Ev '/(libc|libm|libdl|librt|libpthread|libresolv)\.so' |
    xargs -I{} cp -nL {} "$scratch/bin/lib"
done
cp -r "$root/models" "$scratch/models"
strip --strip-unneeded "$scratch"/bin/lib/*.so* 2>/dev/null || true
tar -C "$scratch" -c . | xz -T2 -6 >"$file.part"
mv "$file.part" "$file"
ls -l "$file"
