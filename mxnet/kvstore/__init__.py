"""Key-value stores: arrays shared by devices or workers, to exchange gradients and weights.

>>> kv = mx.kvstore.create("local")
>>> kv.init(3, mx.nd.ones(2))
>>> kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
>>> kv.push(3, mx.nd.ones(2))
>>> out = mx.nd.zeros(2)
>>> kv.pull(3, out=out)
>>> out.asnumpy()
array([0.5, 0.5], dtype=float32)
"""

from . import base, dist_sync, kvstore, kvstore_server
from .base import KVStoreBase, create
from .dist_sync import DistSyncStore
from .kvstore import KVStore, is_distributed
from .kvstore_server import KVStoreServer

__all__ = ["DistSyncStore", "KVStore", "KVStoreBase", "KVStoreServer", "create", "is_distributed"]
