"""Concurrent blocks, identity, sparse embedding, synchronized normalization, pixel shuffle."""

from __future__ import annotations

from typing import Any

from .... import ndarray as nd
from ....ops.documentation import inherits_parameters
from ....parallel.group import current_group
from ...block import Block, HybridBlock
from ...nn import BatchNorm, HybridSequential, Sequential

__all__ = [
    "Concurrent",
    "HybridConcurrent",
    "Identity",
    "PixelShuffle1D",
    "PixelShuffle2D",
    "PixelShuffle3D",
    "SparseEmbedding",
    "SyncBatchNorm",
]


@inherits_parameters
class Concurrent(Sequential):
    """Apply every block to the input and concatenate the outputs along an axis.

    Parameters
    ----------
    axis
        The axis along which outputs are joined.

    >>> net = mx.gluon.contrib.nn.Concurrent()
    >>> net.add(mx.gluon.nn.Lambda("relu"), mx.gluon.nn.Lambda("negative"))
    >>> net(nd.array([[1, 2]])).asnumpy()
    array([[ 1.,  2., -1., -2.]], dtype=float32)
    """

    def __init__(self, axis: int = -1, prefix: str | None = None, params: Any = None) -> None:
        super().__init__(prefix=prefix, params=params)
        self.axis = axis

    def forward(self, x: Any) -> Any:
        """Run all blocks and join their outputs."""
        return nd.concat(*[block(x) for block in self._children.values()], dim=self.axis)


@inherits_parameters
class HybridConcurrent(HybridSequential):
    """Apply every hybrid block to the input and concatenate the outputs along an axis.

    Parameters
    ----------
    axis
        The axis along which outputs are joined.

    >>> net = mx.gluon.contrib.nn.HybridConcurrent(axis=0)
    >>> net.add(mx.gluon.contrib.nn.Identity(), mx.gluon.nn.Activation("relu"))
    >>> net(nd.array([-1, 2])).asnumpy()
    array([-1.,  2.,  0.,  2.], dtype=float32)
    """

    def __init__(self, axis: int = -1, prefix: str | None = None, params: Any = None) -> None:
        super().__init__(prefix=prefix, params=params)
        self.axis = axis

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Run all blocks and join their outputs."""
        return F.concat(*[block(x) for block in self._children.values()], dim=self.axis)


@inherits_parameters
class Identity(HybridBlock):
    """Return the input unchanged.

    >>> mx.gluon.contrib.nn.Identity()(nd.array([1])).asnumpy()
    array([1.], dtype=float32)
    """

    def __init__(self, prefix: str | None = None, params: Any = None) -> None:
        super().__init__(prefix=prefix, params=params)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return the input."""
        return x


class SparseEmbedding(Block):
    """An embedding whose table and gradient are row-sparse: only the rows in use are updated.

    Training needs a kvstore, or access to the rows by `row_sparse_data`.

    Parameters
    ----------
    input_dim
        Size of the vocabulary.
    output_dim
        Size of a vector.
    dtype
        Data type of the parameters.
    weight_initializer
        Initializer of the weight; None: use the initializer passed to `initialize`.

    >>> layer = mx.gluon.contrib.nn.SparseEmbedding(10, 3)
    >>> layer.initialize()
    >>> trainer = mx.gluon.Trainer(layer.collect_params(), "sgd")  # fetches the rows in use
    >>> layer(nd.array([1, 4])).shape
    (2, 3)
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        dtype: Any = "float32",
        weight_initializer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._kwargs = {
            "input_dim": input_dim,
            "output_dim": output_dim,
            "dtype": dtype,
            "sparse_grad": True,
        }
        self.weight = self.params.get(
            "weight",
            shape=(input_dim, output_dim),
            init=weight_initializer,
            dtype=dtype,
            grad_stype="row_sparse",
            stype="row_sparse",
        )

    def forward(self, x: Any) -> Any:
        """Look up the rows of the indices."""
        weight = self.weight.row_sparse_data(x)
        return nd.Embedding(x, weight, name="fwd", **self._kwargs)

    def __repr__(self) -> str:
        return "{}({input_dim} -> {output_dim}, {dtype})".format(
            type(self).__name__, **self._kwargs
        )


@inherits_parameters
class SyncBatchNorm(BatchNorm):
    """Batch normalization over the batches of all workers of a job together.

    Parameters
    ----------
    num_devices : int, optional
        Number of workers, the default; with 1 each worker normalizes its own batch.

    >>> layer = mx.gluon.contrib.nn.SyncBatchNorm(in_channels=2)
    >>> layer.initialize()
    >>> layer(nd.ones((1, 2, 3, 3))).shape
    (1, 2, 3, 3)
    """

    def __init__(
        self,
        in_channels: int = 0,
        num_devices: int | None = None,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        use_global_stats: bool = False,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        running_mean_initializer: Any = "zeros",
        running_variance_initializer: Any = "ones",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            1,
            momentum,
            epsilon,
            center,
            scale,
            use_global_stats,
            beta_initializer,
            gamma_initializer,
            running_mean_initializer,
            running_variance_initializer,
            in_channels,
            **kwargs,
        )
        self._kwargs = {
            "eps": epsilon,
            "momentum": momentum,
            "fix_gamma": not scale,
            "use_global_stats": use_global_stats,
            "ndev": 1 if num_devices is None else num_devices,
            "key": self.prefix,
        }
        self._takes_all_workers = num_devices is None

    def hybrid_forward(
        self, F: Any, x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any
    ) -> Any:
        """Normalize the input."""
        settings = self._kwargs
        group = current_group()
        if self._takes_all_workers and group is not None:
            settings = {**settings, "ndev": group.size}
        return F.contrib.SyncBatchNorm(
            x, gamma, beta, running_mean, running_var, name="fwd", **settings
        )


class PixelShuffle1D(HybridBlock):
    """Rearrange groups of `factor` channels into a `factor` times longer sequence.

    Parameters
    ----------
    factor
        How many times larger each spatial axis becomes: a number, or one for each.

    >>> mx.gluon.contrib.nn.PixelShuffle1D(2)(nd.array([[[1, 2], [3, 4]]])).asnumpy()
    array([[[1., 3., 2., 4.]]], dtype=float32)
    """

    def __init__(self, factor: int) -> None:
        super().__init__()
        self._factor = int(factor)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Shuffle (N, C f, W) to (N, C, W f)."""
        x = F.reshape(x, (0, -4, -1, self._factor, 0))  # (N, C, f, W)
        x = F.transpose(x, (0, 1, 3, 2))  # (N, C, W, f)
        return F.reshape(x, (0, 0, -3))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._factor})"


