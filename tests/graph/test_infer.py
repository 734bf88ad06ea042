"""Shape and type inference: directions, partial shapes, error messages, cost."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest

import mxnet as mx
from mxnet.error import DTypeError, MXNetError, ShapeError
from mxnet.graph.passes.infer import infer_shapes
from tests.batches import check_each

s = mx.sym


def test_infer_shape_of_inputs_from_elementwise_outputs():
    x = s.relu(s.Variable("a") + s.Variable("b")) * s.Variable("c")
    assert x.infer_shape(c=(2, 3)) == ([(2, 3)] * 3, [(2, 3)], [])


def test_weights_are_unknown_until_the_data_is_known():
    data = mx.sym.Variable("x")
    dense = mx.sym.FullyConnected(data, num_hidden=3)
    assert dense.infer_shape_partial() == ([(), (), ()], [()], [])
    embedding = mx.sym.Embedding(data, input_dim=3, output_dim=2)
    assert embedding.infer_shape_partial() == ([(), ()], [()], [])
    convolution = mx.sym.Convolution(data, kernel=(3, 3), num_filter=4)
    assert convolution.infer_shape_partial() == ([(), (), ()], [()], [])


def test_flatten_output_shape_is_unknown_if_an_input_size_is_unknown():
    flat = mx.sym.Flatten(mx.sym.Variable("x"))
    assert flat.infer_shape_partial(x=(2, 0, 4)) == ([(2, 0, 4)], [()], [])


def test_two_unknown_sizes_of_a_broadcast_stay_unknown():
    x = s.broadcast_add(s.Variable("a"), s.Variable("b"))
    assert x.infer_shape_partial(a=(2, 0), b=(0, 3))[1] == [(0, 0)]


def test_partial_shapes_of_two_inputs_are_merged():
    x = s.Variable("a") + s.Variable("b")
    assert x.infer_shape(a=(2, 0), b=(0, 3))[1] == [(2, 3)]


def test_declared_shapes_and_types_of_variables_are_inferred():
    x = s.Variable("x", shape=(0, 3), dtype="float16")
    assert x.infer_shape(x=(2, 0))[0] == [(2, 3)]
    assert [t.__name__ for t in x.infer_type()[0]] == ["float16"]


def test_zero_sizes_in_zeros_are_inferred_from_consumers():
    x = s.zeros((0, 2)) + s.Variable("b")
    assert x.infer_shape(b=(3, 2)) == ([(3, 2)], [(3, 2)], [])


def test_positional_shapes_apply_to_arguments_in_order():
    x = s.FullyConnected(s.Variable("x"), num_hidden=3)
    assert x.infer_shape((2, 5))[0] == [(2, 5), (3, 5), (3,)]


def test_incomplete_inference_warns_and_returns_none():
    x = s.FullyConnected(s.Variable("x"), num_hidden=3, name="fc")
    with pytest.warns(UserWarning, match=r"Cannot decide shape .*\n\tx: \(0, 5\)"):
        assert x.infer_shape(x=(0, 5)) == (None, None, None)
    with pytest.warns(UserWarning, match="Cannot decide type"):
        assert x.infer_type() == (None, None, None)
    assert x.infer_shape_partial(x=(0, 5)) == ([(0, 5), (3, 5), (3,)], [(0, 3)], [])


def test_shape_conflict_error_names_node_inputs_and_source_line():
    x = s.FullyConnected(s.Variable("data"), num_hidden=3, name="fc1")
    with pytest.raises(ShapeError) as caught:
        x.infer_shape(data=(4, 5), fc1_weight=(3, 6))
    text = str(caught.value)
    assert text.startswith("Error in operator fc1: Shape inconsistent")
    for part in ("FullyConnected", "data:(4, 5)", "fc1_weight:(3, 6)", "test_infer.py:"):
        assert part in text


def test_dtype_conflict_error_names_both_dtypes():
    x = s.Variable("a") + s.Variable("b")
    with pytest.raises(DTypeError, match=r"Error in operator _plus.*float64.*int32"):
        x.infer_type(a="float64", b="int32")


def test_unknown_argument_name_raises():
    with pytest.raises(MXNetError, match="InferShapeKeyword argument name dat not found"):
        s.relu(s.Variable("data")).infer_shape(dat=(2,))


def test_shapes_other_than_tuples_raise():
    with pytest.raises(TypeError, match="Arguments need to be shapes"):
        s.relu(s.Variable("x")).infer_shape(x=[2, 3])


@pytest.mark.parametrize("known", ["first", "last"])
def test_inference_of_a_long_chain_takes_linear_time(known):
    first = x = s.Variable("first")
    for _ in range(10_000):
        x = x + 1
    x = x * s.Variable("last")
    start = time.process_time()
    found = infer_shapes(x._graph, {known: (2, 3)})
    assert found.complete
    assert found.of(first._heads[0]) == (2, 3)
    assert time.process_time() - start < 2


def test_inference_does_not_modify_the_graph():
    x = s.relu(s.Variable("x"))
    assert x.infer_shape(x=(2,))[1] == [(2,)]
    assert x.infer_shape(x=(3,))[1] == [(3,)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert x.infer_shape() == (None, None, None)


def test_declared_shapes_complete_partial_argument_shapes():
    x = s.Variable("x", shape=(2, 4))
    assert s.relu(x).infer_shape(x=(1, 0))[1] == [(2, 4)]
    assert s.relu(x).infer_shape(x=(1, 3))[1] == [(1, 3)]


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
def test_softmax_of_an_unknown_dtype_has_an_unknown_dtype(name):
    soft = getattr(s, name)(s.Variable("x"))
    assert soft.infer_type_partial()[1] == [None]
    both = s.broadcast_add(s.Variable("y"), soft)
    assert both.infer_type_partial(y="float64")[1] == [np.float64]


@pytest.mark.parametrize(
    ("product", "b", "found"),
    [
        (lambda a, b: mx.sym.np.dot(a, b), (-1, 5), (4, 5)),
        (lambda a, b: mx.sym.np.dot(a, b), (-1,), (4,)),
        (lambda a, b: mx.sym.np.matmul(a, b), (-1, -1), (4, -1)),
        (lambda a, b: mx.sym.np.tensordot(a, b, axes=1), (-1, 2, 3), (4, 2, 3)),
        (lambda a, b: mx.sym.np.tensordot(a, b, axes=[[-1], [0]]), (-1, 5), (4, 5)),
    ],
)
def test_np_products_infer_the_size_of_the_summed_axis(product, b, found):
    first, second = s.Variable("a").as_np_ndarray(), s.Variable("b").as_np_ndarray()
    with mx.np_shape():
        out = product(first, second)
        assert out.infer_shape_partial(a=(3, 4), b=b)[0] == [(3, 4), found]
        assert out.infer_shape_partial(a=(3, -1), b=found)[0] == [(3, 4), found]
        with pytest.raises(ShapeError):
            out.infer_shape_partial(a=(3, 4), b=(9, *b[1:]))


def test_det_shape_is_scalar_only_with_np_shape() -> None:
    det = mx.sym.linalg.det(mx.sym.var("a"))
    for _ in range(2):
        with mx.util.np_shape(True):
            assert det.infer_shape(a=(3, 3))[1] == [()]
        with mx.util.np_shape(False):
            assert det.infer_shape(a=(3, 3))[1] == [(1,)]


@pytest.mark.parametrize("sizes", [(2, -1), (-1, 3), (-1, -1)])
def test_unknown_sizes_of_ones_and_zeros_are_inferred_from_consumers(sizes):
    with mx.np_shape():
        total = mx.sym.ones(shape=sizes) + mx.sym.transpose(mx.sym.ones(shape=(3, 2)))
        assert total.bind(mx.cpu(), {}).forward()[0].shape == (2, 3)
        behind = mx.sym.ones(shape=(3, 2)) + mx.sym.transpose(mx.sym.zeros(shape=sizes))
        assert behind.bind(mx.cpu(), {}).forward()[0].shape == (3, 2)


def test_unknown_sizes_of_ones_that_cannot_be_inferred_raise():
    with mx.np_shape(), pytest.raises(mx.MXNetError, match="cannot be inferred"):
        mx.sym.ones(shape=(2, -1)).bind(mx.cpu(), {}).forward()


def test_negative_sizes_are_inferred_for_all_creation_operators():
    sources = {
        "ones": lambda shape: s.ones(shape=shape),
        "zeros": lambda shape: s.zeros(shape=shape),
        "full": lambda shape: s.full(shape, 3),
        "uniform": lambda shape: s.random.uniform(shape=shape),
        "normal": lambda shape: s.random.normal(shape=shape),
        "gamma": lambda shape: s.random.gamma(shape=shape),
    }

    def check(make):
        for shape in ([-1, -1], (0, 0), (-1, 3), (2, 0), (0, -1), (2, 3)):
            graph = s.Variable("x") + make(shape)
            assert graph.infer_shape(x=(2, 3))[1] == [(2, 3)]
            assert graph.simple_bind(mx.cpu(), x=(2, 3)).forward()[0].shape == (2, 3)
        with pytest.raises(MXNetError):
            (s.Variable("x") + make((-2, 3))).simple_bind(mx.cpu(), x=(2, 3)).forward()

    check_each(sources, check)


def test_declared_shape_strings_are_parsed_without_evaluation():
    texts = {
        "(2, 3)": (2, 3),
        "(2,3)": (2, 3),
        "[2, 3]": (2, 3),
        "(2L, 3L)": (2, 3),
        "(2.0, 3)": (2, 3),
        "(True, 3)": (1, 3),
        "(1, 3)": (1, 3),
        "2": (2,),
        f"({'1, ' * 30}2)": (1,) * 30 + (2,),  # longer than cached strings
    }
    for _ in range(2):
        for text, shape in texts.items():
            variable = mx.sym.var("x", attr={"__shape__": text})
            assert (variable + 1).infer_shape() == ([shape], [shape], [])
            assert all(type(n) is int for n in (variable + 1).infer_shape()[0][0])
        for text in ("(2, 'a')", "nonsense", f"({10**30},)"):
            with pytest.raises(mx.MXNetError, match="__shape__"):
                (mx.sym.var("x", attr={"__shape__": text}) + 1).infer_shape()
    variable = mx.sym.var("x", shape=(2, 3))
    variable._set_attr(__shape__="(4, 5)")  # another text is another shape
    assert (variable + 1).infer_shape()[0] == [(4, 5)]


def test_declared_shape_cache_is_bounded():
    from mxnet.graph.passes import infer

    for size in range(5000):
        infer.variable_shape(mx.sym.var("x", attr={"__shape__": f"({size + 1}, 7)"})._heads[0][0])
    info = infer._parse_short_shape.cache_info()
    assert info.currsize <= info.maxsize == 4096
