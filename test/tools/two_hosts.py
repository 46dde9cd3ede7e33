"""Two network namespaces, joined by a pair of virtual Ethernet devices, are two
hosts: each has an address and a loopback of its own. A rank in each trains, with
the variables that torchrun sets and with those that SLURM sets; the results must
be those of one rank.

usage: two_hosts.py MODEL DATA SCRATCH
"""
import filecmp
import os
import subprocess
import sys

HOSTS = ["fsdpq-a", "fsdpq-b"]
ADDRESSES = ["10.83.17.1", "10.83.17.2"]


def ip(*words, check=True):
    return subprocess.run(["ip", *words], check=check, stderr=subprocess.PIPE)


def make_hosts():
    remove_hosts()
    for host in HOSTS:
        ip("netns", "add", host)
    ip("link", "add", "fsdpq-va", "netns", HOSTS[0], "type", "veth", "peer", "name", "fsdpq-vb", "netns", HOSTS[1])
    for host, address, device in zip(HOSTS, ADDRESSES, ["fsdpq-va", "fsdpq-vb"]):
        ip("-n", host, "addr", "add", f"{address}/24", "dev", device)
        ip("-n", host, "link", "set", device, "up")
        ip("-n", host, "link", "set", "lo", "up")


def remove_hosts():
    for host in HOSTS:
        ip("netns", "del", host, check=False)


def words(model, data, output, *more):
    return ["fsdpq-run", "train", "--model_name", model, "--dataset", data, "--output_dir", output,
            "--train_type", "qlora", "--lora_rank", "4", "--context_length", "32", "--batch_size", "1",
            "--max_steps", "2", "--shuffle", "false", "--lr", "1e-3", "--threads", "1", "--deterministic", *more]


def torchrun(rank):
    return {"RANK": rank, "WORLD_SIZE": 2, "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1,
            "MASTER_ADDR": ADDRESSES[0], "MASTER_PORT": 29613}


def slurm(rank):
    return {"SLURM_JOB_ID": 4711, "SLURM_STEP_ID": 0, "SLURM_PROCID": rank, "SLURM_NTASKS": 2,
            "SLURM_LOCALID": 0, "SLURM_NODEID": rank, "SLURM_NNODES": 2, "SLURM_STEP_NUM_TASKS": 2,
            "SLURM_STEP_NUM_NODES": 2, "SLURM_STEP_TASKS_PER_NODE": "1(x2)", "SLURM_STEP_NODELIST": "10.83.17.[1-2]"}


def train_on_both(variables, command, output):
    ranks = []
    for rank, host in enumerate(HOSTS):
        environment = {**os.environ, "FSDPQ_JOB_TOKEN": "0123456789abcdef" * 2}
        environment.update({name: str(value) for name, value in variables(rank).items()})
        ranks.append(subprocess.Popen(["ip", "netns", "exec", host, *command], env=environment))
    codes = [rank.wait(timeout=60) for rank in ranks]
    if codes != [0, 0]:
        raise SystemExit(f"the ranks ended with {codes} ({variables.__name__})")


def main():
    model, data, scratch = sys.argv[1:]
    alone = os.path.join(scratch, "alone")
    subprocess.run(words(model, data, alone, "--gradient_accumulation_steps", "2"), check=True, timeout=60)
    make_hosts()
    try:
        for variables in (torchrun, slurm):
            output = os.path.join(scratch, variables.__name__)
            train_on_both(variables, words(model, data, output), output)
            name = "adapter_model.safetensors"
            if not filecmp.cmp(os.path.join(alone, name), os.path.join(output, name), shallow=False):
                raise SystemExit(f"another adapter than that of one rank ({variables.__name__})")
            print(f"{variables.__name__}: the same adapter")
    finally:
        remove_hosts()


if __name__ == "__main__":
    main()
