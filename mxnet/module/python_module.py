"""Modules defined by Python code: `PythonModule` and `PythonLossModule`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from .. import ndarray as nd
from ..initializer import Initializer, Uniform
from ..io.batches import described
from ..ndarray import NDArray
from .base_module import SGD_DEFAULTS, BaseModule


class PythonModule(BaseModule):
    """A module without parameters; subclasses implement `forward`, `backward` and output shapes.

    Parameters
    ----------
    data_names, label_names, output_names : list of str
        Names of inputs, labels and outputs.
    logger : logging.Logger
        Logger of the training; by default Python's `logging`.

    >>> issubclass(mx.mod.PythonLossModule, mx.mod.PythonModule)
    True
    """

    def __init__(
        self,
        data_names: Sequence[str],
        label_names: Sequence[str] | None,
        output_names: Sequence[str],
        logger: Any = logging,
    ) -> None:
        super().__init__(logger=logger)
        self._data_names = list(data_names)
        self._label_names = None if label_names is None else list(label_names)
        self._output_names = list(output_names)
        self._data_shapes: Any = None  # lists after `bind`
        self._label_shapes: Any = None
        self._output_shapes: Any = None

    @property
    def data_names(self) -> list[str]:
        """Names of the inputs."""
        return self._data_names

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs."""
        return self._output_names

    @property
    def data_shapes(self) -> list:
        """Descriptions of the inputs."""
        return self._data_shapes

    @property
    def label_shapes(self) -> list | None:
        """Descriptions of the labels."""
        return self._label_shapes

    @property
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Name and shape of each output."""
        return self._output_shapes

    def get_params(self) -> tuple[dict, dict]:
        """Return no parameters."""
        return {}, {}

    def init_params(
        self,
        initializer: Initializer | None = Uniform(0.01),  # noqa: B008 (it holds no state)
        arg_params: Any = None,
        aux_params: Any = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Do nothing: there are no parameters."""
        self.params_initialized = True

    def update(self) -> None:
        """Do nothing: there are no parameters."""

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Update a metric with the outputs, if the module has labels."""
        if self._label_shapes is None:
            return
        if pre_sliced:
            raise RuntimeError("PythonModule does not support presliced labels")
        eval_metric.update(labels, self.get_outputs())

    def bind(
        self,
        data_shapes: Sequence,
        label_shapes: Sequence | None = None,
        for_training: bool = True,
        inputs_need_grad: bool = False,
        force_rebind: bool = False,
        shared_module: Any = None,
        grad_req: Any = "write",
    ) -> None:
        """Store the shapes."""
        if self.binded and not force_rebind:
            self.logger.warning("Already bound, ignoring bind()")
            return
        if grad_req != "write":
            raise AssertionError("Python module only support write gradient")
        for what, names, descs in (
            ("data", self._data_names, data_shapes),
            ("label", self._label_names, label_shapes),
        ):
            described_names = None if descs is None else [desc[0] for desc in descs]
            if described_names is not None and described_names != (names or []):
                raise AssertionError(
                    f"{what}_shapes are of {described_names}, but the module has {names}"
                )
        self.for_training, self.inputs_need_grad = for_training, inputs_need_grad
        self._data_shapes, self._label_shapes = data_shapes, label_shapes
        self._output_shapes = self._compute_output_shapes()
        self.binded = True

    def _compute_output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        raise NotImplementedError

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = SGD_DEFAULTS,
        force_init: bool = False,
    ) -> None:
        """Do nothing: there are no parameters."""
        self.optimizer_initialized = True

    def _training_state(self) -> dict[str, Any]:
        return {}

    def _restore_training_state(self, state: Any) -> None:
        pass


class PythonLossModule(PythonModule):
    """A loss module with a Python function as gradient; its outputs are the input scores.

    Parameters
    ----------
    name : str
        Prefix of the output's name.
    data_names : list of one str
        Name of the scores, in a list.
    label_names : list of one str
        Name of the labels, in a list.
    logger : logging.Logger
        Logger of the training; by default Python's `logging`.
    grad_func : callable, optional
        ``grad_func(scores, labels)`` returns the gradient of the scores as a NumPy array or
        NDArray.

    >>> loss = mx.mod.PythonLossModule(grad_func=lambda scores, labels: scores - labels)
    >>> loss.bind([("data", (4, 2))], [("softmax_label", (4, 2))])
    >>> loss.output_shapes
    [('pyloss_output', (4, 2))]
    """

    def __init__(
        self,
        name: str = "pyloss",
        data_names: Sequence[str] = ("data",),
        label_names: Sequence[str] = ("softmax_label",),
        logger: Any = logging,
        grad_func: Callable | None = None,
    ) -> None:
        super().__init__(data_names, label_names, [f"{name}_output"], logger=logger)
        if len(data_names) != 1 or len(label_names) != 1:
            raise AssertionError(
                "PythonLossModule has one input and one label, got "
                f"{list(data_names)} and {list(label_names)}"
            )
        if grad_func is not None and not callable(grad_func):
            raise AssertionError("grad_func must be callable")
        self._name = name
        self._scores: Any = None  # an NDArray after `forward`
        self._labels: NDArray | None = None
        self._scores_grad: Any = None  # an NDArray after `backward`
        self._grad_func = grad_func

    def _compute_output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        return [(f"{self._name}_output", self._data_shapes[0][1])]

    def bind(self, data_shapes: Sequence, *args: Any, **kwargs: Any) -> None:
        """Store the shapes."""
        super().bind([described(d) for d in data_shapes], *args, **kwargs)

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Store the scores and labels."""
        self._scores = data_batch.data[0]
        if self.for_training if is_train is None else is_train:
            self._labels = data_batch.label[0]

    def get_outputs(self, merge_multi_context: bool = True) -> list[NDArray]:
        """Return the scores."""
        return [self._scores]

    def backward(self, out_grads: Any = None) -> None:
        """Compute the gradient of the scores."""
        if out_grads is not None:
            raise AssertionError("For a loss module, out_grads should be None")
        if not self.for_training:
            raise AssertionError("re-bind with for_training=True to run backward")
        self._backward_impl()

    def _backward_impl(self) -> None:
        """Set ``_scores_grad``; subclasses may override it."""
        if self._grad_func is None:
            raise NotImplementedError("pass grad_func, or override _backward_impl")
        grad = self._grad_func(self._scores, self._labels)
        self._scores_grad = grad if isinstance(grad, NDArray) else nd.array(grad)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[NDArray]:
        """Return the gradient of the scores."""
        return [self._scores_grad]

    def install_monitor(self, mon: Any) -> None:
        """Not supported: the module has no executors."""
        raise NotImplementedError("PythonLossModule has no executor to monitor")
