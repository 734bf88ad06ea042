"""`KVStoreServer`: the process that holds weights in distributed training."""

from __future__ import annotations

from typing import NoReturn

from ..error import MXNetError
from .base import KVStoreBase

__all__ = ["KVStoreServer"]


class KVStoreServer:
    """Serves a distributed store.

    Parameters
    ----------
    kvstore : KVStore
        The store to serve.
    """

    def __init__(self, kvstore: KVStoreBase) -> None:
        self.kvstore = kvstore
        self.init_logging = False

    def run(self) -> NoReturn:
        """Refuse: only distributed stores have servers."""
        raise MXNetError(
            f"A store of type {self.kvstore.type!r} has no servers: distribution is not there yet."
        )
