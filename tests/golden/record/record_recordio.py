"""Record RecordIO files and packed headers of MXNet 1.9.1. Run inside an MXNet 1.9.1 environment:

python tests/golden/record/record_recordio.py
"""

from __future__ import annotations

import json
import pathlib
import random
import struct

import numpy as np

import mxnet as mx

DATA = pathlib.Path(__file__).resolve().parents[1] / "data" / "records"
MAGIC = struct.pack("<I", 0xCED7230A)
HEADERS = [
    [0, 4.0, 2574, 0],
    [5, 4, 1, 2],
    [0, [1, 2, 3], 1, 0],
    [7, [1, 2.5], 3, 9],
    [0, [], 1, 0],
    [0, [3.5], 2**40, 2**63],
]


def payloads():
    """Bytes with the magic at the beginning, the middle, the end, twice, cut and not aligned."""
    chance = random.Random(1)
    fixed = [b"", b"a", b"abcd", MAGIC, MAGIC + MAGIC, b"ab" + MAGIC, b"abcd" + MAGIC + b"xyz"]
    fixed += [b"x" * 7 + MAGIC, b"abcdefgh" + MAGIC, MAGIC + b"1", MAGIC[:3], MAGIC * 5 + b"xy"]
    made = []
    for _ in range(40):
        pieces = [chance.choice([MAGIC, chance.randbytes(chance.randrange(9))]) for _ in range(6)]
        made.append(b"".join(pieces))
    return fixed + made + [chance.randbytes(n) for n in (1000, 4093)]


def main():
    DATA.mkdir(exist_ok=True)
    plain = mx.recordio.MXRecordIO(str(DATA / "plain.rec"), "w")
    indexed = mx.recordio.MXIndexedRecordIO(
        str(DATA / "indexed.idx"), str(DATA / "indexed.rec"), "w"
    )
    for number, payload in enumerate(payloads()):
        plain.write(payload)
        indexed.write_idx(3 * number + 1, payload)
    plain.close()
    indexed.close()
    rows = []
    for flag, label, id_, id2 in HEADERS:
        header = mx.recordio.IRHeader(flag, label, id_, id2)
        packed = mx.recordio.pack(header, b"content")
        found, content = mx.recordio.unpack(packed)
        labels = np.asarray(found.label).tolist()
        rows.append(
            [flag, label, id_, id2, packed.hex(), [found.flag, labels, found.id, found.id2]]
        )
        assert content == b"content"
    (DATA / "headers.json").write_text(
        json.dumps({"payloads": [p.hex() for p in payloads()], "headers": rows})
    )
    print(len(payloads()), "records,", len(rows), "headers")


if __name__ == "__main__":
    main()
