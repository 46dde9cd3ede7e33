"""Losses of runs whose records are equal and whose weights do not change.

usage: dropout_losses.py NONE HALF AGAIN SEED      folders of runs
       dropout_losses.py NONE --evaluated FILE     what eval printed
"""
import json
import os
import sys


def losses(folder):
    with open(os.path.join(folder, "metrics.jsonl")) as file:
        return [json.loads(line)["loss"] for line in file]


none = losses(sys.argv[1])
assert len(none) == 6 and len(set(none)) == 1, none
if sys.argv[2] == "--evaluated":
    with open(sys.argv[3]) as file:
        evaluated = json.load(file)["eval_loss"]
    assert abs(evaluated - none[0]) < 1e-6 * none[0], (evaluated, none[0])
else:
    half, again, seed = map(losses, sys.argv[2:])
    assert len(set(half)) == 6, half
    assert half == again, (half, again)
    assert not set(half) & set(seed), (half, seed)
    # The adapter has learnt this record; with half of its input it knows it less.
    assert min(half) > none[0], (half, none[0])
