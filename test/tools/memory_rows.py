"""Compares the memory tables of two plans: with kept and recomputed layers.

usage: memory_rows.py KEPT RECOMPUTED
"""
import re
import sys


def table(path):
    rows = {}
    with open(path) as file:
        for line in file:
            found = re.match(r"(\S.*?)  +\S+ \S*B +([\d,]+)$", line)
            if found:
                rows[found[1]] = int(found[2].replace(",", ""))
    return rows


kept, recomputed = map(table, sys.argv[1:])
print(kept, recomputed)
assert kept.keys() == recomputed.keys()
parts = {"base", "trained", "gradients", "moments", "step", "activations"}
assert parts <= kept.keys()
for rows in (kept, recomputed):
    assert rows["total"] == sum(rows[part] for part in parts)
for part in parts - {"activations"}:
    assert kept[part] == recomputed[part], part
assert recomputed["activations"] < kept["activations"] / 2  # cheap ones are recomputed in both
