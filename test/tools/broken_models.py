"""Makes folders and files of broken models out of a sound one.

usage: broken_models.py MODEL OUT
"""
import json
import os
import shutil
import struct
import sys

source, out = sys.argv[1:]
with open(os.path.join(source, "model.safetensors"), "rb") as file:
    sound = file.read()
with open(os.path.join(source, "config.json")) as file:
    config = json.load(file)
(header_size,) = struct.unpack("<Q", sound[:8])
header, body = json.loads(sound[8 : 8 + header_size]), sound[8 + header_size :]


def write(name, weights=sound, config_text=None, **changes):
    folder = os.path.join(out, name)
    os.makedirs(folder)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(weights)
    with open(os.path.join(folder, "config.json"), "w") as file:
        changed = {key: value for key, value in {**config, **changes}.items() if value is not None}
        file.write(json.dumps(changed) if config_text is None else config_text)


def safetensors(header, data=body):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def changed(name, **fields):
    return safetensors({**header, name: {**header[name], **fields}})


shutil.rmtree(out, ignore_errors=True)
embed = "model.embed_tokens.weight"
write("truncated", sound[: len(sound) // 2])
write("headless", sound[:5])
write("huge-header", struct.pack("<Q", 2**63 - 1) + b"{}")
write("deep-header", struct.pack("<Q", 200000) + b"[" * 200000)
write("backwards", changed(embed, data_offsets=[64, 0]))
write("overflow", changed(embed, shape=[2**40, 2**40]))
write("negative", changed(embed, data_offsets=[-98304, 0]))
write("overlap", changed("model.norm.weight", data_offsets=header[embed]["data_offsets"][:1]
                         + [header[embed]["data_offsets"][0] + 256]))
last = max((entry["data_offsets"], name) for name, entry in header.items() if name != "__metadata__")[1]
write("missing", safetensors({name: entry for name, entry in header.items() if name != last},
                             body[: header[last]["data_offsets"][0]]))
norm = header["model.norm.weight"]["data_offsets"][0]
write("not-a-number", safetensors(header, body[:norm] + struct.pack("<f", float("nan")) + body[norm + 4 :]))
bias = "model.layers.0.self_attn.q_proj.bias"  # as Qwen 2 has, and llama has not
write("extra-bias", safetensors({**header, bias: {"dtype": "F32", "shape": [64],
                                                  "data_offsets": [len(body), len(body) + 256]}},
                                body + bytes(256)))
write("narrow", hidden_size=128)
write("deeper", num_hidden_layers=4)
write("half-config", config_text='{"architectures": [')
write("deep-config", config_text="[" * 200000)
write("no-width", hidden_size=None)
write("negative-width", hidden_size=-64)
write("odd-heads", num_key_value_heads=3)
write("biased", attention_bias=True)
write("other", architectures=["MambaForCausalLM"])

for name, content in {
    "not.gguf": b"nothing at all",
    "short.gguf": b"GGUF",
    "version.gguf": b"GGUF" + struct.pack("<IQQ", 99, 0, 0),
    "counts.gguf": b"GGUF" + struct.pack("<IQQ", 3, 2**64 - 1, 2**64 - 1),
    "string.gguf": b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**62),
}.items():
    with open(os.path.join(out, name), "wb") as file:
        file.write(content)
