"""What the oracle tests share: where things are, running a tool, comparing."""
import json
import os
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
INPUTS = os.path.join(HERE, "..", "Inputs", "oracle-train")
MODEL = os.path.join(INPUTS, "llama_gqa")


def read_json(*parts):
    with open(os.path.join(*parts)) as file:
        return json.load(file)


def fresh_folder(path):
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


def run(*words):
    """Runs fsdpq-run; its standard output. Fails as it fails."""
    words = ["fsdpq-run", *map(str, words)]
    print("+", *words, flush=True)
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"fsdpq-run ended with {done.returncode}")
    return done.stdout


def write_adapter_config(folder, rank, alpha, targets):
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": rank,
        "lora_alpha": alpha,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": targets,
    }
    with open(os.path.join(folder, "adapter_config.json"), "w") as file:
        json.dump(config, file)


class Comparison:
    """Collects what differs, so that one run shows all of it."""

    def __init__(self):
        self.compared = 0
        self.failures = []
        self.worst = {}

    def relative(self, kind, place, got, expected, tolerance):
        self._compare(kind, place, got, expected, tolerance, abs(got - expected), abs(expected))

    def absolute(self, kind, place, got, expected, tolerance):
        self._compare(kind, place, got, expected, tolerance, abs(got - expected), 1.0)

    def _compare(self, kind, place, got, expected, tolerance, error, unit):
        self.compared += 1
        self.worst[kind] = max(self.worst.get(kind, 0.0), error / unit if unit else error)
        # Written so that a NaN fails.
        if not error <= tolerance * unit:
            self.failures.append(f"{kind} of {place}: {got!r}, expected {expected!r} within {tolerance}")

    def equal(self, what, got, expected):
        self.compared += 1
        if got != expected:
            self.failures.append(f"{what}: {got!r}, expected {expected!r}")

    def finish(self):
        for failure in self.failures[:40]:
            print("FAILED", failure)
        print(f"{self.compared} values compared, {len(self.failures)} differ; largest errors:",
              ", ".join(f"{kind} {error:.1e}" for kind, error in self.worst.items()))
        if self.failures or not self.compared:
            raise SystemExit(1)
