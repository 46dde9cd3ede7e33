"""Safetensors and JSON lines with the standard library only."""
import array
import json
import lzma
import math
import struct

# Types of the golden data. bfloat16 is widened to float, which is exact.
_ARRAY_TYPES = {"I64": "q", "F32": "f", "BF16": "H"}


def _widen(halves):
    bits = array.array("I", (half << 16 for half in halves))
    return array.array("f", bits.tobytes())


def read_tensors(path):
    """{name: (shape, values)} of a file, which may be compressed (.xz)."""
    with (lzma.open if path.endswith(".xz") else open)(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        body = file.read()
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        values = array.array(_ARRAY_TYPES[entry["dtype"]])
        values.frombytes(body[begin:end])
        if entry["dtype"] == "BF16":
            values = _widen(values)
        assert len(values) == math.prod(entry["shape"]), name
        tensors[name] = (entry["shape"], values)
    return tensors


def write_tensors(path, tensors):
    """Writes {name: (shape, floats)} as F32."""
    header, offset = {}, 0
    for name, (shape, values) in tensors.items():
        size = 4 * len(values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, values in tensors.values():
            file.write(array.array("f", values).tobytes())


def rows(tensor):
    """The rows of a tensor: its values cut by the last dimension."""
    shape, values = tensor
    width = shape[-1]
    return [values[i : i + width].tolist() for i in range(0, len(values), width)]


def write_records(path, ids, labels=None):
    """Pre-tokenised records, one a row; without labels the ids are their own."""
    with open(path, "w") as file:
        for row, row_labels in zip(ids, labels or ids, strict=True):
            file.write(json.dumps({"input_ids": row, "labels": row_labels}) + "\n")


def read_json_lines(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def l2_norm(values):
    return math.sqrt(math.fsum(value * value for value in values))
