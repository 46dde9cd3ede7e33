"""Writes pre-tokenised records of random ids.

usage: rows.py FILE RECORDS TOKENS
"""
import json
import random
import sys

path, records, tokens = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
random.seed(1)
with open(path, "w") as file:
    for _ in range(records):
        file.write(json.dumps({"input_ids": [random.randrange(384) for _ in range(tokens)]}) + "\n")
