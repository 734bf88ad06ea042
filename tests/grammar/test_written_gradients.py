"""Backward writes the gradients of all inputs; indices, conditions and shapes get zeros."""

from __future__ import annotations

from mxnet.ops import registry
from tests.grammar.calling import arrays_of, differentiable, run_backward
from tests.grammar.properties import check_all, for_rows
from tests.grammar.sampling import Row

# MXNet 1.9.1 does not write gradients of these inputs, or of the whole operator.
KEPT = {
    "BatchNorm": "moving_mean moving_var",
    "CTCLoss": "label data_lengths label_lengths",
    "LinearRegressionOutput": "label",
    "LogisticRegressionOutput": "label",
    "MAERegressionOutput": "label",
    "SVMOutput": "label",
    "SequenceLast": "sequence_length",
    "SequenceMask": "sequence_length",
    "SequenceReverse": "sequence_length",
    "SoftmaxOutput": "label",
    "_contrib_BatchNormWithReLU": "moving_mean moving_var",
    "_contrib_SyncBatchNorm": "moving_mean moving_var",
    "_contrib_boolean_mask": "index",
    "_contrib_hawkesll": "lags state valid_length",
    "_contrib_index_copy": "index_vector",
    "_contrib_quantized_embedding": "data",
}


@for_rows(lambda row: row.has_gradients, at_most=3)
def test_backward_writes_gradients_of_all_inputs(family: str, rows: list[Row]) -> None:
    """In a first and in a cached call."""

    def check(row: Row) -> None:
        op, kept = registry.get(row.op), KEPT.get(row.op, "").split()
        for _ in range(2):
            arrays = arrays_of(row)
            places = differentiable(arrays)
            run_backward(row, arrays, places)
            if any(arrays[i]._fresh_grad for i in places) and op.variadic is None:
                names = op.names_of_inputs(op.complete(op.parse(row.attrs)), len(arrays))
                left = [names[i] for i in places if not arrays[i]._fresh_grad]
                assert set(left) <= set(kept), left

    check_all(rows, check)
