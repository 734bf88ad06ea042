"""Files of trained parameters: location, checksum and download."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ... import base
from ...context import Context
from ...error import MXNetError
from ..block import Block
from ..utils import check_sha1, download, named_mirrors, replace_file, repository_addresses
from .weights import advise

__all__ = ["get_model_file", "purge"]

N = TypeVar("N", bound=Block)

apache_repo_url = "https://apache-mxnet.s3-accelerate.dualstack.amazonaws.com/"

SHA1 = {
    "alexnet": "44335d1f0046b328243b32a26a4fbd62d9057b45",
    "densenet121": "f27dbf2dbd5ce9a80b102d89c7483342cd33cb31",
    "densenet161": "b6c8a95717e3e761bd88d145f4d0a214aaa515dc",
    "densenet169": "2603f878403c6aa5a71a124c4a3307143d6820e9",
    "densenet201": "1cdbc116bc3a1b65832b18cf53e1cb8e7da017eb",
    "inceptionv3": "ed47ec45a937b656fcc94dabde85495bbef5ba1f",
    "mobilenet0.25": "9f83e440996887baf91a6aff1cccc1c903a64274",
    "mobilenet0.5": "8e9d539cc66aa5efa71c4b6af983b936ab8701c3",
    "mobilenet0.75": "529b2c7f4934e6cb851155b22c96c9ab0a7c4dc2",
    "mobilenet1.0": "6b8c5106c730e8750bcd82ceb75220a3351157cd",
    "mobilenetv2_0.25": "ae8f9392789b04822cbb1d98c27283fc5f8aa0a7",
    "mobilenetv2_0.5": "aabd26cd335379fcb72ae6c8fac45a70eab11785",
    "mobilenetv2_0.75": "e2be7b72a79fe4a750d1dd415afedf01c3ea818d",
    "mobilenetv2_1.0": "36da4ff1867abccd32b29592d79fc753bca5a215",
    "resnet101_v1": "d988c13d6159779e907140a638c56f229634cb02",
    "resnet101_v2": "18e93e4f48947e002547f50eabbcc9c83e516aa6",
    "resnet152_v1": "671c637a14387ab9e2654eafd0d493d86b1c8579",
    "resnet152_v2": "f2695542de38cf7e71ed58f02893d82bb409415e",
    "resnet18_v1": "a0666292f0a30ff61f857b0b66efc0228eb6a54b",
    "resnet18_v2": "a81db45fd7b7a2d12ab97cd88ef0a5ac48b8f657",
    "resnet34_v1": "48216ba99a8b1005d75c0f3a0c422301a0473233",
    "resnet34_v2": "9d6b80bbc35169de6b6edecffdd6047c56fdd322",
    "resnet50_v1": "0aee57f96768c0a2d5b23a6ec91eb08dfb0a45ce",
    "resnet50_v2": "ecdde35339c1aadbec4f547857078e734a76fb49",
    "squeezenet1.0": "264ba4970a0cc87a4f15c96e25246a1307caf523",
    "squeezenet1.1": "33ba0f93753c83d86e1eb397f38a667eaf2e9376",
    "vgg11": "dd221b160977f36a53f464cb54648d227c707a05",
    "vgg11_bn": "ee79a8098a91fbe05b7a973fed2017a6117723a8",
    "vgg13": "6bc5de58a05a5e2e7f493e2d75a580d83efde38c",
    "vgg13_bn": "7d97a06c3c7a1aecc88b6e7385c2b373a249e95e",
    "vgg16": "e660d4569ccb679ec68f1fd3cce07a387252a90a",
    "vgg16_bn": "7f01cf050d357127a73826045c245041b0df7363",
    "vgg19": "ad2f660d101905472b83590b59708b71ea22b2e5",
    "vgg19_bn": "f360b758e856f1074a85abd5fd873ed1d98297c3",
}
# MXNet's names: model libraries add their own files to this dict and use the same address.
_model_sha1 = SHA1
_url_format = "{repo_url}gluon/models/{file_name}.zip"


def default_root() -> str:
    """Return the folder of model files: `models` under MXNET_HOME, by default ~/.mxnet."""
    return str(Path(base.data_dir()) / "models")


def short_hash(name: str) -> str:
    """Return the first eight digits of a model file's SHA-1, which are part of its name.

    >>> short_hash("resnet18_v1")
    'a0666292'
    """
    if name not in SHA1:
        raise ValueError(f"Pretrained model for {name} is not available.")
    return SHA1[name][:8]


def get_model_file(name: str, root: str | None = None) -> str:
    """Return the verified parameter file of a model, downloaded if a mirror is configured.

    Parameters
    ----------
    name : str
        Name of the model.
    root : str, optional
        Folder of model files, by default `models` under MXNET_HOME.

    Notes
    -----
    Files are downloaded only if ``MXNET_GLUON_REPO`` lists mirrors (comma-separated addresses or
    folders) that have ``gluon/models/<file>.zip``.

    >>> path = mx.gluon.model_zoo.model_store.get_model_file("resnet18_v1")  # doctest: +SKIP
    """
    file_name = f"{name}-{short_hash(name)}"
    folder = Path(default_root() if root is None else root).expanduser()
    target = folder / f"{file_name}.params"
    if target.exists():
        if check_sha1(target, SHA1[name]):
            return str(target)
        problem = f"{target} is there, but its SHA-1 is not {SHA1[name]}: it is damaged or another"
    else:
        problem = f"{target} is not there"
    mirrors = named_mirrors()
    if not mirrors:
        raise MXNetError(
            f"Trained parameters of {name}: {problem}. Put {file_name}.params (SHA-1 "
            f"{SHA1[name]}) into {folder}, or name another folder by root= or MXNET_HOME, or "
            "a mirror of the model zoo (an address or a folder) by MXNET_GLUON_REPO. "
            f"{advise(name)}"
        )
    for folder in map(Path, mirrors):
        for path in (folder / target.name, folder / "gluon/models" / target.name):
            if path.is_file():
                if not check_sha1(path, SHA1[name]):
                    raise MXNetError(f"{path} does not have the SHA-1 {SHA1[name]}; not used.")
                return str(path)
    _fetch(file_name, SHA1[name], target)
    return str(target)


def _fetch(file_name: str, sha1: str, target: Path) -> None:
    """Download a zipped parameter file from a mirror, and write it atomically after a check."""
    addresses = repository_addresses(_url_format.format(repo_url="", file_name=file_name))
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        try:
            archive = download(addresses, path=f"{scratch}/{file_name}.zip", overwrite=True)
            with zipfile.ZipFile(archive) as packed:
                unpacked = packed.extract(target.name, scratch)
        except (OSError, KeyError, zipfile.BadZipFile) as error:
            raise MXNetError(f"{target.name} could not be fetched: {error}") from error
        if not check_sha1(unpacked, sha1):
            raise MXNetError(
                f"{target.name} from {addresses} does not have the SHA-1 {sha1}; not used."
            )
        replace_file(unpacked, target)


def load_pretrained(
    net: Block, name: str, pretrained: bool | str, ctx: Context | list[Context], root: str | None
) -> Any:
    """Return the network, optionally with trained parameters.

    `pretrained` may name a file instead, see `mx.convert.load_weights`.
    """
    if isinstance(pretrained, str | os.PathLike):
        from ...interop import load_weights

        load_weights(net, pretrained, ctx)
    elif pretrained:
        net.load_parameters(get_model_file(name, root=root), ctx=ctx)
    return net


def purge(root: str | None = None) -> None:
    """Delete all parameter files of a folder of models.

    Parameters
    ----------
    root
        The folder; by default `models` under MXNET_HOME.

    >>> mx.gluon.model_zoo.model_store.purge("models")
    """
    folder = Path(default_root() if root is None else root).expanduser()
    for file in folder.glob("*.params"):
        file.unlink()


def variant(
    get: Callable[..., N], name: str, what: str, *args: Any, **options: Any
) -> Callable[..., N]:
    """Create a public function that returns one variant of a network.

    Parameters
    ----------
    get
        Function that returns any variant.
    name
        Name of the new function; it becomes part of the module of `get`.
    what
        Description of the network.
    args, options
        Arguments of `get` for the variant.
    """

    def function(**kwargs: Any) -> N:
        return get(*args, **{**kwargs, **options})

    function.__name__ = function.__qualname__ = name
    function.__module__ = get.__module__
    function.__annotations__["return"] = get.__annotations__["return"]
    function.__doc__ = f"""Return {what}.

    Parameters
    ----------
    **kwargs
        Arguments of the class, and `pretrained`, `ctx` and `root`.

    >>> net = mx.gluon.model_zoo.vision.{name}(classes=10)
    >>> net.initialize()
    """
    return function
