"""Make lists of images (`.lst`) and pack the listed images into record files.

mx im2rec --list --recursive train images/     writes train.lst
mx im2rec --resize 256 train images/           writes train.rec and train.idx, and the list if
                                               there is none
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

if not __package__:  # run by its path, as programs do that look for MXNet's tool
    import runpy

    sys.path[0] = str(Path(__file__).resolve().parents[2])
    runpy.run_module("mxnet.tools.im2rec", run_name="__main__", alter_sys=True)
    sys.exit()

from .. import recordio
from ..error import MXNetError
from ..formats import image_codec
from ..formats.atomic import replacing
from ..formats.recordio_file import ListedImage, read_list
from ..tracking import progress

SHUFFLE_SEED = 100  # MXNet's own: the same folder gives the same list
EXTENSIONS = (".jpeg", ".jpg", ".png")
WAITING = 64  # packed records for each thread that wait to be written


# -- lists ----------------------------------------------------------------------------------------


def list_images(
    root: str | os.PathLike[str], recursive: bool, exts: Iterable[str]
) -> Iterator[tuple[int, str, int]]:
    """Give (number, path below the root, label): each folder with images is a class."""
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
    """Write a `.lst` file: index, label(s) and path in each line."""
    with replacing(path) as file:
        for index, name, *labels in images:
            values = "".join(f"{label:f}\t" for label in labels)
            file.write(f"{index}\t{values}{name}\n".encode("utf-8", "surrogateescape"))


def make_lists(args: argparse.Namespace) -> int:
    """Write the list of a folder, in chunks and in parts for training, test and validation."""
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
    """Return why no image was found, and what to do."""
    kinds = " ".join(args.exts)
    if not args.recursive and next(list_images(args.root, True, args.exts), None) is not None:
        return f"{args.root} has images only in folders below it: use --recursive"
    return f"{args.root} has no images ({kinds}); --exts names other extensions"


def _describe(images: list[tuple[int, str, int]], args: argparse.Namespace) -> str:
    """Return what a list holds, and how its labels came about if they are all the same."""
    classes = len({label for _, _, label in images})
    said = f"listed {len(images)} images of {classes} class{'es' if classes > 1 else ''}"
    if not args.recursive:
        return f"{said}: without --recursive all have the label 0"
    if classes == 1:
        return f"{said}: each folder is a class, and all images are in one"
    return said


# -- records --------------------------------------------------------------------------------------


class Packing(NamedTuple):
    """How images are packed."""

    root: Path
    resize: int = 0
    center_crop: bool = False
    quality: int = 95
    encoding: str = ".jpg"
    color: int = 1
    pack_label: bool = False
    pass_through: bool = False

    def packed(self, image: ListedImage) -> bytes:
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
        pixels = self._changed(pixels)
        return recordio.pack_img(header, pixels, self.quality, self.encoding)

    def _changed(self, pixels: np.ndarray) -> np.ndarray:
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
    """Return the list files that a prefix means: all in a folder, or those that begin with it."""
    path = Path(prefix)
    inside = sorted(p for p in path.glob("*.lst") if p.is_file()) if path.is_dir() else []
    beginning = (p for p in path.parent.glob("*.lst") if p.name.startswith(path.name))
    return inside or sorted(p for p in beginning if p.is_file())


def make_records(args: argparse.Namespace) -> int:
    """Pack the images of all lists of the prefix; return 1 if some were left out."""
    files = lists_of(args.prefix) or _lists_of_folder(args)
    if not files:
        return 1
    names = set(Packing._fields) - {"root"}
    packing = Packing(Path(args.root), **{name: getattr(args, name) for name in names})
    if not packing.pass_through:
        try:
            image_codec.opencv()  # before any file is opened
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
    """Make the list that is missing, with a class for each folder if there are folders."""
    print(f"im2rec: there is no list {args.prefix}*.lst, so it is made", file=sys.stderr)
    found = list_images(args.root, True, args.exts)
    args.recursive = args.recursive or any(Path(name).parent.name for _, name, _ in found)
    return lists_of(args.prefix) if make_lists(args) == 0 else []


def pack_list(path: Path, packing: Packing, threads: int = 1) -> int:
    """Write the `.rec` and `.idx` of a list, in its order; return how many lines were left out.

    Both appear when they are complete. Without a single record, older ones stay as they are.
    """
    images = read_list(path, on_error="skip")
    left_out = images.skipped
    if left_out:
        print(f"{path}: {left_out} lines are not index, labels and path", file=sys.stderr)
    rec, idx = path.with_suffix(".rec"), path.with_suffix(".idx")
    with recordio.MXIndexedRecordIO(idx, rec, "w") as file:
        records = _packed_in_order(images, packing, max(1, threads))
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


def _packed_in_order(
    images: list[ListedImage], packing: Packing, threads: int
) -> Iterator[tuple[ListedImage, bytes | Exception]]:
    """Pack in several threads, not too far ahead of the writer."""
    with ThreadPoolExecutor(threads) as pool:
        waiting: collections.deque[tuple[ListedImage, Future]] = collections.deque()
        rest = iter(images)
        while True:
            while len(waiting) < threads * WAITING and (image := next(rest, None)) is not None:
                waiting.append((image, pool.submit(packing.packed, image)))
            if not waiting:
                return
            image, work = waiting.popleft()
            error = work.exception()
            if error is not None and not isinstance(error, MXNetError):
                raise error
            yield image, error or work.result()


# -- command line ---------------------------------------------------------------------------------


def _truth(text: str) -> bool:
    return text.lower() not in ("0", "false", "no")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options, which are those of MXNet's im2rec.py."""
    parser.add_argument("prefix", help="beginning of the names of the .lst and .rec files")
    parser.add_argument("root", nargs="?", help="folder of the images")
    parser.add_argument("--root", dest="root_option", help="the same as an option")
    lists = parser.add_argument_group("lists")
    lists.add_argument("--list", action="store_true", help="make lists, not records")
    lists.add_argument("--exts", nargs="+", default=list(EXTENSIONS), help="accepted extensions")
    lists.add_argument("--chunks", type=int, default=1, help="number of lists")
    lists.add_argument("--train-ratio", type=float, default=1.0, help="part for training")
    lists.add_argument("--test-ratio", type=float, default=0.0, help="part for testing")
    lists.add_argument(
        "--recursive", action="store_true", help="look into folders below; each is a class"
    )
    lists.add_argument(
        "--shuffle", nargs="?", type=_truth, const=True, default=True, help="shuffle (the default)"
    )
    lists.add_argument("--no-shuffle", dest="shuffle", action="store_false", help="keep the order")
    records = parser.add_argument_group("records")
    records.add_argument(
        "--pass-through", action="store_true", help="pack files as they are, without decoding"
    )
    records.add_argument("--resize", type=int, default=0, help="new length of the shorter edge")
    records.add_argument("--center-crop", action="store_true", help="cut to a square first")
    records.add_argument(
        "--quality", type=int, default=95, help="JPEG: 1 to 100; PNG: compression 1 to 9"
    )
    records.add_argument("--num-thread", type=int, default=1, help="threads; the order is kept")
    records.add_argument(
        "--color", type=int, default=1, choices=[-1, 0, 1], help="1 color, 0 gray, -1 as stored"
    )
    records.add_argument("--encoding", default=".jpg", choices=[".jpg", ".png"])
    records.add_argument("--pack-label", action="store_true", help="pack all labels of a line")


def run(args: argparse.Namespace) -> int:
    """Do what the options say; return the exit code."""
    args.root = args.root or args.root_option
    if not args.root or not Path(args.root).is_dir():
        print(f"im2rec: there is no folder {args.root!r}", file=sys.stderr)
        return 2
    if args.chunks < 1 or not 0 <= args.train_ratio <= 1 or not 0 <= args.test_ratio <= 1:
        print("im2rec: --chunks is 1 or more, ratios are from 0 to 1", file=sys.stderr)
        return 2
    return make_lists(args) if args.list else make_records(args)


def main(argv: list[str] | None = None) -> int:
    """Run the program with the given arguments, or those of the command line."""
    parser = argparse.ArgumentParser(prog="im2rec", description=__doc__.partition("\n")[0])
    add_arguments(parser)
    return run(parser.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
