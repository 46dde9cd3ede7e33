"""Predicted against measured step times on the CPU.

One run on two ranks describes the machine (train --save_hardware); then the
steps of other configurations are predicted (plan --hardware) and measured, one
after the other.

usage: predict.py FSDPQ_RUN MODEL SCRATCH     (a model of some 100 M parameters)
"""
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys

# Options beside those that all share; the first configuration is measured to
# describe the machine.
CONFIGURATIONS = {
    "calibration: qlora r16, 1 x 256": ["--train_type", "qlora", "--lora_rank", "16", "--batch_size", "1"],
    "qlora r16, recomputed, 1 x 256": ["--train_type", "qlora", "--lora_rank", "16", "--batch_size", "1",
                                       "--use_gradient_checkpointing", "true"],
    "lora r16, shard_grad_op, 1 x 256": ["--train_type", "lora", "--lora_rank", "16", "--batch_size", "1",
                                         "--sharding_strategy", "shard_grad_op"],
    "qlora r64, 2 x 256": ["--train_type", "qlora", "--lora_rank", "64", "--batch_size", "2"],
}
CONTEXT, STEPS, RANKS = 256, 6, 2


def write_rows(path):
    random.seed(1)
    with open(path, "w") as file:
        for _ in range(2 * RANKS * STEPS):
            ids = [random.randrange(1000, 40000) for _ in range(CONTEXT)]
            file.write(json.dumps({"input_ids": ids, "labels": ids}) + "\n")


def common(model):
    return ["--model_name", model, "--context_length", str(CONTEXT), "--lora_target_modules", "all-linear"]


def measure(run, model, scratch, options, more=()):
    output = os.path.join(scratch, "out")
    subprocess.run([run, "train", *common(model), *options, "--dataset", os.path.join(scratch, "rows.jsonl"),
                    "--output_dir", output, "--overwrite", "--max_steps", str(STEPS), "--num_epochs", "4",
                    "--nproc-per-node", str(RANKS), "--threads", "1", *more],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(os.path.join(output, "metrics.jsonl")) as file:
        seconds = [json.loads(line)["step_seconds"] for line in file]
    return statistics.median(seconds[1:])


def predict(run, model, options, hardware):
    text = subprocess.run([run, "plan", *common(model), *options, "--world_size", str(RANKS), "--hardware", hardware],
                          check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    number, unit = re.search(r"^optimizer step +([0-9.]+) (s|ms|us)$", text, re.MULTILINE).groups()
    return float(number) * {"s": 1, "ms": 1e-3, "us": 1e-6}[unit]


def main():
    run, model, scratch = sys.argv[1:]
    shutil.rmtree(scratch, ignore_errors=True)
    os.makedirs(scratch)
    write_rows(os.path.join(scratch, "rows.jsonl"))
    hardware = os.path.join(scratch, "this-machine.json")
    print("configuration | predicted s | measured s | predicted / measured")
    for number, (name, options) in enumerate(CONFIGURATIONS.items()):
        more = ["--save_hardware", hardware] if number == 0 else []
        measured = measure(run, model, scratch, options, more)
        predicted = predict(run, model, options, hardware)
        print(f"{name} | {predicted:.2f} | {measured:.2f} | {predicted / measured:.2f}", flush=True)


if __name__ == "__main__":
    main()
