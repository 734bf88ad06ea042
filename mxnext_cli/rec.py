"""`mx rec`: inspects record files, extracts images, checks files, writes their index."""

from __future__ import annotations

import argparse
import collections
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mxnet.error import FormatError
from mxnet.formats import image_codec
from mxnet.formats.atomic import replacing
from mxnet.formats.recordio_file import Damage, RecordReader, read_index
from mxnet.recordio import IRHeader, unpack

from . import CommandError
from .output import print_json, refuse_existing

Facts = dict[str, Any]

KINDS = {
    b"\xff\xd8\xff": ".jpg",
    b"\x89PNG": ".png",
    b"BM": ".bmp",
    b"GIF8": ".gif",
    b"RIFF": ".webp",
    b"II*\0": ".tif",
    b"MM\0*": ".tif",
}


def kind_of(content: bytes) -> str:
    """Return the extension that fits the first bytes of an image, or '.bin'.

    >>> kind_of(bytes.fromhex("ffd8ffe0"))
    '.jpg'
    """
    return next((kind for start, kind in KINDS.items() if content.startswith(start)), ".bin")


def records(path: str | Path, problems: list[Damage] | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, record); damage is added to ``problems``, or raised."""
    for offset, record in RecordReader(path).whole_records():
        if not isinstance(record, Damage):
            yield offset, record
        elif problems is None:
            raise record.error
        else:
            problems.append(record)


def _labels(header: IRHeader) -> list[float]:
    return np.atleast_1d(header.label).tolist()


class Survey(NamedTuple):
    """Content of a record file."""

    sizes: list[int]
    kinds: collections.Counter[str]  # by the extension of images; "" for other records
    widths: collections.Counter[int]  # of labels
    damages: list[Damage]


def survey(path: str | Path) -> Survey:
    """Count the records of a file by kind and by number of labels."""
    counts = Survey([], collections.Counter(), collections.Counter(), [])
    for _, record in records(path, counts.damages):
        counts.sizes.append(len(record))
        try:
            header, content = unpack(record)
        except FormatError:
            counts.kinds[""] += 1
            continue
        counts.kinds[kind_of(content)] += 1
        counts.widths[len(_labels(header))] += 1
    return counts


def record_facts(path: Path) -> Facts:
    """Return the facts of a record file: number, contents and sizes of the records."""
    sizes, kinds, widths, damages = survey(path)
    if not sizes:
        raise CommandError(f"{path}: there is no record in it")
    index = path.with_suffix(".idx")
    return {
        "kind": "records",
        "records": len(sizes),
        "record_bytes": {"smallest": min(sizes), "largest": max(sizes)},
        "contents": {kind or "other": n for kind, n in kinds.most_common()},
        "labels_per_record": dict(widths),
        "index": str(index) if index.exists() else None,
        "problems": [f"bytes {d.start} to {d.end} are damaged: {d.error}" for d in damages[:20]],
    }


def info(args: argparse.Namespace) -> int:
    """Print the number, kinds and sizes of the records."""
    if args.json:
        print_json({"file": args.file, **record_facts(Path(args.file))})
        return 0
    sizes, kinds, widths, damages = survey(args.file)
    if damages and not sizes:
        raise FormatError(f"{args.file}: it is not a record file: {damages[0].error}")
    print(f"{args.file}: {Path(args.file).stat().st_size} bytes, {len(sizes)} records")
    if sizes:
        print(f"record sizes: {min(sizes)} to {max(sizes)}, mean {sum(sizes) / len(sizes):.0f}")
        contents = (f"{n} {kind or 'no image record'}" for kind, n in kinds.most_common())
        print(f"contents: {', '.join(contents)}")
    if widths:
        print("labels: " + ", ".join(f"{width} in {n}" for width, n in sorted(widths.items())))
    index = Path(args.file).with_suffix(".idx")
    print(f"index: {index if index.exists() else 'none'}")
    if damages:
        print(f"damaged parts: {len(damages)} (see: mx rec check)")
    return 0


def cat(args: argparse.Namespace) -> int:
    """Print a line for each record, or the bytes of one."""
    for number, (offset, record) in enumerate(records(args.file)):
        if args.number is not None:
            if number == args.number:
                sys.stdout.buffer.write(record if args.whole else unpack(record)[1])
                return 0
            continue
        try:
            header, content = unpack(record)
        except FormatError:
            print(f"{number}\toffset {offset}\t{len(record)} bytes")
            continue
        labels = " ".join(f"{label:g}" for label in _labels(header))
        about = f"id {header.id}\tlabel {labels}\t{len(content)} bytes\t{kind_of(content)}"
        print(f"{number}\toffset {offset}\t{about}")
    if args.number is not None:
        raise CommandError(f"{args.file} has no record {args.number}")
    return 0


def extract(args: argparse.Namespace) -> int:
    """Write the images as files, and a list of them."""
    folder = Path(args.folder)
    folder.mkdir(parents=True, exist_ok=True)
    used: collections.Counter = collections.Counter()
    lines = []
    for _, record in records(args.file):
        header, content = unpack(record)
        used[header.id] += 1
        again = f"_{used[header.id]}" if used[header.id] > 1 else ""
        name = f"{header.id}{again}{kind_of(content)}"
        (folder / name).write_bytes(content)
        labels = "\t".join(f"{label:f}" for label in _labels(header))
        lines.append(f"{header.id}\t{labels}\t{name}\n")
    name = Path(args.file).stem + ".lst"
    with replacing(folder / name) as file:
        file.write("".join(lines).encode("utf-8"))
    print(f"{len(lines)} images and {name} in {folder}")
    return 0


def check(args: argparse.Namespace) -> int:
    """Print all problems of a file and its index; return 1 if there are any."""
    problems: list[Damage] = []
    messages = []
    offsets = set()
    for offset, record in records(args.file, problems):
        offsets.add(offset)
        try:
            header, content = unpack(record)
            if args.decode:
                source = f"id {header.id} at byte {offset}"
                image_codec.decode(content, -1, source=source)
        except FormatError as error:
            if args.decode:
                messages.append(str(error))
    messages += [f"{d.error} Left out: bytes {d.start} to {d.end}." for d in problems]
    if not offsets and not problems:
        messages.append(f"{args.file}: the file is empty")
    index = Path(args.index) if args.index else Path(args.file).with_suffix(".idx")
    if args.index or index.exists():
        messages += _index_problems(index, offsets)
    for line in messages:
        print(line)
    print(f"{args.file}: {len(offsets)} whole records, {len(messages)} problems")
    return 1 if messages else 0


def _index_problems(index: Path, offsets: set[int]) -> list[str]:
    lines = read_index(index, key_type=str, on_error="skip")
    messages = [f"{index}: {lines.skipped} lines are not key and offset"] if lines.skipped else []
    messages += [f"{index}: key {k} points to byte {at}, where no record begins"
             for k, at in lines if at not in offsets]  # fmt: skip
    missing = offsets - {at for _, at in lines}
    if missing:
        messages.append(f"{index}: {len(missing)} records are not in the index")
    keys = collections.Counter(key for key, _ in lines)
    messages += [f"{index}: {n} lines have the key {key}" for key, n in keys.items() if n > 1]
    return messages


def index(args: argparse.Namespace) -> int:
    """Write the index of a file: by the ids of image records, or counted with --count."""
    out = Path(args.out) if args.out else Path(args.file).with_suffix(".idx")
    refuse_existing([out], force=args.force)
    lines, seen, damages = [], set(), []
    for number, (offset, record) in enumerate(records(args.file, damages)):
        key = number if args.count else unpack(record)[0].id
        if key in seen:
            raise CommandError(f"{args.file}: two records have the id {key}: use --count")
        seen.add(key)
        lines.append(f"{key}\t{offset}\n")
    for damage in damages:
        print(f"{damage.error} Left out: bytes {damage.start} to {damage.end}.", file=sys.stderr)
    if damages and not (args.skip_damaged and lines):
        hint = "; --skip-damaged indexes the whole ones" if lines else ""
        raise CommandError(f"{args.file}: {len(lines)} whole records{hint}")
    with replacing(out) as file:
        file.write("".join(lines).encode("utf-8"))
    print(f"{len(lines)} records in {out}")
    return 0


ACTIONS = {"info": info, "cat": cat, "extract": extract, "check": check, "index": index}


def run(args: argparse.Namespace) -> int:
    """Run with the given options; return the exit code."""
    return ACTIONS[args.action](args)
