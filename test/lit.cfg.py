# Configuration of the lit suite. Features: what this machine can run.
import os
import shutil
import subprocess
import lit.formats

config.name = "fsdpq"
config.test_format = lit.formats.ShTest(not os.environ.get("LIT_USE_INTERNAL_SHELL"))
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "unit", "CMakeLists.txt"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.fsdpq_build, "test")

config.environment["PATH"] = os.pathsep.join(
    [os.path.join(config.fsdpq_build, "bin"), config.llvm_tools, os.environ["PATH"]])
# Kernels compiled by one test serve the next.
config.environment["FSDPQ_CACHE"] = os.path.join(config.fsdpq_build, "test", "kernel-cache")
for name in ("FSDPQ_CUDA_PATH", "CUDA_HOME", "LD_LIBRARY_PATH", "HOME", "FSDPQ_ORACLE", "FSDPQ_SMOLLM2_GGUF", "PYTHONPATH"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

opt = "fsdpq-opt --verify-each"
if lit_config.params.get("verify_roundtrip"):
    opt += " --verify-roundtrip"
config.substitutions += [
    ("%opt", opt),
    ("%models", os.path.join(config.fsdpq_source, "models")),
    ("%inputs", os.path.join(config.test_source_root, "Inputs")),
    ("%python", config.python),
    ("%plugin_dir", os.path.join(config.fsdpq_build, "lib")),
]

# Several tests run at a time: OpenMP's threads must not spin (see fsdpq-run.cpp).
config.environment["OMP_WAIT_POLICY"] = os.environ.get("OMP_WAIT_POLICY", "passive")

config.available_features.add("cpu-exec")
# What trains here does so on the CPU, also on a machine with GPUs.
config.environment["CUDA_VISIBLE_DEVICES"] = ""
# Libraries that stand for those of a machine with two GPUs, which compute nothing.
fake_cuda = os.path.join(config.fsdpq_build, "test", "unit", "device", "fake_cuda")
config.substitutions.append(("%fake_cuda", fake_cuda))
if os.path.exists(os.path.join(fake_cuda, "libcuda.so.1")):
    config.available_features.add("fake-cuda")
# Kernels of GPUs are compiled, which takes no GPU.
nvrtc = os.path.join(config.test_source_root, "Target", "Cuda", "nvrtc.py")
if subprocess.run([config.python, nvrtc, "--probe"], capture_output=True).returncode == 0:
    config.available_features.add("nvrtc")
else:
    lit_config.note("no test of CUDA kernels: there is no NVRTC (see $FSDPQ_CUDA_PATH)")
if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0:
    config.available_features.add("tmpfs")
if subprocess.run([config.python, "-c", "import torch, transformers, peft"],
                  capture_output=True).returncode == 0:
    config.available_features.add("peft")
missing = [name for name in ("munged", "slurmctld", "slurmd", "srun", "sbatch") if not shutil.which(name)]
if not missing and os.geteuid() == 0:
    config.available_features.add("slurm")
else:
    lit_config.note(f"no test under SLURM: {'missing ' + ', '.join(missing) if missing else 'needs root'}")
if shutil.which("ip") and subprocess.run(["ip", "netns", "add", "fsdpq-probe"], capture_output=True).returncode == 0:
    subprocess.run(["ip", "netns", "del", "fsdpq-probe"], capture_output=True)
    config.available_features.add("network-namespaces")
else:
    lit_config.note("no test on two hosts: needs the program ip and the right to make network namespaces")
if os.environ.get("FSDPQ_SMOLLM2_GGUF"):
    config.available_features.add("smollm2")
