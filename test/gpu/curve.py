"""Compares loss curves of the same QLoRA run on the CPU and on the GPU.

usage: curve.py MODEL SCRATCH [--steps 50]

Three runs with the same data and seeds: bf16 on the GPU, bf16 and f32 on the
CPU. The two bf16 curves may be apart by what bf16 alone makes of the CPU's
curve, which the third run tells. One JSON line; exit code 1 if they are
further apart.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def train(arguments, name, *options):
    folder = os.path.join(arguments.scratch, name)
    begun = time.monotonic()
    subprocess.run(
        ["fsdpq-run", "train", "--nproc_per_node", "1", "--model_name", arguments.model, "--train_type", "qlora",
         "--dataset", os.path.join(ROOT, "models/demo/train.jsonl"), "--output_dir", folder,
         "--lora_rank", "16", "--lora_alpha", "32", "--batch_size", "4", "--context_length", "144",
         "--lr", "1e-3", "--num_epochs", "10", "--max_steps", str(arguments.steps), *options],
        check=True, stdout=subprocess.DEVNULL, stderr=sys.stderr)
    with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as file:
        losses = [json.loads(line)["loss"] for line in file]
    assert len(losses) == arguments.steps, f"{name} has {len(losses)} steps"
    return losses, time.monotonic() - begun


def distances(some, others):
    return [abs(a - b) / b for a, b in zip(some, others, strict=True)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("scratch")
    parser.add_argument("--steps", type=int, default=50)
    arguments = parser.parse_args()

    gpu, gpu_seconds = train(arguments, "gpu", "--device", "cuda", "--precision", "bf16")
    cpu, cpu_seconds = train(arguments, "cpu", "--device", "cpu", "--precision", "bf16")
    exact, _ = train(arguments, "exact", "--device", "cpu", "--precision", "fp32")
    apart, noise = distances(gpu, cpu), distances(cpu, exact)
    agrees = (statistics.mean(apart) <= 1.5 * statistics.mean(noise)
              and max(apart) <= 2 * max(noise))
    print(json.dumps({
        "case": "curve", "ok": agrees, "steps": arguments.steps,
        "mean_apart": statistics.mean(apart), "max_apart": max(apart),
        "mean_noise": statistics.mean(noise), "max_noise": max(noise),
        "first": [gpu[0], cpu[0], exact[0]], "last": [gpu[-1], cpu[-1], exact[-1]],
        "gpu_seconds": gpu_seconds, "cpu_seconds": cpu_seconds}))
    raise SystemExit(not agrees)


if __name__ == "__main__":
    main()
