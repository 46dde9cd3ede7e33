"""Trains as a recorded run did and compares every step and the result.

usage: train_trace.py CASE SCRATCH [OPTION VALUE]...

The recordings (Inputs/oracle-train/CASE/expected.json) were made with torch's
optimizers, peft and bitsandbytes; each names its settings, its tolerances and
per step the learning rate, the loss and the norm of the gradients. The options
are added to the command line of fsdpq-run.
"""
import os
import shutil
import sys

from running import INPUTS, MODEL, Comparison, fresh_folder, read_json, run, write_adapter_config
from tensors import l2_norm, read_json_lines, read_tensors, rows, write_records

# What holds in all recordings unless a case says otherwise.
RANK, ALPHA = 8, 16
TARGETS = ["q_proj", "k_proj", "v_proj", "up_proj", "down_proj", "gate_proj"]
LEARNING_RATE, WEIGHT_DECAY = 1e-3, 0.1


def dealt(all_rows, row_count, ranks):
    """The recordings deal single rows, row r + N * i of a batch to rank r;
    fsdpq deals micro-batches, one after the other."""
    per_rank = row_count // ranks
    return [all_rows[start + rank + ranks * i]
            for start in range(0, len(all_rows), row_count)
            for rank in range(ranks)
            for i in range(per_rank)]


def write_inputs(case, initial, scratch):
    """Data set and first adapter of the case; how many rows a batch has, how
    many batches there are."""
    tensors = read_tensors(os.path.join(INPUTS, f"batches_{case['batches']}.safetensors"))
    count, row_count, _ = tensors["input_ids"][0]
    ranks = case.get("world", 1)
    # Padding stays: it is on the right, where causal attention does not see it,
    # and its labels are -100.
    write_records(os.path.join(scratch, "data.jsonl"),
                  dealt(rows(tensors["input_ids"]), row_count, ranks),
                  dealt(rows(tensors["labels"]), row_count, ranks))
    if case["kind"] != "full":
        adapter = fresh_folder(os.path.join(scratch, "initial"))
        shutil.copyfile(os.path.join(INPUTS, initial.removeprefix("train/")),
                        os.path.join(adapter, "adapter_model.safetensors"))
        write_adapter_config(adapter, RANK, ALPHA, TARGETS)
    return row_count, count


def options_of(case, steps, row_count, batch_count, scratch):
    accumulation = case.get("accum", 1)
    options = {
        "model_name": MODEL,
        "dataset": os.path.join(scratch, "data.jsonl"),
        "output_dir": os.path.join(scratch, "out"),
        "train_type": case["kind"],
        "precision": "bf16" if case.get("dtype") == "bfloat16" else "fp32",
        "batch_size": row_count // accumulation // case.get("world", 1),
        "gradient_accumulation_steps": accumulation,
        "max_steps": steps,
        "num_epochs": -(-steps // batch_count),
        "shuffle": "false",
        "context_length": 64,
        "lr": case.get("lr", LEARNING_RATE),
        "lr_scheduler": case.get("schedule", "constant"),
        "optimizer": case.get("optimizer", "adamw"),
        "wd": WEIGHT_DECAY,
    }
    # On a machine with several GPUs as many are started unless told.
    options["nproc_per_node"] = case.get("world", 1)
    if case.get("world", 1) > 1:
        options["threads"] = 1
    if case.get("weighting") == "token":
        options["loss_average"] = "token"
    if "clip" in case:
        options["max_grad_norm"] = case["clip"]
    if case["kind"] == "qlora":
        options["quant_type"] = case.get("qtype", "nf4")
        options["double_quant"] = str(case.get("nested", True)).lower()
    if case["kind"] != "full":
        options["adapter"] = os.path.join(scratch, "initial")
    return options


def compare_steps(comparison, metrics, expected):
    tolerance = expected["tolerance"]
    comparison.equal("steps", [step["step"] for step in metrics], [step["step"] for step in expected["steps"]])
    for got, wanted in zip(metrics, expected["steps"]):
        place = f"step {wanted['step']}"
        comparison.relative("lr", place, got["lr"], wanted["lr"], 1e-12)
        comparison.relative("loss", place, got["loss"], wanted["loss"], tolerance["loss_rel"])
        comparison.relative("grad_norm", place, got["grad_norm"], wanted["grad_norm"], tolerance["grad_norm_rel"])
        tokens = wanted.get("tokens", sum(micro["tokens"] for micro in wanted.get("micro", [])))
        comparison.equal(f"labelled tokens of {place}", got["labelled_tokens"], tokens)


def compare_result(comparison, saved, expected, final_path):
    tolerance = expected["tolerance"]
    comparison.equal("names of the saved tensors", sorted(saved), sorted(expected["final_l2"]))
    for name, wanted in expected["final_l2"].items():
        if name in saved:
            comparison.relative("final_l2", name, l2_norm(saved[name][1]), wanted, tolerance["final_l2_rel"])
    if not expected["final_stored"] or "final_abs" not in tolerance:
        return
    final = read_tensors(final_path)
    assert final
    for name, (shape, values) in final.items():
        comparison.equal(f"shape of {name}", saved[name][0], shape)
        for index, (got, wanted) in enumerate(zip(saved[name][1], values, strict=True)):
            comparison.absolute("final", f"{name}[{index}]", got, wanted, tolerance["final_abs"])


def main():
    name, scratch, *more = sys.argv[1:]
    fresh_folder(scratch)
    expected = read_json(INPUTS, name, "expected.json")
    case, steps = expected["case"], len(expected["steps"])
    row_count, batch_count = write_inputs(case, expected["initial"], scratch)
    options = options_of(case, steps, row_count, batch_count, scratch)
    run("train", *(f"--{key}={value}" for key, value in options.items()), *more)

    comparison = Comparison()
    compare_steps(comparison, read_json_lines(os.path.join(scratch, "out", "metrics.jsonl")), expected)
    result = "model.safetensors" if case["kind"] == "full" else "adapter_model.safetensors"
    compare_result(comparison, read_tensors(os.path.join(scratch, "out", result)), expected,
                   os.path.join(INPUTS, name, "final.safetensors"))
    comparison.finish()


if __name__ == "__main__":
    main()
