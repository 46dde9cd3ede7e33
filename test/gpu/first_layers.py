"""Writes the first layers of a Llama GGUF file as a model of its own.

usage: first_layers.py FILE.gguf LAYERS OUT.gguf

For machines to which the whole file cannot be carried. The format is that of
https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3.
"""
import os
import struct
import sys

# Bytes of metadata values by type; 8 is a string, 9 an array.
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
STRING, ARRAY, UINT32 = 8, 9, 4
ALIGNMENT = 32


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, form):
        value, = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return value

    def text(self):
        size = self.number("Q")
        self.at += size
        return self.data[self.at - size:self.at].decode()

    def skip(self, kind):
        if kind == STRING:
            self.text()
        elif kind == ARRAY:
            inner, count = self.number("I"), self.number("Q")
            for _ in range(count):
                self.skip(inner)
        else:
            self.at += SIZES[kind]


def padded(size):
    return -(-size // ALIGNMENT) * ALIGNMENT


def layer_of(name):
    return int(name.split(".")[1]) if name.startswith("blk.") else -1


def main():
    source, layers, target = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    with open(source, "rb") as file:
        data = file.read()
    reader = Reader(data)
    if data[:4] != b"GGUF":
        raise SystemExit(f"{source} is not a GGUF file")
    reader.at = 8
    tensor_count, field_count = reader.number("Q"), reader.number("Q")

    fields = bytearray(data[:reader.at])
    begin = reader.at
    count_at = None
    for _ in range(field_count):
        name, kind = reader.text(), reader.number("I")
        if name.endswith(".block_count"):
            assert kind == UINT32
            count_at = reader.at
        if name == "general.alignment":
            raise SystemExit("general.alignment is set, which is not provided for")
        reader.skip(kind)
    fields += data[begin:reader.at]
    struct.pack_into("<I", fields, count_at, layers)

    infos = []
    for _ in range(tensor_count):
        name = reader.text()
        shape = [reader.number("Q") for _ in range(reader.number("I"))]
        infos.append((name, shape, reader.number("I"), reader.number("Q")))
    start = padded(reader.at)
    ends = dict(zip(sorted(info[3] for info in infos),
                    [*sorted(info[3] for info in infos)[1:], len(data) - start]))
    kept = [info for info in infos if layer_of(info[0]) < layers]

    struct.pack_into("<Q", fields, 8, len(kept))
    offset, contents = 0, []
    for name, shape, kind, place in kept:
        encoded = name.encode()
        fields += struct.pack("<Q", len(encoded)) + encoded
        fields += struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)
        content = data[start + place:start + ends[place]]
        contents.append(content + bytes(padded(len(content)) - len(content)))
        offset += len(contents[-1])
    fields += bytes(padded(len(fields)) - len(fields))
    with open(target + ".part", "wb") as file:
        file.write(bytes(fields))
        file.writelines(contents)
    os.replace(target + ".part", target)
    print(f"{target}: {len(kept)} of {len(infos)} tensors, {layers} layers")


if __name__ == "__main__":
    main()
