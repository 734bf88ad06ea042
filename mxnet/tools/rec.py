"""Look into record files, take images out, check them, make their index.

mx rec info train.rec      mx rec check --decode train.rec      mx rec index train.rec
mx rec cat train.rec       mx rec extract train.rec folder/
"""

from __future__ import annotations

import argparse
import collections
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mxnext_cli.output import print_json

from ..error import FormatError, MXNetError
from ..formats import image_codec
from ..formats.atomic import replacing
from ..formats.recordio_file import Damage, RecordReader, read_index
from ..recordio import IRHeader, unpack

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


def records(path: str, problems: list[Damage] | None = None) -> Iterator[tuple[int, bytes]]:
    """Give (offset, record); damage goes to ``problems``, or is raised."""
    for offset, found in RecordReader(path).whole_records():
        if not isinstance(found, Damage):
            yield offset, found
        elif problems is None:
            raise found.error
        else:
            problems.append(found)


def _labels(header: IRHeader) -> list[float]:
    return np.atleast_1d(header.label).tolist()


def info(args: argparse.Namespace) -> int:
    """Print how many records there are, of which kinds and sizes."""
    if args.json:
        from .loading.file_facts import record_facts  # which uses this module

        print_json({"file": args.file, **record_facts(Path(args.file))})
        return 0
    problems: list[Damage] = []
    kinds: collections.Counter = collections.Counter()
    widths: collections.Counter = collections.Counter()
    sizes = []
    for _, record in records(args.file, problems):
        sizes.append(len(record))
        try:
            header, content = unpack(record)
        except FormatError:
            kinds["no image record"] += 1
            continue
        kinds[kind_of(content)] += 1
        widths[len(_labels(header))] += 1
    if problems and not sizes:
        raise FormatError(f"{args.file}: it is not a record file: {problems[0].error}")
    print(f"{args.file}: {Path(args.file).stat().st_size} bytes, {len(sizes)} records")
    if sizes:
        print(f"record sizes: {min(sizes)} to {max(sizes)}, mean {sum(sizes) / len(sizes):.0f}")
        print("contents: " + ", ".join(f"{n} {kind}" for kind, n in kinds.most_common()))
    if widths:
        print("labels: " + ", ".join(f"{width} in {n}" for width, n in sorted(widths.items())))
    index = Path(args.file).with_suffix(".idx")
    print(f"index: {index if index.exists() else 'none'}")
    if problems:
        print(f"damaged parts: {len(problems)} (see: mx rec check)")
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
    if args.number is None:
        return 0
    print(f"{args.file} has no record {args.number}", file=sys.stderr)
    return 1


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
    """Print all that is wrong with a file and its index; return 1 if anything is."""
    problems: list[Damage] = []
    said = []
    places = set()
    for offset, record in records(args.file, problems):
        places.add(offset)
        try:
            header, content = unpack(record)
            if args.decode:
                source = f"id {header.id} at byte {offset}"
                image_codec.decode(content, -1, source=source)
        except FormatError as error:
            if args.decode:
                said.append(str(error))
    said += [f"{d.error} Left out: bytes {d.start} to {d.end}." for d in problems]
    if not places and not problems:
        said.append(f"{args.file}: the file is empty")
    index = Path(args.index) if args.index else Path(args.file).with_suffix(".idx")
    if args.index or index.exists():
        said += _index_problems(index, places)
    for line in said:
        print(line)
    print(f"{args.file}: {len(places)} whole records, {len(said)} problems")
    return 1 if said else 0


def _index_problems(index: Path, places: set[int]) -> list[str]:
    lines = read_index(index, key_type=str, on_error="skip")
    said = [f"{index}: {lines.skipped} lines are not key and offset"] if lines.skipped else []
    said += [f"{index}: key {k} points to byte {at}, where no record begins"
             for k, at in lines if at not in places]  # fmt: skip
    missing = places - {at for _, at in lines}
    if missing:
        said.append(f"{index}: {len(missing)} records are not in the index")
    keys = collections.Counter(key for key, _ in lines)
    said += [f"{index}: key {key} stands there {n} times" for key, n in keys.items() if n > 1]
    return said


def index(args: argparse.Namespace) -> int:
    """Write the index of a file: by the ids of image records, or counted with --count."""
    out = Path(args.out) if args.out else Path(args.file).with_suffix(".idx")
    if out.exists() and not args.force:
        print(f"{out} is there already; --force replaces it", file=sys.stderr)
        return 1
    lines, seen = [], set()
    for number, (offset, record) in enumerate(records(args.file)):
        key = number if args.count else unpack(record)[0].id
        if key in seen:
            print(f"id {key} stands there twice: use --count", file=sys.stderr)
            return 1
        seen.add(key)
        lines.append(f"{key}\t{offset}\n")
    with replacing(out) as file:
        file.write("".join(lines).encode("utf-8"))
    print(f"{len(lines)} records in {out}")
    return 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the commands and their options."""
    commands = parser.add_subparsers(dest="action", required=True, metavar="command")

    def command(name: str, does: Any) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=does.__doc__.partition(";")[0].rstrip("."))
        made.add_argument("file", help="the record file")
        made.set_defaults(does=does)
        return made

    command("info", info).add_argument("--json", action="store_true", help="print JSON")
    made = command("cat", cat)
    made.add_argument("number", nargs="?", type=int, help="write the bytes of this record only")
    made.add_argument("--whole", action="store_true", help="with the header of the image record")
    command("extract", extract).add_argument("folder")
    made = command("check", check)
    made.add_argument("--decode", action="store_true", help="decode every image too")
    made.add_argument("--index", help="the index, if it is not beside the file")
    made = command("index", index)
    made.add_argument("--out", help="where to write it, if not beside the file")
    made.add_argument("--count", action="store_true", help="keys are 0, 1, 2 ..., not ids")
    made.add_argument("--force", action="store_true", help="replace an index that is there")


def run(args: argparse.Namespace) -> int:
    """Do what the options say; return the exit code."""
    try:
        return args.does(args)
    except (MXNetError, OSError) as error:
        print(error, file=sys.stderr)
        return 1


def main(argv: list[str] | None = None) -> int:
    """Run the program with the given arguments, or those of the command line."""
    parser = argparse.ArgumentParser(prog="rec", description=__doc__.partition("\n")[0])
    add_arguments(parser)
    return run(parser.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
