"""Trains with every token of the capacity in use and compares what the process
took with what the plan said."""
import json
import random
import re
import subprocess
import sys

model, out = sys.argv[1:]
random.seed(1)
data = out + "/rows.jsonl"
with open(data, "w") as file:
    for _ in range(64):
        file.write(json.dumps({"input_ids": [random.randrange(512) for _ in range(512)]}) + "\n")

planned_bytes = []
for ranks, checkpointing in ((1, "false"), (1, "true"), (2, "false")):
    run = subprocess.run(
        ["fsdpq-run", "train", "--model_name", model, "--dataset", data,
         "--train_type", "qlora", "--batch_size", str(64 // ranks), "--context_length", "512",
         "--nproc_per_node", str(ranks),
         "--max_steps", "1", "--use_gradient_checkpointing", checkpointing,
         "--output_dir", out + "/adapter", "--overwrite"],
        capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    found = re.search(r"memory used: ([\d,]+) bytes at the peak, ([\d,]+) planned", run.stderr)
    assert found, run.stderr
    used, planned = (int(number.replace(",", "")) for number in found.groups())
    planned_bytes.append(planned)
    print(ranks, checkpointing, used, planned)
    assert abs(used - planned) <= max(0.02 * planned, 32 << 20), (ranks, checkpointing, used, planned)
# Recomputing must save most of the residuals of two layers.
assert planned_bytes[1] < 0.7 * planned_bytes[0], planned_bytes
