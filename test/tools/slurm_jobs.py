"""Runs jobs of the batch script, under the SLURM that the environment names.

usage: slurm_jobs.py SCRIPT MODEL DATA FOLDER
"""
import json
import os
import shutil
import subprocess
import sys
import time

script, model, data, folder = sys.argv[1:]
# Both nodes are this machine, and nobody else knows their names.
environment = dict(os.environ, MASTER_ADDR="127.0.0.1", FSDPQ_RUN=shutil.which("fsdpq-run"), OMP_NUM_THREADS="1")
environment.pop("FSDPQ_JOB_TOKEN", None)


def submit(name, *options):
    log = os.path.join(folder, name + ".log")
    job = subprocess.run(
        ["sbatch", "--parsable", "--output", log, script, "2", "--model_name", model, "--dataset", data, "--train_type",
         "lora", "--lora_rank", "4", "--context_length", "32", "--output_dir", os.path.join(folder, name), *options],
        env=environment, check=True, capture_output=True, text=True).stdout.strip()
    return job, log


def wait(job, log, seconds=90):
    """The job's exit code."""
    end = time.time() + seconds
    while time.time() < end:
        shown = subprocess.run(["scontrol", "--oneliner", "show", "job", job], capture_output=True, text=True).stdout
        fields = dict(field.split("=", 1) for field in shown.split() if "=" in field)
        if fields["JobState"] not in ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING"):
            return int(fields["ExitCode"].split(":")[0])
        time.sleep(0.2)
    sys.exit(f"job {job} has not ended:\n{open(log).read()}")


def steps(name):
    try:
        with open(os.path.join(folder, name, "metrics.jsonl")) as file:
            return [json.loads(line)["step"] for line in file if line.endswith("\n")]
    except FileNotFoundError:
        return []


job, log = submit("four", "--lr", "1e-3", "--deterministic")
assert wait(job, log) == 0, open(log).read()
text = open(log).read()
assert "note: 4 processes, 2 on this machine" in text, text
assert steps("four") == [1, 2], text

# A signal, as before the time limit: all end after the same step, and save.
job, log = submit("stopped", "--num_epochs", "100000")
end = time.time() + 90
while len(steps("stopped")) < 3 and time.time() < end:
    time.sleep(0.05)
subprocess.run(["scancel", "--signal=TERM", job], check=True)
code = wait(job, log)
text = open(log).read()
assert code == 143, (code, text)
assert f"stopped by signal 15 after step {steps('stopped')[-1]} of 200000" in text, text
assert os.path.exists(os.path.join(folder, "stopped", "adapter_model.safetensors")), text

# What one rank cannot read ends the job on both nodes.
job, log = submit("failed", "--max_steps", "0")
assert wait(job, log) == 2, open(log).read()
