"""Graphs as csr matrices: subgraphs, edges and samples of neighbors."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet.error import MXNetError
from mxnet.ndarray import contrib


@pytest.fixture
def graph():
    """Five vertices; the edge from u to v has the number 10 * u + v."""
    dense = 10 * np.arange(5)[:, None] + np.arange(5)
    rows, columns = np.nonzero(1 - np.eye(5))
    indptr = np.arange(0, 21, 4)
    return mx.nd.sparse.csr_matrix(
        (dense[rows, columns], columns, indptr), shape=(5, 5), dtype="int64"
    )


def vertices(*numbers):
    return mx.nd.array(numbers, dtype="int64")


def test_adjacency_has_ones(graph):
    made = contrib.dgl_adjacency(graph)
    assert made.dtype == np.float32 and made.asnumpy().tolist() == (1 - np.eye(5)).tolist()


def test_numbers_of_edges(graph):
    found = contrib.edge_id(graph, vertices(0, 2, 4), vertices(3, 2, 1))
    assert found.asnumpy().tolist() == [3, -1, 41]


def test_a_subgraph_has_the_edges_among_its_vertices(graph):
    made, edges = contrib.dgl_subgraph(graph, vertices(0, 2, 3), return_mapping=True)
    assert edges.asnumpy().tolist() == [[0, 2, 3], [20, 0, 23], [30, 32, 0]]
    assert made.data.asnumpy().tolist() == list(range(6))
    with pytest.raises(MXNetError, match="sorted"):
        contrib.dgl_subgraph(graph, vertices(3, 0), return_mapping=False)


@pytest.mark.parametrize("hops", [0, 1, 2])
def test_samples_are_bounded(graph, hops):
    limits = {"num_hops": hops, "num_neighbor": 2, "max_num_vertices": 4}
    found, part, layer = contrib.dgl_csr_neighbor_uniform_sample(graph, vertices(3), **limits)
    count = int(found[-1].asscalar())
    assert found.shape == (5,) and part.shape == (4, 5) and count <= 4
    assert layer.asnumpy()[:count].max() <= hops  # all neighbors may be there already
    counts = np.diff(part.indptr.asnumpy())
    assert counts.max() <= 2 and counts[count:].sum() == 0


def test_vertices_without_weight_are_not_drawn(graph):
    weights, limits = mx.nd.array([1, 1, 0, 1, 0]), {"num_neighbor": 2, "max_num_vertices": 5}
    sample = contrib.dgl_csr_neighbor_non_uniform_sample
    found, part, chosen, layer = sample(graph, weights, vertices(0), **limits)
    assert found.asnumpy()[:3].tolist() == [0, 1, 3] and found[-1].asscalar() == 3
    assert part.indices.asnumpy().tolist() == [1, 3]
    assert chosen.asnumpy()[:3].tolist() == [1, 1, 1] and layer.asnumpy()[:3].tolist() == [0, 1, 1]


def test_samples_are_compacted(graph):
    limits = {"num_neighbor": 2, "max_num_vertices": 9}
    found, part, _ = contrib.dgl_csr_neighbor_uniform_sample(graph, vertices(1, 4), **limits)
    count = int(found[-1].asscalar())
    made, edges = contrib.dgl_graph_compact(part, found, graph_sizes=count, return_mapping=True)
    assert made.shape == edges.shape == (count, count)
    assert found.asnumpy()[made.indices.asnumpy()].tolist() == part.indices.asnumpy().tolist()
    assert edges.data.asnumpy().tolist() == part.data.asnumpy().tolist()


def test_graphs_are_csr_arrays():
    with pytest.raises(MXNetError, match="csr"):
        contrib.dgl_adjacency(mx.nd.ones((2, 2)))
