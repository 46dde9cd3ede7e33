"""One training step of SmolLM2-135M-Instruct, beside torch on the same cores.

usage: smollm2_step.py [BUILD]      (default: build)

2 rows of 256 tokens, f32, LoRA of rank 8 on all seven projections, AdamW. The
model is $FSDPQ_SMOLLM2_GGUF. With torch, transformers and peft importable (and
gguf, which transformers reads the file with), they run the same step on as many
threads, and the ratio is printed.
"""
import importlib.util
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BUILD = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build")
MODEL = os.path.abspath(os.environ["FSDPQ_SMOLLM2_GGUF"])
THREADS = len(os.sched_getaffinity(0))
ROWS, TOKENS, VOCABULARY = 2, 256, 49152
WARM_UP, STEPS = 2, 5
RANK, ALPHA, RATE = 8, 16, 1e-4
MODULES = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def batches():
    generator = random.Random(1)
    return [[[generator.randrange(VOCABULARY) for _ in range(TOKENS)] for _ in range(ROWS)]
            for _ in range(WARM_UP + STEPS)]


def time_fsdpq():
    """Seconds of the steps, and their losses."""
    with tempfile.TemporaryDirectory() as folder:
        data, out = os.path.join(folder, "data.jsonl"), os.path.join(folder, "out")
        with open(data, "w") as file:
            for batch in batches():
                for row in batch:
                    file.write(json.dumps({"input_ids": row}) + "\n")
        subprocess.run(
            [os.path.join(BUILD, "bin", "fsdpq-run"), "train", "--model_name", MODEL, "--dataset", data,
             "--train_type", "lora", "--precision", "fp32", "--lora_dropout", "0", "--lora_rank", str(RANK), "--lora_alpha", str(ALPHA),
             "--lora_target_modules", ",".join(MODULES), "--batch_size", str(ROWS), "--context_length", str(TOKENS),
             "--shuffle", "false", "--lr", str(RATE), "--threads", str(THREADS), "--output_dir", out],
            check=True, stderr=subprocess.DEVNULL)
        with open(os.path.join(out, "metrics.jsonl")) as file:
            steps = [json.loads(line) for line in file]
    return [step["step_seconds"] for step in steps], [step["loss"] for step in steps]


def time_torch():
    import peft
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(THREADS)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        os.path.dirname(MODEL), gguf_file=os.path.basename(MODEL), dtype=torch.float32)
    model.config.use_cache = False
    model = peft.get_peft_model(model, peft.LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=MODULES))
    optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=RATE, betas=(0.9, 0.95),
                                  eps=1e-5, weight_decay=0.1)
    seconds, losses = [], []
    for batch in batches():
        ids = torch.tensor(batch)
        start = time.perf_counter()
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - start)
    return seconds, losses


def report(name, seconds):
    median = statistics.median(seconds[WARM_UP:])
    print(f"{name:22}{median:8.3f} s a step{ROWS * TOKENS / median:10.0f} tokens/s", flush=True)
    return median


print(f"SmolLM2-135M-Instruct, f32 LoRA r {RANK}, {ROWS} x {TOKENS} tokens, {THREADS} threads, "
      f"median of {STEPS} steps")
ours, our_losses = time_fsdpq()
ours = report("fsdpq-run", ours)
missing = [name for name in ("torch", "transformers", "peft", "gguf") if not importlib.util.find_spec(name)]
if missing:
    print("no comparison with torch: not importable: " + ", ".join(missing))
else:
    theirs, their_losses = time_torch()
    theirs = report("torch, transformers", theirs)
    # Of the first step: adapters start with B = 0, so they change nothing yet.
    print(f"loss of the first step: {our_losses[0]:.5f} and {their_losses[0]:.5f}")
    print(f"speed of fsdpq-run relative to torch: {theirs / ours:.2f}")
