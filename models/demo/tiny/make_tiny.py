#!/usr/bin/env python3
"""Makes the bundled tiny llama model: a Hugging Face folder with random weights.

    pip install numpy tokenizers
    python make_tiny.py [--out FOLDER]      (default: the folder of this file)

It writes config.json, model.safetensors, tokenizer.json and
tokenizer_config.json. The tokenizer is a byte-level BPE trained on
../train.jsonl (the evaluation records are left out, so that they stay unseen);
the weights are drawn from a seeded generator. Two runs with the same versions
of numpy and tokenizers give the same bytes; the files kept here were made with
numpy 2.4.6 and tokenizers 0.23.3.

The model has the shapes of a real llama: grouped-query attention, gated MLP,
tied embeddings. Every matrix has a multiple of 64 elements, so quantisation in
blocks of 64 leaves no partial block; the rows of mlp.down_proj are 176 long, so
there the blocks cross rows, which a reader of the format must handle.
"""

import argparse
import json
import pathlib
import struct

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).resolve().parent
SEED = 20240229
BOS, EOS = "<s>", "</s>"

VOCAB = 512
HIDDEN = 64
INTERMEDIATE = 176
LAYERS = 2
HEADS = 4
KV_HEADS = 2
POSITIONS = 512
WEIGHT_STD = 0.02


def train_tokenizer(records):
    """A byte-level BPE: 2 special tokens, 256 bytes, the rest learned merges."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(
        add_prefix_space=False, use_regex=True
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB,
        special_tokens=[BOS, EOS],
        # All bytes, not only those seen, so any text can be encoded.
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    texts = [r[key] for r in records for key in ("instruction", "input", "output")]
    tokenizer.train_from_iterator(texts, trainer)
    # Llama tokenizers put the begin token in front of every text.
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A",
        pair=f"{BOS} $A {BOS}:1 $B:1",
        special_tokens=[(BOS, tokenizer.token_to_id(BOS))],
    )
    assert tokenizer.get_vocab_size() == VOCAB
    return tokenizer


def make_config(tokenizer):
    """The configuration in the spelling of transformers 4, which 5 also reads."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": tokenizer.token_to_id(BOS),
        "eos_token_id": tokenizer.token_to_id(EOS),
        "head_dim": HIDDEN // HEADS,
        "hidden_act": "silu",
        "hidden_size": HIDDEN,
        "initializer_range": WEIGHT_STD,
        "intermediate_size": INTERMEDIATE,
        "max_position_embeddings": POSITIONS,
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS,
        "num_key_value_heads": KV_HEADS,
        "rms_norm_eps": 1e-05,
        "rope_scaling": None,
        "rope_theta": 10000.0,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        "use_cache": True,
        "vocab_size": VOCAB,
    }


def make_tokenizer_config():
    return {
        "add_prefix_space": False,
        "bos_token": BOS,
        "clean_up_tokenization_spaces": False,
        "eos_token": EOS,
        "model_max_length": POSITIONS,
        "tokenizer_class": "PreTrainedTokenizerFast",
    }


def tensor_shapes():
    """Name and shape of every tensor; matrices are [out_features, in_features].

    There is no lm_head.weight: it is tied to the embedding.
    """
    kv = HIDDEN // HEADS * KV_HEADS
    yield "model.embed_tokens.weight", (VOCAB, HIDDEN)
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}."
        yield prefix + "input_layernorm.weight", (HIDDEN,)
        yield prefix + "self_attn.q_proj.weight", (HIDDEN, HIDDEN)
        yield prefix + "self_attn.k_proj.weight", (kv, HIDDEN)
        yield prefix + "self_attn.v_proj.weight", (kv, HIDDEN)
        yield prefix + "self_attn.o_proj.weight", (HIDDEN, HIDDEN)
        yield prefix + "post_attention_layernorm.weight", (HIDDEN,)
        yield prefix + "mlp.gate_proj.weight", (INTERMEDIATE, HIDDEN)
        yield prefix + "mlp.up_proj.weight", (INTERMEDIATE, HIDDEN)
        yield prefix + "mlp.down_proj.weight", (HIDDEN, INTERMEDIATE)
    yield "model.norm.weight", (HIDDEN,)


def to_bf16(values):
    """Rounds finite float32 values to bfloat16 bits, ties to even."""
    bits = values.astype("<f4").view("<u4")
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")


def write_safetensors(path):
    """Header length (u64, little endian), JSON header, then the tensors' bytes."""
    generator = np.random.default_rng(SEED)
    header = {"__metadata__": {"format": "pt"}}
    data = bytearray()
    for name, shape in tensor_shapes():
        if len(shape) == 1:  # Norm weights start as the identity.
            values = np.ones(shape, dtype=np.float32)
        else:
            values = generator.normal(0.0, WEIGHT_STD, shape).astype(np.float32)
        begin = len(data)
        data += to_bf16(values).tobytes()
        header[name] = {
            "dtype": "BF16",
            "shape": list(shape),
            "data_offsets": [begin, len(data)],
        }
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % 8)  # Readers map the data at 8-byte alignment.
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="ascii")


def main():
    parser = argparse.ArgumentParser(description="Make the bundled tiny model.")
    parser.add_argument("--out", type=pathlib.Path, default=HERE)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)

    lines = (HERE.parent / "train.jsonl").read_text(encoding="ascii").splitlines()
    tokenizer = train_tokenizer([json.loads(line) for line in lines])
    tokenizer.save(str(out / "tokenizer.json"))
    write_json(out / "tokenizer_config.json", make_tokenizer_config())
    write_json(out / "config.json", make_config(tokenizer))
    write_safetensors(out / "model.safetensors")


if __name__ == "__main__":
    main()
