#!/usr/bin/env bash
# Checks and measures everything on a GPU machine, without network.
#
#   tools/gpu_check.sh PROGRAMS RESULTS [PART]...
#
# PROGRAMS: the folder that tools/carry.sh's file was unpacked to. RESULTS: a folder
# for one file a part, JSON lines. Parts, all if none is named:
#   device     the contract of devices and communicators
#   kernels    each kernel against the CPU back end (its own process, a time limit)
#   attention  attention on many shapes against torch, and its speed
#   traces     training as recorded by torch, on the GPU
#   ranks      the same by 2 and 4 NCCL ranks, which may share a GPU
#   curve      50 steps of the model $FSDPQ_CURVE_MODEL (first_layers.py) beside the CPU
#   speed      training steps of 7B shapes
#   large      the same of 8B and 70B shapes
#   peers      the same with transformers, peft, bitsandbytes (and liger-kernel)
#   sanitizer  compute-sanitizer on a tiny training step
# Ends with 1 if any check failed or a part gave no result.
set -uo pipefail
programs=$(cd "$1" && pwd)
results=$2
shift 2
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$results"
results=$(cd "$results" && pwd)
export PATH="$programs/bin:$PATH" FSDPQ_CACHE="${FSDPQ_CACHE:-$results/cache}"
export NCCL_NVLS_ENABLE=0 OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
configs=$root/test/gpu/configs

failed=0
fail() {
  echo "FAILED: $*"
  failed=1
}

part_device() {
  LD_LIBRARY_PATH="$programs/bin/lib:${LD_LIBRARY_PATH:-}" timeout 100 "$programs/bin/fsdpq_test_cuda_device" >"$results/device.txt" 2>&1 || fail "device"
  grep -a "FAILED" "$results/device.txt" | head
  tail -2 "$results/device.txt"
}

part_kernels() {
  OMP_NUM_THREADS=4 fsdpq_gpu kernels --seconds 120 --jobs 5 >"$results/kernels.jsonl" 2>"$results/kernels.err" ||
    fail "kernels"
  grep -c '"passed": true' "$results/kernels.jsonl" | sed 's/^/kernels passed: /'
  grep '"passed": false' "$results/kernels.jsonl" | cut -c1-400 | head -40
}

part_attention() {
  fsdpq_gpu attention "$results/attention" >/dev/null
  timeout 150 python3 "$root/test/gpu/attention_check.py" "$results/attention" --jobs 3 --limit 25 \
    >"$results/attention.jsonl" 2>&1 || fail "attention"
  grep '"ok": false' "$results/attention.jsonl" | cut -c1-300 | head
  tail -1 "$results/attention.jsonl"
  timeout 120 python3 "$root/test/gpu/attention_check.py" "$results/attention" --time --limit 40 \
    >"$results/attention-time.jsonl" 2>&1 || fail "times of attention"
  rm -rf "$results/attention"
}

# FILE CASE...
traces() {
  local file=$results/$1 case status
  shift
  : >"$file"
  for case; do
    (cd "$root/test/oracle" &&
      timeout 60 python3 train_trace.py "$case" "$results/scratch" --device cuda) >"$results/trace.out" 2>&1
    status=$?
    ((status == 0)) || fail "trace $case"
    { echo "== $case: exit code $status"; tail -4 "$results/trace.out"; } >>"$file"
    echo "$case: $status: $(tail -1 "$results/trace.out" | cut -c1-200)"
  done
  rm -rf "$results/scratch" "$results/trace.out"
}

part_traces() {
  traces traces.txt full lora lora_bf16 qlora_nf4_dq qlora_nf4_dq_bf16 qlora_fp4 lora_accum2_clip_cosine \
    lora_accum2_clip_linear lora_adam lora_sgd lora_adadelta lora_empty_micro_batch
}

part_ranks() {
  traces ranks.txt lora_dp1 lora_dp2 lora_dp4 lora_dp2_token lora_dp4_token
}

part_curve() {
  [[ -n ${FSDPQ_CURVE_MODEL:-} ]] || { echo "skipped: FSDPQ_CURVE_MODEL names no model"; return; }
  timeout 200 python3 "$root/test/gpu/curve.py" "$FSDPQ_CURVE_MODEL" "$results/curve" \
    >"$results/curve.jsonl" 2>"$results/curve.err" || { fail "curve"; tail -5 "$results/curve.err"; }
  cat "$results/curve.jsonl"
  rm -rf "$results/curve"
}

# NAME CONFIG ROWS LENGTH [option]...
step() {
  local name=$1 config=$2 rows=$3 length=$4
  shift 4
  timeout 200 fsdpq_gpu step --config "$configs/$config.json" --models "$root/models" --name "$name" \
    --rows "$rows" --length "$length" --cache "$FSDPQ_CACHE" "$@" \
    >>"$results/speed.jsonl" 2>"$results/$name.table" || { fail "$name"; tail -5 "$results/$name.table"; return; }
  tail -1 "$results/speed.jsonl"
}

part_speed() {
  : >"$results/speed.jsonl"
  step 7b-4x2048 llama2-7b 4 2048
  step 7b-4x2048-recompute llama2-7b 4 2048 --checkpointing
  step 7b-2x512 llama2-7b 2 512
}

part_large() {
  step 8b-4x2048 llama3-8b 4 2048
  step 70b-2x2048-recompute llama2-70b 2 2048 --checkpointing --steps 3
  step 70b-2x2048 llama2-70b 2 2048 --steps 3
}

part_peers() {
  : >"$results/peers.jsonl"
  local liger
  for liger in "" --liger; do
    timeout 150 python3 "$root/test/bench/peers.py" --config "$configs/llama2-7b.json" --rows 4 --length 2048 $liger \
      >>"$results/peers.jsonl" 2>"$results/peers.err" || { fail "peers $liger"; tail -3 "$results/peers.err"; }
  done
  cat "$results/peers.jsonl"
}

part_sanitizer() {
  local tool
  for tool in memcheck initcheck racecheck synccheck; do
    # Calls that the driver refuses are not what is looked for: one of them asks for
    # parameters until there is none.
    (cd "$root/test/oracle" &&
      timeout 100 compute-sanitizer --tool $tool --target-processes all --report-api-errors no \
        --log-file "$results/$tool.txt" python3 train_trace.py qlora_nf4_dq_bf16 "$results/scratch" \
        --device cuda --lora_dropout 0.1) >"$results/sanitizer.out" 2>&1
    grep -q "done: 12 steps" "$results/sanitizer.out" &&
      grep -qE "SUMMARY: 0 (errors|hazards)" "$results/$tool.txt" || fail "$tool"
    echo "$tool: $(tail -1 "$results/$tool.txt")"
  done
  rm -rf "$results/scratch"
}

parts=("$@")
((${#parts[@]})) || parts=(device kernels attention traces ranks curve speed large peers sanitizer)
for part in "${parts[@]}"; do
  echo "=== $part"
  begun=$SECONDS
  "part_$part"
  echo "=== $part took $((SECONDS - begun)) s"
done
exit $failed
