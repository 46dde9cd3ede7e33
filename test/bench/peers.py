"""QLoRA steps of transformers + peft + bitsandbytes, with and without liger-kernel,
for a comparison in one run with `fsdpq_gpu step`: random weights, random tokens.

  python3 peers.py --config config.json --rows 4 --length 2048 [--liger]
      [--checkpointing] [--layers N] [--rank 16] [--steps 6]

Prints one JSON line. Needs torch, transformers, peft and bitsandbytes (and
liger_kernel). Memory is torch's max_memory_allocated.
"""
import argparse
import json
import statistics
import time

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--config", required=True)
parser.add_argument("--rows", type=int, default=4)
parser.add_argument("--length", type=int, default=2048)
parser.add_argument("--rank", type=int, default=16)
parser.add_argument("--steps", type=int, default=6)
parser.add_argument("--layers", type=int)
parser.add_argument("--liger", action="store_true")
parser.add_argument("--checkpointing", action="store_true")
args = parser.parse_args()

import bitsandbytes as bnb
import peft
import transformers

if args.liger:
    from liger_kernel.transformers import apply_liger_kernel_to_llama
    apply_liger_kernel_to_llama()

config = transformers.LlamaConfig(**json.load(open(args.config)))
if args.layers:
    config.num_hidden_layers = args.layers
config._attn_implementation = "sdpa"
torch.manual_seed(0)


def quantise(module):
    """Replaces the projections by 4-bit ones, made on the GPU one by one."""
    for name, child in list(module.named_children()):
        if isinstance(child, torch.nn.Linear) and name != "lm_head":
            linear = bnb.nn.Linear4bit(child.in_features, child.out_features, bias=False,
                                       compute_dtype=torch.bfloat16, quant_type="nf4",
                                       compress_statistics=True)
            weight = torch.empty(child.out_features, child.in_features, dtype=torch.bfloat16,
                                 device="cuda").normal_(std=0.02)
            linear.weight = bnb.nn.Params4bit(weight.cpu(), requires_grad=False, quant_type="nf4",
                                              compress_statistics=True)
            setattr(module, name, linear.cuda())
        else:
            quantise(child)


with torch.device("meta"):
    model = transformers.LlamaForCausalLM(config)
quantise(model)
for name, parameter in list(model.named_parameters()):
    if parameter.is_meta:
        owner = model.get_submodule(name.rpartition(".")[0])
        data = torch.empty(parameter.shape, dtype=torch.bfloat16, device="cuda").normal_(std=0.02)
        setattr(owner, name.rpartition(".")[2], torch.nn.Parameter(data, requires_grad=False))
model.model.rotary_emb = type(model.model.rotary_emb)(config=config, device="cuda")
model.config.use_cache = False
if args.checkpointing:
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model.enable_input_require_grads()
model = peft.get_peft_model(model, peft.LoraConfig(
    r=args.rank, lora_alpha=2 * args.rank, lora_dropout=0.0, task_type="CAUSAL_LM",
    target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]))
for parameter in model.parameters():
    if parameter.requires_grad:
        parameter.data = parameter.data.to("cuda", torch.bfloat16)
model.train()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-5, fused=True)
ids = torch.randint(0, config.vocab_size, (args.rows, args.length), device="cuda")
torch.cuda.synchronize()
torch.cuda.reset_peak_memory_stats()
times = []
for step in range(args.steps + 3):
    begun = time.perf_counter()
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    torch.cuda.synchronize()
    if step >= 3:
        times.append(time.perf_counter() - begun)
seconds = statistics.median(times)
print(json.dumps({
    "who": "transformers+peft+bitsandbytes" + ("+liger" if args.liger else ""),
    "rows": args.rows, "length": args.length, "checkpointing": args.checkpointing,
    "layers": config.num_hidden_layers, "rank": args.rank,
    "tokens_per_second": round(args.rows * args.length / seconds, 1),
    "step_ms": round(seconds * 1e3, 3),
    "peak_gib": round(torch.cuda.max_memory_allocated() / 2**30, 3),
    "loss": round(loss.item(), 4)}), flush=True)
