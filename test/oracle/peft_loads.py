"""Trains adapters and loads them with Python's peft: both must compute the same
losses. Needs torch, transformers and peft.

usage: peft_loads.py SCRATCH
"""
import json
import os
import sys

import peft
import torch
import transformers

from running import INPUTS, MODEL, Comparison, fresh_folder, run
from tensors import read_tensors, rows, write_records

TOLERANCE = 1e-5  # relative, of the loss


def main():
    (scratch,) = sys.argv[1:]
    fresh_folder(scratch)
    ids = rows(read_tensors(os.path.join(INPUTS, "batches_b4.safetensors"))["input_ids"])
    train_data, data, out = (os.path.join(scratch, name) for name in ("train.jsonl", "row.jsonl", "out"))
    write_records(train_data, ids)
    run("train", f"--model_name={MODEL}", f"--dataset={train_data}", "--train_type=lora", "--precision=fp32",
        "--lora_rank=4",
        "--lora_target_modules=all-linear", "--context_length=64", "--lr=1e-2", f"--output_dir={out}")

    base = transformers.AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32)
    comparison = Comparison()
    for index, row in enumerate(ids[:4]):
        tokens = torch.tensor([row])
        with torch.no_grad():
            without = base(input_ids=tokens, labels=tokens).loss.item()
            model = peft.PeftModel.from_pretrained(base, out)
            expected = model(input_ids=tokens, labels=tokens).loss.item()
            base = model.unload()
        write_records(data, [row])
        got = json.loads(run("eval", f"--model_name={MODEL}", f"--dataset={data}", "--train_type=lora",
                             "--precision=fp32", "--context_length=64", f"--adapter={out}"))
        comparison.relative("loss", f"row {index}", got["eval_loss"], expected, TOLERANCE)
        comparison.equal("the adapter moves the loss", abs(expected - without) > 1e-2, True)
    comparison.finish()


if __name__ == "__main__":
    main()
