"""Ends a run of two ranks from outside, in several ways; nobody may hang or stay.

usage: ranks_ended.py MODEL DATA FOLDER
"""
import os
import signal
import subprocess
import sys
import time

model, data, folder = sys.argv[1:]


def steps(out):
    try:
        with open(os.path.join(out, "metrics.jsonl")) as file:
            return sum(line.endswith("\n") for line in file)
    except FileNotFoundError:
        return 0


def children(process):
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True).stdout
    return [int(word) for word in listed.split()]


def rank_of(process):
    with open(f"/proc/{process}/environ") as file:
        return int(dict(entry.split("=", 1) for entry in file.read().split("\0") if "=" in entry)["RANK"])


def is_alive(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return ") Z " not in file.read()
    except FileNotFoundError:
        return False


def run(name, end, code, limit):
    """`end` gets the launcher and its ranks when they have trained some steps."""
    out = os.path.join(folder, name)
    process = subprocess.Popen(
        ["fsdpq-run", "train", "--nproc-per-node", "2", "--model_name", model, "--dataset", data, "--train_type", "lora",
         "--lora_rank", "4", "--context_length", "32", "--num_epochs", "100000", "--output_dir", out],
        stderr=subprocess.PIPE, text=True)
    ranks = {}
    try:
        deadline = time.time() + 120
        while steps(out) < 3 and process.poll() is None and time.time() < deadline:
            time.sleep(0.02)
        ranks = {rank_of(child): child for child in children(process.pid)}
        assert sorted(ranks) == [0, 1], ranks
        start = time.time()
        end(process.pid, ranks)
        _, errors = process.communicate(timeout=60)
        took = time.time() - start
    finally:
        process.kill()
        for rank in ranks.values():
            if is_alive(rank):
                os.kill(rank, signal.SIGCONT)
    assert process.returncode == code, (name, process.returncode, errors)
    assert took < limit, (name, took)
    deadline = time.time() + 5
    while any(map(is_alive, ranks.values())) and time.time() < deadline:
        time.sleep(0.02)
    assert not any(map(is_alive, ranks.values())), name
    return out, errors


out, errors = run("killed", lambda _, ranks: os.kill(ranks[1], signal.SIGKILL), 5, 15)
assert "error[FSDPQ-6055]: rank 1 was killed by signal 9" in errors, errors
assert "error[FSDPQ-7001]" in errors, errors
assert not os.path.exists(os.path.join(out, "adapter_model.safetensors"))

out, errors = run("first-killed", lambda _, ranks: os.kill(ranks[0], signal.SIGKILL), 5, 15)
assert "error[FSDPQ-6055]: rank 0 was killed by signal 9" in errors, errors

out, errors = run("stopped", lambda _, ranks: os.kill(ranks[1], signal.SIGSTOP), 5, 25)
assert "error[FSDPQ-7002]" in errors and "rank 1" in errors, errors

for name, number in (("terminated", signal.SIGTERM), ("interrupted", signal.SIGINT)):
    out, errors = run(name, lambda launcher, _: os.kill(launcher, number), 128 + number, 30)
    done = steps(out)
    assert f"stopped by signal {int(number)} after step {done} of 200000" in errors, errors
    assert "error" not in errors, errors
    subprocess.run(["fsdpq-run", "eval", "--model_name", model, "--dataset", data, "--train_type", "lora",
                    "--context_length", "32", "--adapter", out], check=True, capture_output=True)

# One rank alone gets the signal: all stop after the same step.
out, errors = run("one-terminated", lambda _, ranks: os.kill(ranks[1], signal.SIGTERM), 143, 30)
assert f"after step {steps(out)} of 200000" in errors, errors

run("orphaned", lambda launcher, _: os.kill(launcher, signal.SIGKILL), -9, 15)
