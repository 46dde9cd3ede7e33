"""Runs a command under a SLURM of its own, of two nodes that are this machine.

usage: slurm_cluster.py FOLDER COMMAND [WORD]...

FOLDER is for its files. The command finds the cluster through SLURM_CONF and
ends with it; its exit code is this one's. Needs root and the programs of
slurm-wlm and munge; no service that the machine may run is touched.
"""
import os
import secrets
import socket
import subprocess
import sys
import time


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def wait_until(condition, what, seconds=30):
    end = time.time() + seconds
    while not condition():
        if time.time() > end:
            sys.exit(f"{what} did not happen within {seconds} s")
        time.sleep(0.1)


def main():
    folder, *command = sys.argv[1:]
    folder = os.path.abspath(folder)
    os.makedirs(os.path.join(folder, "state"), exist_ok=True)
    # munged insists on folders that nobody else can write to.
    munge = os.path.join("/run", f"fsdpq-munge-{os.getpid()}")
    os.makedirs(munge, mode=0o755)
    services = []
    ports = free_ports(3)

    def start(*words):
        log = open(os.path.join(folder, os.path.basename(words[0]) + ".log"), "ab")
        services.append(subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment))

    environment = dict(os.environ, SLURM_CONF=os.path.join(folder, "slurm.conf"))
    try:
        key = os.path.join(munge, "key")
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(secrets.token_bytes(128))
        sock = os.path.join(munge, "socket")
        start("munged", "--foreground", "--socket", sock, "--key-file", key, "--pid-file", os.path.join(munge, "pid"),
              "--seed-file", os.path.join(munge, "seed"), "--log-file", os.path.join(munge, "log"))
        wait_until(lambda: os.path.exists(sock), "the start of munged")

        host = socket.gethostname().split(".")[0]
        lines = [
            "ClusterName=test", f"SlurmctldHost={host}(127.0.0.1)", f"SlurmctldPort={ports[0]}", "SlurmUser=root",
            "AuthType=auth/munge", f"AuthInfo=socket={sock}", "CredType=cred/munge",
            f"StateSaveLocation={folder}/state", f"SlurmdSpoolDir={folder}/%n", f"SlurmctldPidFile={folder}/ctld.pid",
            f"SlurmdPidFile={folder}/%n.pid", f"SlurmctldLogFile={folder}/slurmctld.log",
            f"SlurmdLogFile={folder}/%n.log", "ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none",
            "SelectType=select/cons_tres", "SelectTypeParameters=CR_Core", "MpiDefault=none", "SlurmdParameters=config_overrides",
            "ReturnToService=2", "KillWait=10", "MessageTimeout=20", "SlurmdTimeout=60"]
        for node, port in zip(("n1", "n2"), ports[1:]):
            lines.append(f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=4 State=UNKNOWN")
        lines.append("PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP")
        with open(environment["SLURM_CONF"], "w") as file:
            file.write("\n".join(lines) + "\n")
        start("slurmctld", "-D", "-i")
        for node in ("n1", "n2"):
            start("slurmd", "-D", "-N", node)

        def is_idle():
            states = subprocess.run(["sinfo", "-h", "-N", "-o", "%t"], env=environment, capture_output=True, text=True)
            return states.stdout.split() == ["idle", "idle"]

        wait_until(is_idle, "the start of SLURM")
        return subprocess.run(command, env=environment, check=False).returncode
    finally:
        for service in reversed(services):
            service.terminate()
        for service in services:
            try:
                service.wait(timeout=20)
            except subprocess.TimeoutExpired:
                service.kill()
        subprocess.run(["rm", "-rf", munge], check=False)


sys.exit(main())
