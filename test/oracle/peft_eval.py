"""Evaluates with an adapter that peft saved; the loss must be that of the
logits which peft computed.

usage: peft_eval.py ADAPTER EXPECTED SCRATCH

EXPECTED holds input_ids and logits_adapter. The loss is the mean over the
tokens after the first of each row, each predicted from those before it.
"""
import json
import math
import os
import sys

from running import MODEL, Comparison, fresh_folder, run
from tensors import read_tensors, rows, write_records

# The logits are held to 1e-4, relative and absolute; their loss is, too.
TOLERANCE = 1e-4


def cross_entropy(logits, label):
    highest = max(logits)
    return highest + math.log(math.fsum(math.exp(logit - highest) for logit in logits)) - logits[label]


def mean_loss(ids, logits):
    """`logits` holds one row for each token of all rows of `ids`."""
    losses, next_logits = [], iter(logits)
    for row in ids:
        of_row = [next(next_logits) for _ in row]
        losses += map(cross_entropy, of_row[:-1], row[1:])
    return math.fsum(losses) / len(losses)


def evaluate(ids, scratch, *options):
    data = os.path.join(scratch, "data.jsonl")
    write_records(data, ids)
    return json.loads(run("eval", f"--model_name={MODEL}", f"--dataset={data}", "--train_type=lora",
                          "--precision=fp32", "--context_length=64", *options))


def main():
    adapter, expected_path, scratch = sys.argv[1:]
    fresh_folder(scratch)
    tensors = read_tensors(expected_path)
    ids = rows(tensors["input_ids"])
    expected = mean_loss(ids, rows(tensors["logits_adapter"]))

    comparison = Comparison()
    got = evaluate(ids, scratch, f"--adapter={adapter}")
    comparison.relative("loss", "the adapter", got["eval_loss"], expected, TOLERANCE)
    comparison.equal("tokens", got["eval_tokens"], sum(len(row) - 1 for row in ids))
    # An adapter that is read and not used would go unnoticed if it did little.
    base = evaluate(ids, scratch)["eval_loss"]
    comparison.equal("the adapter moves the loss", abs(base - expected) > 10 * TOLERANCE * expected, True)
    comparison.finish()


if __name__ == "__main__":
    main()
