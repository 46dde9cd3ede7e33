"""How compilation grows with depth: the same layer kinds, 2 and 80 layers.

usage: compile_scaling.py [BUILD]        (default: build)

Prints compile time (of the CPU; kernels included, nothing cached), the number of kernels
and the size of the plan, without and with its per-layer tables. For the same
kinds they should be equal within 20 %; the last line says what differs more.
"""
import json
import os
import re
import resource
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BUILD = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build")
DEPTHS = (2, 80)
ROUNDS = 3
LIMIT = 0.2

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "rms_norm_eps": 1e-5,
    "vocab_size": 49152,
}


def cpu_seconds():
    """Of the processes that this one has waited for: blind to others' load."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def table_entries(line):
    """Entries of the offset table that a slice may have (8 bytes each)."""
    long = re.search(r"\((\d+) entries\)", line)
    short = re.search(r"\[([^\]]*)\]", line)
    return int(long[1]) if long else short[1].count(",") + 1 if short else 0


def compile_once(folder, layers):
    """Seconds, kernels, and bytes of the plan for a model of that depth."""
    config = os.path.join(folder, f"{layers}.json")
    plan = os.path.join(folder, f"{layers}.plan")
    with open(config, "w") as file:
        json.dump({**CONFIG, "num_hidden_layers": layers}, file)
    pipeline = f"builtin.module(fsdpq-compile{{config={config} tokens=512}},exec-serialize{{output={plan}}})"
    before = cpu_seconds()
    subprocess.run([os.path.join(BUILD, "bin", "fsdpq-opt"), os.path.join(ROOT, "models", "llama.mlir"),
                    f"--pass-pipeline={pipeline}", "-o", os.devnull], check=True)
    seconds = cpu_seconds() - before
    text = subprocess.run([os.path.join(BUILD, "bin", "fsdpq-translate"), "--plan-to-text", plan],
                          check=True, capture_output=True, text=True).stdout
    kernels = len(re.findall(r"^kernel ", text, re.MULTILINE))
    tables = 8 * sum(map(table_entries, re.findall(r"^slice .*", text, re.MULTILINE)))
    size = os.path.getsize(plan)
    return seconds, kernels, size - tables, size


def measure(layers):
    with tempfile.TemporaryDirectory() as folder:
        rounds = [compile_once(folder, layers) for _ in range(ROUNDS)]
    # The fastest round is the one least disturbed by others.
    return min(rounds)


NAMES = ("compile CPU seconds", "kernels", "plan bytes without tables", "plan bytes")
few, many = (measure(layers) for layers in DEPTHS)
print(f"{'':28}{f'{DEPTHS[0]} layers':>14}{f'{DEPTHS[1]} layers':>14}{'ratio':>8}")
beyond = []
for name, small, large in zip(NAMES, few, many):
    digits = 2 if isinstance(small, float) else 0
    print(f"{name:28}{small:14,.{digits}f}{large:14,.{digits}f}{large / small:8.2f}")
    if name != NAMES[3] and abs(large / small - 1) > LIMIT:
        beyond.append(name)
print("more than 20 % apart: " + ", ".join(beyond) if beyond else "all within 20 %")
