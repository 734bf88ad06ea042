"""Functions on graphs as csr matrices: neighbor sampling, subgraphs, edges.

Row ``u`` of the matrix has the edges from vertex ``u``: the columns are the target vertices, the
values are edge ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor

from ...context import cpu
from ...error import MXNetError, ShapeError
from ...runtime.array import plain, wrap_plain
from ..ndarray import NDArray
from . import layout
from .arrays import CSRNDArray, make

__all__ = [
    "dgl_adjacency",
    "dgl_csr_neighbor_non_uniform_sample",
    "dgl_csr_neighbor_uniform_sample",
    "dgl_graph_compact",
    "dgl_subgraph",
    "edge_id",
]


def _check_graph(name: str, graph: Any) -> CSRNDArray:
    if not isinstance(graph, CSRNDArray):
        kind = getattr(graph, "stype", type(graph).__name__)
        raise MXNetError(f"{name} takes a graph as a csr array, got {kind}.")
    return graph


def _vertices(name: str, graph: CSRNDArray, array: NDArray) -> Tensor:
    vertices = plain(array).long().reshape(-1)
    if vertices.numel() and not 0 <= int(vertices.min()) <= int(vertices.max()) < graph.shape[0]:
        raise MXNetError(f"{name}: vertices must be between 0 and {graph.shape[0] - 1}.")
    return vertices


def dgl_adjacency(data: CSRNDArray) -> CSRNDArray:
    """Return the adjacency matrix of a graph: 1 for each edge.

    Parameters
    ----------
    data
        The graph, with edge ids as int64 values.

    >>> graph = mx.nd.array([[0, 7], [8, 0]]).tostype('csr').astype('int64')
    >>> mx.nd.contrib.dgl_adjacency(graph).data.asnumpy()
    array([1., 1.], dtype=float32)
    """
    _check_graph("dgl_adjacency", data)
    if data._values.dtype is not torch.int64:
        raise MXNetError("dgl_adjacency needs edge ids of dtype int64. Convert them with x.astype.")
    ones = torch.ones_like(data._values, dtype=torch.float32)
    return make(CSRNDArray, data.shape, ones, data._indices, data._indptr, ctx=data._ctx)


def edge_id(data: CSRNDArray, u: NDArray, v: NDArray) -> NDArray:
    """Return the id of the edge between each pair of vertices, or -1 if there is none.

    Parameters
    ----------
    data
        The graph.
    u
        Source vertices.
    v
        Target vertices.

    >>> graph = mx.nd.array([[0, 7], [8, 0]]).tostype('csr')
    >>> mx.nd.contrib.edge_id(graph, mx.nd.array([0, 1]), mx.nd.array([1, 1])).asnumpy()
    array([ 7., -1.], dtype=float32)
    """
    _check_graph("edge_id", data)
    starts, ends = _vertices("edge_id", data, u), plain(v).long().reshape(-1)
    if starts.shape != ends.shape:
        raise ShapeError(f"edge_id: u has {len(starts)} vertices, but v has {len(ends)}.")
    pairs = starts * data.shape[1] + ends
    ids = torch.full_like(pairs, -1, dtype=data._values.dtype)
    keys = layout.csr_keys(data.shape[1], data._indices, data._indptr)
    if keys.numel():
        order = keys.argsort()
        position = torch.searchsorted(keys[order], pairs).clamp(max=len(keys) - 1)
        hit = keys[order][position] == pairs
        ids[hit] = data._values[order][position][hit]
    return wrap_plain(NDArray, ids, data._ctx)


def dgl_subgraph(
    *data: NDArray, return_mapping: bool, num_args: int | None = None
) -> list[CSRNDArray] | CSRNDArray:
    """Return the subgraphs induced by lists of vertices, with new vertex and edge ids.

    Parameters
    ----------
    data
        The graph, then the vertices of each subgraph in ascending order.
    return_mapping
        Whether to also return the subgraphs with the original edge ids.
    num_args
        Number of arrays; filled in automatically.

    >>> graph = mx.nd.array([[0, 7], [8, 0]]).tostype('csr').astype('int64')
    >>> part, edges = mx.nd.contrib.dgl_subgraph(graph, mx.nd.array([0, 1]), return_mapping=True)
    >>> part.data.asnumpy(), edges.data.asnumpy()
    (array([0, 1]), array([7, 8]))
    """
    source, *lists = data
    graph = _check_graph("dgl_subgraph", source)
    if not lists:
        raise MXNetError("dgl_subgraph: pass the vertices of at least one subgraph.")
    vertex_lists = [_vertices("dgl_subgraph", graph, one) for one in lists]
    if any(bool((one.diff() <= 0).any()) for one in vertex_lists):
        raise MXNetError("dgl_subgraph: The input vertex list has to be sorted, without repeats.")
    return _with_mapping([_induced(graph, one) for one in vertex_lists], return_mapping)


def _with_mapping(mapped: list[CSRNDArray], with_mapping: bool) -> list[CSRNDArray] | CSRNDArray:
    graphs = []
    for graph in mapped:
        values = graph._values
        numbers = torch.arange(len(values), dtype=values.dtype, device=values.device)
        parts = numbers, graph._indices, graph._indptr
        graphs.append(make(CSRNDArray, graph.shape, *parts, ctx=graph._ctx))
    graphs += mapped if with_mapping else []
    return graphs if len(graphs) > 1 else graphs[0]


def _induced(graph: CSRNDArray, vertices: Tensor) -> CSRNDArray:
    """Return the edges among some vertices, renumbered by position."""
    new_index = torch.full((max(graph.shape),), -1, device=vertices.device)
    new_index[vertices] = torch.arange(len(vertices), device=vertices.device)
    rows = new_index[layout.row_numbers(graph._indptr)]
    columns = new_index[graph._indices]
    inside = (rows >= 0) & (columns >= 0)
    size = len(vertices)
    return _csr(rows[inside], columns[inside], graph._values[inside], (size, size), graph)


def _csr(
    rows: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int], like: CSRNDArray
) -> CSRNDArray:
    order = (rows * shape[1] + columns).argsort()
    indptr = layout.pointers(rows[order], shape[0])
    return make(CSRNDArray, shape, values[order], columns[order], indptr, ctx=like._ctx)


def dgl_graph_compact(
    *graph_data: NDArray,
    graph_sizes: int | Sequence[int],
    return_mapping: bool,
    num_args: int | None = None,
) -> list[CSRNDArray] | CSRNDArray:
    """Return sampled graphs without empty rows, with new vertex and edge ids.

    Parameters
    ----------
    graph_data
        The graphs, then the vertices of each graph, as returned by the sampling functions.
    graph_sizes
        Number of vertices of each graph.
    return_mapping
        Whether to also return the graphs with the original edge ids.
    num_args
        Number of arrays; filled in automatically.

    >>> graph = mx.nd.array([[0, 7], [8, 0]]).tostype('csr').astype('int64')
    >>> sample = mx.nd.contrib.dgl_csr_neighbor_uniform_sample
    >>> vertices, part, layer = sample(graph, mx.nd.array([1]), max_num_vertices=9)
    >>> compact = mx.nd.contrib.dgl_graph_compact
    >>> compact(part, vertices, graph_sizes=2, return_mapping=False).shape
    (2, 2)
    """
    name, count = "dgl_graph_compact", len(graph_data) // 2
    sizes = [graph_sizes] if isinstance(graph_sizes, int) else list(graph_sizes)
    if len(graph_data) % 2 or len(sizes) != count:
        raise MXNetError(f"{name}: the numbers of graphs, vertex lists and sizes must be equal.")
    graphs = []
    for source, vertices, size in zip(graph_data[:count], graph_data[count:], sizes, strict=True):
        graph = _check_graph(name, source)
        graphs.append(_compact(graph, plain(vertices).long()[:size], int(size)))
    return _with_mapping(graphs, return_mapping)


def _compact(graph: CSRNDArray, vertices: Tensor, size: int) -> CSRNDArray:
    new_index = torch.full((graph.shape[1],), -1, device=vertices.device)
    new_index[vertices] = torch.arange(size, device=vertices.device)
    columns = new_index[graph._indices]
    if bool((columns < 0).any()):
        raise MXNetError("dgl_graph_compact: an edge ends at a vertex that is not in the list.")
    rows = layout.row_numbers(graph._indptr)
    return _csr(rows, columns, graph._values, (size, size), graph)


# -- samples -----------------------------------------------------------------------------------


def dgl_csr_neighbor_uniform_sample(
    csr_matrix: CSRNDArray,
    *seed_arrays: NDArray,
    num_hops: int = 1,
    num_neighbor: int = 2,
    max_num_vertices: int = 100,
    num_args: int | None = None,
) -> list[NDArray]:
    """Sample neighbors of seed vertices uniformly.

    Returns for each array of seeds the sampled vertices (the last element is their number), the
    graph of the edges to sampled neighbors, and the distance of each vertex from the seeds in hops.

    Parameters
    ----------
    csr_matrix
        The graph.
    seed_arrays
        Arrays of seed vertices, one for each sample.
    num_hops
        Number of hops.
    num_neighbor
        Number of neighbors sampled per vertex.
    max_num_vertices
        Maximum number of vertices in a sample.
    num_args
        Number of arrays; filled in automatically.

    >>> graph = mx.nd.array([[0, 7], [8, 0]]).tostype('csr').astype('int64')
    >>> sample = mx.nd.contrib.dgl_csr_neighbor_uniform_sample
    >>> vertices, part, layer = sample(graph, mx.nd.array([1]), max_num_vertices=3)
    >>> vertices.asnumpy(), layer.asnumpy()
    (array([0, 1, 0, 2]), array([1, 0, 0]))
    """
    limits = num_hops, num_neighbor, max_num_vertices
    return _samples(csr_matrix, seed_arrays, None, *limits)


def dgl_csr_neighbor_non_uniform_sample(
    csr_matrix: CSRNDArray,
    probability: NDArray,
    *seed_arrays: NDArray,
    num_hops: int = 1,
    num_neighbor: int = 2,
    max_num_vertices: int = 100,
    num_args: int | None = None,
) -> list[NDArray]:
    """Sample neighbors of seed vertices with probabilities proportional to vertex weights.

    Returns the arrays of the uniform sample, with the weights of the sampled vertices before the
    hops.

    Parameters
    ----------
    csr_matrix
        The graph.
    probability
        Weight of each vertex of the graph.
    seed_arrays
        Arrays of seed vertices, one for each sample.
    num_hops
        Number of hops.
    num_neighbor
        Number of neighbors sampled per vertex.
    max_num_vertices
        Maximum number of vertices in a sample.
    num_args
        Number of arrays; filled in automatically.

    >>> graph = mx.nd.array([[0, 7], [8, 0]]).tostype('csr').astype('int64')
    >>> sample = mx.nd.contrib.dgl_csr_neighbor_non_uniform_sample
    >>> weights = mx.nd.array([0.5, 0.25])
    >>> sample(graph, weights, mx.nd.array([1]), max_num_vertices=2)[2].asnumpy()
    array([0.5 , 0.25], dtype=float32)
    """
    limits = num_hops, num_neighbor, max_num_vertices
    return _samples(csr_matrix, seed_arrays, plain(probability), *limits)


def _samples(
    graph: CSRNDArray, seed_arrays: Sequence[NDArray], weights: Tensor | None, *limits: int
) -> list[NDArray]:
    """Return the arrays of all samples, grouped by kind.

    Sampling runs in Python, vertex by vertex, so graphs are copied to main memory.
    """
    ctx = _check_graph("dgl_csr_neighbor_sample", graph).context
    if ctx.device_type == "gpu":
        graph = cast("CSRNDArray", graph.as_in_context(cpu()))
        weights = None if weights is None else weights.cpu()
        seed_arrays = [seeds.as_in_context(cpu()) for seeds in seed_arrays]
    samples = [_sample(graph, seeds, weights, *limits) for seeds in seed_arrays]
    return [array.as_in_context(ctx) for kind in zip(*samples, strict=True) for array in kind]


def _sample(
    graph: CSRNDArray, seeds: NDArray, weights: Tensor | None, hops: int, count: int, limit: int
) -> list[NDArray]:
    name = "dgl_csr_neighbor_sample"
    layers = dict.fromkeys(_vertices(name, graph, seeds).tolist(), 0)
    if len(layers) > limit:
        raise MXNetError(f"{name}: {len(layers)} seeds, but max_num_vertices is {limit}.")
    edges: list[tuple[int, Tensor]] = []
    pending = list(layers)
    for vertex in pending:  # grows while iterating: breadth first
        if layers[vertex] == hops:
            continue
        drawn = _draw(graph, vertex, weights, count)
        for end in graph._indices[drawn].tolist():
            if end not in layers and len(layers) < limit:
                layers[end] = layers[vertex] + 1
                pending.append(end)
        edges.append((vertex, drawn))
    return _sampled_arrays(graph, dict(sorted(layers.items())), edges, weights, limit)


def _draw(graph: CSRNDArray, vertex: int, weights: Tensor | None, count: int) -> Tensor:
    """Return the positions of a vertex's edges to sampled neighbors."""
    begin, end = graph._indptr[vertex : vertex + 2].tolist()
    positions = torch.arange(begin, end)
    if end - begin <= count:
        return positions
    if weights is None:
        return positions[torch.randperm(end - begin)[:count]]
    likely = weights[graph._indices[positions]].double()
    count = min(count, int((likely > 0).sum()))
    return positions[torch.multinomial(likely, count)] if count else positions[:0]