class PixelShuffle2D(HybridBlock):
    """Rearrange groups of channels into a larger image.

    Parameters
    ----------
    factor
        How many times larger each spatial axis becomes: a number, or one for each.

    >>> mx.gluon.contrib.nn.PixelShuffle2D((2, 3))(nd.ones((1, 12, 5, 4))).shape
    (1, 2, 10, 12)
    """

    def __init__(self, factor: int | tuple[int, int]) -> None:
        super().__init__()
        self._factors = _factors(factor, 2)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Shuffle (N, C f1 f2, H, W) to (N, C, H f1, W f2)."""
        f1, f2 = self._factors
        x = F.reshape(x, (0, -4, -1, f1 * f2, 0, 0))  # (N, C, f1 f2, H, W)
        x = F.reshape(x, (0, 0, -4, f1, f2, 0, 0))  # (N, C, f1, f2, H, W)
        x = F.transpose(x, (0, 1, 4, 2, 5, 3))  # (N, C, H, f1, W, f2)
        return F.reshape(x, (0, 0, -3, -3))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._factors})"


class PixelShuffle3D(HybridBlock):
    """Rearrange groups of channels into a larger volume.

    Parameters
    ----------
    factor
        How many times larger each spatial axis becomes: a number, or one for each.

    >>> mx.gluon.contrib.nn.PixelShuffle3D(2)(nd.ones((1, 8, 3, 5, 7))).shape
    (1, 1, 6, 10, 14)
    """

    def __init__(self, factor: int | tuple[int, int, int]) -> None:
        super().__init__()
        self._factors = _factors(factor, 3)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Shuffle (N, C f1 f2 f3, D, H, W) to (N, C, D f1, H f2, W f3)."""
        f1, f2, f3 = self._factors
        x = F.reshape(x, (0, -4, -1, f1 * f2 * f3, 0, 0, 0))  # (N, C, f1 f2 f3, D, H, W)
        x = F.reshape(x, (0, 0, -4, f1, f2 * f3, 0, 0, 0))  # (N, C, f1, f2 f3, D, H, W)
        x = F.reshape(x, (0, 0, 0, -4, f2, f3, 0, 0, 0))  # (N, C, f1, f2, f3, D, H, W)
        x = F.transpose(x, (0, 1, 5, 2, 6, 3, 7, 4))  # (N, C, D, f1, H, f2, W, f3)
        return F.reshape(x, (0, 0, -3, -3, -3))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._factors})"


def _factors(factor: Any, count: int) -> tuple[int, ...]:
    """Return one factor per axis; a single number applies to all axes."""
    try:
        return (int(factor),) * count
    except TypeError:
        factors = tuple(int(f) for f in factor)
        assert len(factors) == count, f"wrong length {len(factors)}, {count} factors are needed"
        return factors
