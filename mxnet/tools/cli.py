"""The program `mx`: one command for each tool."""

from __future__ import annotations

import argparse
import importlib.metadata
import platform
import sys

from .. import libinfo
from . import im2rec, rec

LIBRARIES = {
    "torch": "kernels and gradients",
    "numpy": "arrays",
    "opencv-python-headless": "pictures",
    "simplejpeg": "faster JPEG",
    "scipy": "sparse matrices",
    "tqdm": "progress bars",
}


def info(args: argparse.Namespace) -> int:
    """Print versions, devices and what is switched on."""
    import torch

    print(f"MXNext {libinfo.mxnext_version} (MXNet {libinfo.__version__})")
    print(f"Python {platform.python_version()} on {platform.platform()}")
    for name, purpose in LIBRARIES.items():
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            version = "not installed"
        print(f"{name} {version} ({purpose})")
    print(f"threads {torch.get_num_threads()}, GPUs {torch.cuda.device_count()}")
    for number in range(torch.cuda.device_count()):
        print(f"  gpu({number}) {torch.cuda.get_device_name(number)}")
    print("features " + ", ".join(_features()))
    return 0


def _features() -> list[str]:
    from .. import runtime

    return [name for name, feature in runtime.Features().items() if feature.enabled]


def main(argv: list[str] | None = None) -> int:
    """Run ``mx`` with the given arguments, or those of the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="mx", description="Tools of MXNext.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, tool in (("im2rec", im2rec), ("rec", rec)):
        described = tool.__doc__.partition("\n")[0]
        made = commands.add_parser(
            name,
            help=described.rstrip("."),
            description=tool.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        tool.add_arguments(made)
        made.set_defaults(run=tool.run)
    commands.add_parser("info", help="versions, devices, features").set_defaults(run=info)
    args = parser.parse_args(argv)
    return args.run(args)


if __name__ == "__main__":
    sys.exit(main())