def _sampled_arrays(
    graph: CSRNDArray,
    layers: dict[int, int],
    edges: list[tuple[int, Tensor]],
    weights: Tensor | None,
    limit: int,
) -> list[NDArray]:
    row = {vertex: i for i, vertex in enumerate(layers)}
    positions = (
        torch.cat([drawn for _, drawn in edges]) if edges else torch.zeros(0, dtype=torch.long)
    )
    rows = [torch.full_like(drawn, row[vertex]) for vertex, drawn in edges]
    vertices, hops = torch.zeros(limit + 1, dtype=torch.long), torch.zeros(limit, dtype=torch.long)
    vertices[: len(row)], hops[: len(row)] = (
        torch.tensor(list(row)),
        torch.tensor([*layers.values()]),
    )
    vertices[-1] = len(row)
    columns = graph._indices[positions]
    inside = torch.isin(columns, vertices[: len(row)])  # vertices beyond the limit are excluded
    all_rows = torch.cat(rows) if rows else positions
    values = graph._values[positions][inside]
    part = _csr(all_rows[inside], columns[inside], values, (limit, graph.shape[1]), graph)
    arrays = [wrap_plain(NDArray, vertices, graph._ctx), part]
    if weights is not None:
        chosen = weights.new_zeros(limit)
        chosen[: len(row)] = weights[vertices[: len(row)]]
        arrays.append(wrap_plain(NDArray, chosen, graph._ctx))
    return [*arrays, wrap_plain(NDArray, hops, graph._ctx)]
