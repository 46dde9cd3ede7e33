"""Starts two ranks with torchrun's variables and prints how they end.

usage: ranks_by_hand.py MODEL OUT DATA OF RANK 0 DATA OF RANK 1 CODE OF RANK 0 CODE OF RANK 1
"""
import os
import socket
import subprocess
import sys

model, out, *rest = sys.argv[1:]
data, codes = rest[:2], rest[2:]
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]


def start(rank):
    variables = {"RANK": rank, "WORLD_SIZE": 2, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": 2, "MASTER_ADDR": "localhost",
                 "MASTER_PORT": port, "OMP_NUM_THREADS": 1}
    return subprocess.Popen(
        ["fsdpq-run", "train", "--model_name", model, "--dataset", data[rank], "--train_type", "lora", "--lora_rank", "4",
         "--context_length", "32", "--output_dir", out],
        env=dict(os.environ, **{name: str(value) for name, value in variables.items()}),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


processes = [start(rank) for rank in (0, 1)]
for rank, process in enumerate(processes):
    output, _ = process.communicate(timeout=120)
    print(f"rank {rank}: {process.returncode}\n{output}", flush=True)
    assert process.returncode == int(codes[rank]), rank
