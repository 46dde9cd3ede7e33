"""Stops a training run by a signal after a few steps; it must save what it has
and end with 128 + the signal's number.

usage: stopped_run.py SIGNAL MODEL DATA OUT
"""
import json
import os
import signal
import subprocess
import sys
import time

signal_name, model, data, out = sys.argv[1:]


def steps():
    try:
        with open(os.path.join(out, "metrics.jsonl")) as file:
            return [json.loads(line)["step"] for line in file if line.endswith("\n")]
    except FileNotFoundError:
        return []


def stop_by(number):
    run = subprocess.Popen(
        ["fsdpq-run", "train", "--model_name", model, "--dataset", data, "--train_type", "lora", "--lora_rank", "4",
         "--context_length", "32", "--lr", "1e-4", "--num_epochs", "100000", "--output_dir", out],
        stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.time() + 120
        while len(steps()) < 3 and run.poll() is None and time.time() < deadline:
            time.sleep(0.01)
        run.send_signal(number)
        _, errors = run.communicate(timeout=120)
    finally:
        run.kill()
    assert run.returncode == 128 + number, (run.returncode, errors)
    done = steps()
    assert done == list(range(1, len(done) + 1)) and len(done) >= 3, done
    assert f"stopped by signal {int(number)} after step {len(done)} of 400000" in errors, errors
    subprocess.run(["fsdpq-run", "eval", "--model_name", model, "--dataset", data, "--train_type", "lora",
                    "--context_length", "32", "--adapter", out], check=True)


# Under nohup the tests' own processes ignore it, and a run that starts so does too.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
stop_by(getattr(signal, signal_name))
