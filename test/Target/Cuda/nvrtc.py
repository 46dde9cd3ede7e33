"""Compiles CUDA texts with NVRTC and says what ptxas says of them.

usage: nvrtc.py [--arch sm_90a] FILE...

Each FILE holds one text, or several that kern-to-cuda printed, which begin with
lines `// ==== name`. Prints a line a kernel: registers and bytes of spills. Ends
with 1 if a text does not compile, spills with --no-spills, or loses performance
by the account of ptxas. NVRTC is searched where the loader does, then below
FSDPQ_CUDA_PATH and CUDA_HOME; with --probe nothing is compiled and the status
says whether there is one.
"""
import argparse
import ctypes
import os
import re
import sys


def load():
    names = ["libnvrtc.so.13", "libnvrtc.so", "libnvrtc.so.12"]
    for variable in ("FSDPQ_CUDA_PATH", "CUDA_HOME"):
        if variable in os.environ:
            names += [os.path.join(os.environ[variable], folder, name)
                      for folder in ("lib64", "lib") for name in names[:3]]
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            pass
    return None


def compile_text(nvrtc, text, arch):
    """The status and the log."""
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
    options = [f"--gpu-architecture={arch}", "--std=c++17", "-default-device", "--ptxas-options=-v"]
    array = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
    status = nvrtc.nvrtcCompileProgram(program, len(options), array)
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    cubin = b""
    if status == 0:
        nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
        cubin = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetCUBIN(program, cubin)
        cubin = cubin.raw
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return status, log.value.decode(), cubin


def split(path):
    """(name, text) of each text in a file."""
    content = sys.stdin.read() if path == "-" else open(path).read()
    parts = re.split(r"^// ==== (.*)\n", content, flags=re.M)
    if len(parts) == 1:
        return [(path, content)]
    return list(zip(parts[1::2], parts[2::2]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--probe", action="store_true")
    parser.add_argument("--no-spills", action="store_true")
    parser.add_argument("--save", help="folder for the cubins")
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    nvrtc = load()
    if arguments.probe or nvrtc is None:
        return 0 if nvrtc is not None else 1
    failed = False
    for path in arguments.files:
        for name, text in split(path):
            status, log, cubin = compile_text(nvrtc, text, arguments.arch)
            if status != 0:
                print(f"{name}: does not compile\n{log}")
                failed = True
                continue
            registers = re.search(r"Used (\d+) registers", log)
            spills = sum(int(n) for n in re.findall(r"(\d+) bytes spill", log))
            print(f"{name}: {registers.group(1) if registers else '?'} registers, {spills} bytes spilled")
            if arguments.save:
                with open(os.path.join(arguments.save, name + ".cubin"), "wb") as file:
                    file.write(cubin)
            lost = [line for line in log.splitlines() if "Potential Performance Loss" in line]
            if lost or (spills and arguments.no_spills):
                print("\n".join(lost))
                failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
