"""Create image lists (`.lst`) and pack the listed images into record files.

``python -m mxnet.tools.im2rec`` equals ``mx im2rec``; both have the options of MXNet's im2rec.py.
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

if not __package__:  # run as a script, as MXNet's tool is
    import runpy

    sys.path[0] = str(Path(__file__).resolve().parents[2])
    runpy.run_module("mxnet.tools.im2rec", run_name="__main__", alter_sys=True)
    sys.exit()

from mxnext_cli import commands

from .. import recordio
from ..error import MXNetError
from ..formats import image_codec
from ..formats.atomic import replacing
from ..formats.recordio_file import ListedImage, read_list
from ..visualization.tracking import progress

SHUFFLE_SEED = 100  # MXNet's seed: the same folder gives the same list
MAX_WAITING = 64  # maximum number of packed records per thread waiting to be written


# -- lists ----------------------------------------------------------------------------------------


def list_images(
    root: str | os.PathLike[str], recursive: bool, exts: Iterable[str]
) -> Iterator[tuple[int, str, int]]:
    """Yield (number, path below the root, label): each folder with images is a class."""
    exts = {extension.lower() for extension in exts}
    classes: dict[str, int] = {}
    number = 0
    for folder, below, files in os.walk(root, followlinks=True):
        below.sort()
        for name in sorted(files) if recursive or folder == os.fspath(root) else ():
            path = Path(folder, name)
            if path.suffix.lower() in exts and path.is_file():
                label = classes.setdefault(folder, len(classes)) if recursive else 0
                yield number, os.path.relpath(path, root), label
                number += 1
        if not recursive:
            return


def write_list(path: Path, images: Iterable[tuple]) -> None:
    """Write a `.lst` file with index, labels and path in each line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        for index, name, *labels in images:
            values = "".join(f"{label:f}\t" for label in labels)
            file.write(f"{index}\t{values}{name}\n".encode("utf-8", "surrogateescape"))


