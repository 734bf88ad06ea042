"""The order of an iterator's samples, to be kept and set again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from ..error import MXNetError
from ..imperative.handle import plain, wrap_plain
from ..io import NDArrayIter
from ..ndarray import NDArray

__all__ = ["data_order", "set_data_order"]


def data_order(data: Any) -> Any:
    """Return the order of an epoch's data at its beginning, or None if it is not known."""
    if hasattr(data, "state_dict") and hasattr(data, "load_state_dict"):
        return {"own": data.state_dict()}
    if type(data) is not NDArrayIter:
        return None
    if any(x.stype != "default" for _, x in (*data.data, *data.label)):
        return None
    rolled = [data._cache_data, data._cache_label]  # what came over from the last epoch
    order = {"idx": data._rows.copy(), "shuffled": data.idx.copy()}
    return {**order, "cursor": data.cursor, "rolled": rolled}


def set_data_order(data: Any, order: Mapping[str, Any]) -> None:
    """Bring an iterator to the beginning of an epoch with this order."""
    if "own" in order:
        data.load_state_dict(order["own"])
        return
    wanted = order["idx"]
    if not isinstance(data, NDArrayIter) or sorted(wanted) != sorted(data._rows):
        raise MXNetError("train_data has another number of samples than the training state.")
    places = np.argsort(data._rows)[wanted]
    if (places != np.arange(len(places))).any():
        index = torch.from_numpy(places)
        for named in (data.data, data.label):
            named[:] = [(name, _reordered(x, index)) for name, x in named]
        data._rows = wanted.copy()
    data.idx = order.get("shuffled", wanted).copy()
    data.cursor = order["cursor"]
    data._cache_data, data._cache_label = order["rolled"]


def _reordered(array: NDArray, places: torch.Tensor) -> NDArray:
    tensor = plain(array)
    return wrap_plain(type(array), tensor.index_select(0, places.to(tensor.device)), array._ctx)
