"""SmolLM2-135M-Instruct from its GGUF file ($FSDPQ_SMOLLM2_GGUF) beside what
transformers and peft computed from the same file.

usage: smollm2.py texts|lora SCRATCH
"""
import json
import os
import sys

from running import INPUTS, Comparison, fresh_folder, read_json, run, write_adapter_config
from tensors import l2_norm, read_json_lines, read_tensors, rows, write_records, write_tensors

GOLDEN = os.path.join(INPUTS, "smollm2")
MODEL = os.environ["FSDPQ_SMOLLM2_GGUF"]
LOSS_TOLERANCE, GRAD_NORM_TOLERANCE = 1e-4, 2e-3
# Adapters have no tolerance of their own: that of the norms of the gradients
# they were moved by.
FINAL_TOLERANCE = GRAD_NORM_TOLERANCE


def compare_texts(comparison, expected, scratch):
    """Each text predicts itself: its ids are its labels."""
    data = os.path.join(scratch, "data.jsonl")
    for text in expected["texts"]:
        write_records(data, [text["ids"]])
        got = json.loads(run("eval", f"--model_name={MODEL}", f"--dataset={data}", "--train_type=lora",
                             "--precision=fp32",
                             "--context_length=64"))
        comparison.relative("loss", repr(text["text"]), got["eval_loss"], text["mean_loss"], LOSS_TOLERANCE)


def write_initial_adapter(folder, lora):
    tensors, outputs_of = {}, read_outputs()
    for name, (shape, values) in read_tensors(os.path.join(GOLDEN, "lora_A_initial.safetensors.xz")).items():
        tensors[name] = (shape, values)
        b_name = name.replace("lora_A", "lora_B")
        module = name.split(".lora_A")[0].rsplit(".", 1)[1]
        outputs = outputs_of[module]
        tensors[b_name] = ([outputs, lora["r"]], [0.0] * (outputs * lora["r"]))
    write_tensors(os.path.join(folder, "adapter_model.safetensors"), tensors)
    write_adapter_config(folder, lora["r"], lora["alpha"], lora["targets"])


def read_outputs():
    """Rows of each module's weight."""
    config = read_json(GOLDEN, "expected.json")["config"]
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    keys = config["num_key_value_heads"] * config["head_dim"]
    return {"q_proj": hidden, "k_proj": keys, "v_proj": keys, "o_proj": hidden,
            "gate_proj": inner, "up_proj": inner, "down_proj": hidden}


def compare_lora(comparison, expected, scratch):
    lora = expected["lora"]
    batch = read_tensors(os.path.join(GOLDEN, "batch.safetensors"))
    data, out = os.path.join(scratch, "data.jsonl"), os.path.join(scratch, "out")
    write_records(data, rows(batch["input_ids"]), rows(batch["labels"]))
    adapter = fresh_folder(os.path.join(scratch, "initial"))
    write_initial_adapter(adapter, lora)
    adamw = lora["adamw"]
    run("train", f"--model_name={MODEL}", f"--dataset={data}", "--train_type=lora",
        "--precision=fp32", f"--adapter={adapter}",
        f"--batch_size={len(rows(batch['input_ids']))}", f"--num_epochs={lora['steps']}", "--shuffle=false",
        "--context_length=64", f"--lr={lora['lr']}", f"--optimizer={lora['optimizer']}", f"--wd={adamw['wd']}",
        f"--adam_beta1={adamw['betas'][0]}", f"--adam_beta2={adamw['betas'][1]}", f"--adam_epsilon={adamw['eps']}",
        f"--output_dir={out}")

    metrics = read_json_lines(os.path.join(out, "metrics.jsonl"))
    comparison.equal("number of steps", len(metrics), lora["steps"])
    for got, wanted in zip(metrics, lora["steps_run"]):
        place = f"step {wanted['step']}"
        comparison.relative("loss", place, got["loss"], wanted["loss"], LOSS_TOLERANCE)
        comparison.relative("grad_norm", place, got["grad_norm"], wanted["grad_norm"], GRAD_NORM_TOLERANCE)
        comparison.equal(f"labelled tokens of {place}", got["labelled_tokens"], wanted["tokens"])
    saved = read_tensors(os.path.join(out, "adapter_model.safetensors"))
    comparison.equal("number of saved tensors", len(saved), 2 * 7 * expected["config"]["num_hidden_layers"])
    for name, wanted in lora["final_l2"].items():
        comparison.relative("final_l2", name, l2_norm(saved[name][1]), wanted, FINAL_TOLERANCE)


def main():
    part, scratch = sys.argv[1:]
    fresh_folder(scratch)
    expected = read_json(GOLDEN, "expected.json")
    comparison = Comparison()
    {"texts": compare_texts, "lora": compare_lora}[part](comparison, expected, scratch)
    comparison.finish()


if __name__ == "__main__":
    main()