def make_lists(args: argparse.Namespace) -> int:
    """Write the lists of a folder: chunks, and parts for training, test and validation."""
    images = list(list_images(args.root, args.recursive, args.exts))
    if not images:
        print(f"im2rec: {_why_empty(args)}", file=sys.stderr)
        return 1
    if args.recursive:
        folders = {Path(name).parent.as_posix(): label for _, name, label in images}
        for folder, label in sorted(folders.items(), key=lambda pair: pair[1]):
            print(folder, label)
    if args.shuffle:
        random.Random(SHUFFLE_SEED).shuffle(images)
    size = -(-len(images) // args.chunks)
    for chunk in range(args.chunks):
        part = images[chunk * size : (chunk + 1) * size]
        suffix = f"_{chunk}" if args.chunks > 1 else ""
        tested = int(size * args.test_ratio)
        trained = int(size * args.train_ratio)
        if args.train_ratio == 1.0:
            write_list(Path(f"{args.prefix}{suffix}.lst"), part)
            continue
        if args.test_ratio:
            write_list(Path(f"{args.prefix}{suffix}_test.lst"), part[:tested])
        if args.train_ratio + args.test_ratio < 1.0:
            write_list(Path(f"{args.prefix}{suffix}_val.lst"), part[tested + trained :])
        write_list(Path(f"{args.prefix}{suffix}_train.lst"), part[tested : tested + trained])
    print(f"im2rec: {_describe(images, args)}", file=sys.stderr)
    return 0


def _why_empty(args: argparse.Namespace) -> str:
    kinds = " ".join(args.exts)
    if not args.recursive and next(list_images(args.root, True, args.exts), None) is not None:
        return f"{args.root} has images only in folders below it: use --recursive"
    return f"{args.root} has no images ({kinds}); set other extensions with --exts"


def _describe(images: list[tuple[int, str, int]], args: argparse.Namespace) -> str:
    """Return a summary of a list, with the reason if all labels are equal."""
    classes = len({label for _, _, label in images})
    text = f"listed {len(images)} images of {classes} class{'es' if classes > 1 else ''}"
    if not args.recursive:
        return f"{text}: without --recursive all have the label 0"
    if classes == 1:
        return f"{text}: each folder is a class, and all images are in one"
    return text


# -- records --------------------------------------------------------------------------------------


class Packing(NamedTuple):
    """Options of packing."""

    root: Path
    resize: int = 0
    center_crop: bool = False
    quality: int = 95
    encoding: str = ".jpg"
    color: int = 1
    pack_label: bool = False
    pass_through: bool = False

    def pack(self, image: ListedImage) -> bytes:
        """Return the record of a listed image."""
        labels: float | np.ndarray = image.labels[0]
        if self.pack_label and len(image.labels) > 1:
            labels = np.array(image.labels, np.float32)
        header = recordio.IRHeader(0, labels, image.index, 0)
        path = self.root / image.path
        try:
            content = path.read_bytes()
        except OSError as error:
            raise MXNetError(f"{path}: {error.strerror}") from error
        if self.pass_through:
            return recordio.pack(header, content)
        pixels = image_codec.decode(content, self.color, rgb=False, source=str(path))
        pixels = self._transform(pixels)
        return recordio.pack_img(header, pixels, self.quality, self.encoding)

    def _transform(self, pixels: np.ndarray) -> np.ndarray:
        height, width = pixels.shape[:2]
        if self.center_crop:
            edge = min(height, width)
            top, left = (height - edge) // 2, (width - edge) // 2
            pixels = pixels[top : top + edge, left : left + edge]
            height = width = edge
        if not self.resize:
            return pixels
        if height > width:
            size = self.resize, height * self.resize // width
        else:
            size = width * self.resize // height, self.resize
        return image_codec.opencv().resize(pixels, size)


def lists_of(prefix: str) -> list[Path]:
    """Return the list files in a folder, or those with this prefix."""
    path = Path(prefix)
    inside = sorted(p for p in path.glob("*.lst") if p.is_file()) if path.is_dir() else []
    beginning = (p for p in path.parent.glob("*.lst") if p.name.startswith(path.name))
    return inside or sorted(p for p in beginning if p.is_file())


def make_records(args: argparse.Namespace) -> int:
    """Pack the images of all lists of the prefix; return 1 if some were skipped."""
    files = lists_of(args.prefix) or _lists_of_folder(args)
    if not files:
        return 1
    names = set(Packing._fields) - {"root"}
    packing = Packing(Path(args.root), **{name: getattr(args, name) for name in names})
    if not packing.pass_through:
        try:
            image_codec.opencv()  # check before opening files
        except MXNetError as error:
            print(f"im2rec: {error}", file=sys.stderr)
            return 1
    left_out = 0
    for path in files:
        print(f"Creating {path.with_suffix('.rec')} from {path}")
        left_out += pack_list(path, packing, args.num_thread)
    if left_out:
        print(f"{left_out} lines or images were left out", file=sys.stderr)
    return 1 if left_out else 0


def _lists_of_folder(args: argparse.Namespace) -> list[Path]:
    """Create the missing list, with a class for each folder if there are folders."""
    print(f"im2rec: writing {args.prefix}.lst, the list of images in {args.root}", file=sys.stderr)
    images = list_images(args.root, True, args.exts)
    args.recursive = args.recursive or any(Path(name).parent.name for _, name, _ in images)
    return lists_of(args.prefix) if make_lists(args) == 0 else []


def pack_list(path: Path, packing: Packing, threads: int = 1) -> int:
    """Write the `.rec` and `.idx` files of a list; return the number of skipped lines.

    Both are written atomically. If there are no records, existing files are unchanged.
    """
    images = read_list(path, on_error="skip")
    left_out = images.skipped
    if left_out:
        print(f"{path}: {left_out} lines are not index, labels and path", file=sys.stderr)
    rec, idx = path.with_suffix(".rec"), path.with_suffix(".idx")
    file = recordio.MXIndexedRecordIO(idx, rec, "w")
    with file:
        records = _pack_in_order(images, packing, max(1, threads))
        for image, record in progress(records, rec.name, len(images), unit=" images"):
            if isinstance(record, Exception):
                print(f"left out {image.path}: {record}", file=sys.stderr)
                left_out += 1
            else:
                file.write_idx(image.index, record)
        if not file.keys:
            file.discard()
            print(f"{path}: there is no image to pack; {rec} is not written", file=sys.stderr)
            return max(1, left_out)
    return left_out


def _pack_in_order(
    images: list[ListedImage], packing: Packing, threads: int
) -> Iterator[tuple[ListedImage, bytes | Exception]]:
    """Pack in several threads, with a bounded queue before the writer."""
    with ThreadPoolExecutor(threads) as pool:
        waiting: collections.deque[tuple[ListedImage, Future]] = collections.deque()
        rest = iter(images)
        while True:
            while len(waiting) < threads * MAX_WAITING and (image := next(rest, None)) is not None:
                waiting.append((image, pool.submit(packing.pack, image)))
            if not waiting:
                return
            image, work = waiting.popleft()
            error = work.exception()
            if error is not None and not isinstance(error, MXNetError):
                raise error
            yield image, error or work.result()


# -- command line ---------------------------------------------------------------------------------


def run(args: argparse.Namespace) -> int:
    """Run with the given options; return the exit code."""
    args.root = args.root or args.root_option
    if not args.root or not Path(args.root).is_dir():
        print(f"im2rec: folder not found: {args.root!r}", file=sys.stderr)
        return 2
    if args.chunks < 1 or not 0 <= args.train_ratio <= 1 or not 0 <= args.test_ratio <= 1:
        print("im2rec: --chunks is 1 or more, ratios are from 0 to 1", file=sys.stderr)
        return 2
    return make_lists(args) if args.list else make_records(args)


def main(argv: list[str] | None = None) -> int:
    """Run the program with the given arguments, or those of the command line."""
    parser = commands.Parser(prog="im2rec", description=(__doc__ or "").partition("\n")[0])
    commands.im2rec(parser)
    return run(parser.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
