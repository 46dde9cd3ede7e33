"""Compares the steps of two metrics files: losses and norms of the gradients.

usage: same_losses.py FILE FILE [RELATIVE TOLERANCE]
"""
import json
import sys

tolerance = float(sys.argv[3]) if len(sys.argv) > 3 else 0
first, second = ([json.loads(line) for line in open(path)] for path in sys.argv[1:3])
assert len(first) == len(second) > 1, (len(first), len(second))
for one, other in zip(first, second):
    for key in ("step", "loss", "grad_norm", "tokens"):
        assert abs(one[key] - other[key]) <= tolerance * abs(one[key]), (key, one, other)
