# Configuration of the lit suite. Features: what this machine can run.
import os
import shutil
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
for name in ("HOME", "FSDPQ_ORACLE", "FSDPQ_SMOLLM2_GGUF", "PYTHONPATH"):
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

config.available_features.add("cpu-exec")
if os.environ.get("FSDPQ_SMOLLM2_GGUF"):
    config.available_features.add("smollm2")
