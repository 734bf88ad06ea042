"""SGD and its variants."""

from __future__ import annotations

from typing import Any

from .._process import env
from ..ndarray import NDArray, random, zeros
from ..ops.documentation import inherits_parameters
from ..ops.training.sgd import dcasgd, nag_mom, sgd, sgd_mom, signsgd, signum
from ..runtime.array import plain, wrap_plain
from .base import Index, Optimizer, register
from .multi_tensor import Batch, ListOptimizer


@register
class SGD(ListOptimizer):
    """Stochastic gradient descent: ``m = mu m - lr (g + wd w)``;  ``w += m``.

    ``g = clip(rescale_grad g)``. Without momentum ``w -= lr (g + wd w)``.

    Parameters
    ----------
    momentum : float
        Momentum: the fraction of the previous update that is kept.
    lazy_update : bool
        Whether to update only the rows of a row_sparse gradient.

    >>> w = mx.nd.array([1.0, 2.0])
    >>> mx.optimizer.SGD(learning_rate=0.5).update(0, w, mx.nd.array([1.0, -1.0]), None)
    >>> w.asnumpy()
    array([0.5, 2.5], dtype=float32)
    """

    shards_by = "rows"
    rule, stateless_rule = sgd_mom, sgd
    copy_comes_first = False
    ignores_copies = True
    rates_by_list = True
    min_momentum = 0.0

    def __init__(self, momentum: float = 0.0, lazy_update: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.momentum = momentum
        self.lazy_update = lazy_update
        self.aggregate_num = env.get("MXNET_OPTIMIZER_AGGREGATION_SIZE")

    def create_state(self, index: Index, weight: NDArray) -> NDArray | None:
        """Return the momentum, or None."""
        return self._zero_state(weight) if self.momentum else None


@register
class ccSGD(SGD):
    """Old name of `SGD`.

    Parameters
    ----------
    args
        Arguments of `SGD`.

    >>> w = mx.nd.array([1.0])
    >>> optimizer = mx.optimizer.ccSGD(learning_rate=0.1)
    >>> optimizer.update(0, w, mx.nd.array([0.5]), optimizer.create_state(0, w))
    >>> bool(w.asscalar() != 1)
    True
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)


@register
class NAG(ListOptimizer):
    """Nesterov's momentum: ``m = mu m - lr (g + wd w)``;  ``w += mu m - lr (g + wd w)``.

    Parameters
    ----------
    momentum : float
        Momentum: the fraction of the previous update that is kept.

    >>> w = mx.nd.array([1.0])
    >>> nag = mx.optimizer.NAG(momentum=0.5, learning_rate=0.5)
    >>> nag.update(0, w, mx.nd.array([1.0]), nag.create_state(0, w))
    >>> w.asnumpy()
    array([0.25], dtype=float32)
    """

    shards_by = "rows"
    rule, stateless_rule = nag_mom, sgd
    copy_comes_first = False
    copies_optional = True
    min_momentum = 0.0
    create_state = SGD.create_state

    def __init__(self, momentum: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.momentum = momentum

    def _is_lazy(self, weight: NDArray, grad: NDArray) -> bool:
        # Without momentum it is plain SGD, which does not update rows without gradients.
        return self.momentum == 0 and grad.stype == "row_sparse"


@register
@inherits_parameters
class Signum(ListOptimizer):
    """Fixed steps along the sign of the momentum, or of the gradient if `momentum` is 0.

    ``m = mu m - (1 - mu) (g + wd w)``;  ``w = (1 - lr wd_lh) w + lr sign(m)``.

    Parameters
    ----------
    momentum : float
        Decay rate of the momentum.
    wd_lh : float
        Decoupled weight decay.

    >>> w = mx.nd.array([1.0, 1.0])
    >>> signum = mx.optimizer.Signum(learning_rate=0.5)
    >>> signum.update(0, w, mx.nd.array([9.0, -0.1]), signum.create_state(0, w))
    >>> w.asnumpy()
    array([0.5, 1.5], dtype=float32)
    """

    shards_by = "rows"
    rule, stateless_rule = signum, signsgd
    sparse_states = True
    min_momentum = 0.0
    create_state = SGD.create_state

    def __init__(
        self,
        learning_rate: float = 0.01,
        momentum: float = 0.9,
        wd_lh: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.momentum = momentum
        self.wd_lh = wd_lh


@register
class DCASGD(ListOptimizer):
    """SGD for delayed gradients, corrected by the change of the weight since then.

    ``m = mu m - lr (g + wd w + lamda g^2 (w - w_before))``;  ``w += m``.

    Parameters
    ----------
    momentum : float
        Momentum: the fraction of the previous update that is kept.
    lamda : float
        Strength of the correction.

    >>> w = mx.nd.array([1.0])
    >>> optimizer = mx.optimizer.DCASGD(learning_rate=0.1)
    >>> optimizer.update(0, w, mx.nd.array([0.5]), optimizer.create_state(0, w))
    >>> bool(w.asscalar() != 1)
    True
    """

    shards_by = "rows"
    rule = dcasgd

    def __init__(self, momentum: float = 0.0, lamda: float = 0.04, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.momentum = momentum
        self.weight_previous: dict[Index, NDArray] = {}
        self.lamda = lamda

    def create_state(self, index: Index, weight: NDArray) -> tuple[NDArray | None, NDArray]:
        """Return the momentum or None, and a copy of the weight."""
        return (self._zero_state(weight) if self.momentum else None), weight.copy()


@register
@inherits_parameters
class SGLD(ListOptimizer):
    """Langevin dynamics: half a gradient step, and noise of variance ``lr``.

    ``w += -lr / 2 (g + wd w) + normal(0, sqrt(lr))``.

    >>> w = mx.nd.array([1.0])
    >>> optimizer = mx.optimizer.SGLD(learning_rate=0.1)
    >>> optimizer.update(0, w, mx.nd.array([0.5]), optimizer.create_state(0, w))
    >>> bool(w.asscalar() != 1)
    True
    """

    rule = stateless_rule = sgd
    momentum = 0.0
    ignores_copies = True
    in_order = True  # random numbers are drawn parameter after parameter

    def _step_batch(self, batch: Batch, **numbers: float) -> None:
        super()._step_batch(batch, lr=batch.lr / 2)
        for weight in batch.weights:
            array = wrap_plain(NDArray, weight)
            noise = random.normal(
                0, batch.lr**0.5, shape=tuple(weight.shape), dtype=array.dtype, ctx=array.context
            )
            weight.add_(plain(noise))


@register
@inherits_parameters
class Test(Optimizer):
    """Add the gradient to the weight and store the weight; for tests.

    >>> w = mx.nd.array([1.0])
    >>> optimizer = mx.optimizer.Test()
    >>> optimizer.update(0, w, mx.nd.array([0.5]), optimizer.create_state(0, w))
    >>> bool(w.asscalar() != 1)
    True
    """

    __test__ = False  # not a test case

    def create_state(self, index: Index, weight: NDArray) -> NDArray:
        """Return a float32 array for the weight."""
        return zeros(weight.shape, ctx=weight.context)

    def update(self, index: Index, weight: NDArray, grad: NDArray, state: NDArray) -> None:
        """Compute ``w += rescale_grad g``."""
        weight[:] += grad * self.rescale_grad
        state[:] = weight
