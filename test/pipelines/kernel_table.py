"""Checks what the kernels of a GPU plan need.

usage: fsdpq-translate --kernel-table PLAN | kernel_table.py [--may-spill PREFIX]

Every kernel has code, can be launched on the largest GPU, and spills no registers;
those whose names begin with PREFIX may spill 64 bytes.
"""
import argparse
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--may-spill")
prefix = parser.parse_args().may_spill

rows = [line.split() for line in sys.stdin]
assert rows[0][:3] == ["kernel", "entry", "threads"], rows[0]
faults = []
for name, entry, *numbers in rows[1:]:
    threads, registers, spilled, shared, code = map(int, numbers)
    if not (0 < threads <= 1024 and 0 < registers <= 255 and code > 0 and shared <= 227 * 1024):
        faults.append(f"{name}: {threads} threads, {registers} registers, {shared} bytes shared, {code} bytes of code")
    if spilled > (64 if prefix and name.startswith(prefix) else 0):
        faults.append(f"{name} ({entry}) spills {spilled} bytes")
print(f"{len(rows) - 1} kernels, most registers {max(int(row[3]) for row in rows[1:])}")
sys.exit("\n".join(faults) or None)
