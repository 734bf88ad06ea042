"""`Steps`: what subclasses of a module implement; training is a loop over these steps."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from .. import ndarray
from ..initializer import Initializer, Uniform
from ..io import DataDesc
from ..metric import EvalMetric
from ..model import named_params, read_params
from ..model.checkpoint import Params

SGD_DEFAULTS = (("learning_rate", 0.01),)


class Steps:
    """The interface of modules: names, shapes, parameters, steps, and which steps were done."""

    def __init__(self, logger: Any = logging) -> None:
        self.logger = logger
        self.binded = False
        self.for_training = False
        self.inputs_need_grad = False
        self.params_initialized = False
        self.optimizer_initialized = False
        self._symbol = None

    # -- what is asserted ---------------------------------------------------------------------

    def _need_bind(self) -> None:
        if not self.binded:
            raise AssertionError("call bind first, or fit")

    def _need_params(self) -> None:
        self._need_bind()
        if not self.params_initialized:
            raise AssertionError("call init_params, set_params or fit first")

    def _need_optimizer(self) -> None:
        self._need_params()
        if not self.optimizer_initialized:
            raise AssertionError("call init_optimizer or fit first")

    # -- names and shapes: implemented by subclasses ------------------------------------------

    @property
    def data_names(self) -> list[str]:
        """Names of the inputs."""
        raise NotImplementedError

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs."""
        raise NotImplementedError

    @property
    def data_shapes(self) -> list[DataDesc]:
        """Descriptions of the inputs, after `bind`."""
        raise NotImplementedError

    @property
    def label_shapes(self) -> list[DataDesc] | None:
        """Descriptions of the labels, after `bind`; None if there are none."""
        raise NotImplementedError

    @property
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Name and shape of each output, after `bind`."""
        raise NotImplementedError

    @property
    def symbol(self) -> Any:
        """The symbol that is computed, if there is one."""
        return self._symbol

    # -- parameters ---------------------------------------------------------------------------

    def get_params(self) -> tuple[Params, Params]:
        """Return arguments and auxiliary states by name."""
        raise NotImplementedError

    def init_params(
        self,
        initializer: Initializer | None = Uniform(0.01),  # noqa: B008 (it holds no state)
        arg_params: Params | None = None,
        aux_params: Params | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Give all parameters their first values."""
        raise NotImplementedError

    def set_params(
        self,
        arg_params: Params,
        aux_params: Params,
        allow_missing: bool = False,
        force_init: bool = True,
        allow_extra: bool = False,
    ) -> None:
        """Set the parameters."""
        self.init_params(
            initializer=None,
            arg_params=arg_params,
            aux_params=aux_params,
            allow_missing=allow_missing,
            force_init=force_init,
            allow_extra=allow_extra,
        )

    def save_params(self, fname: str) -> None:
        """Write the parameters to a file."""
        ndarray.save(fname, named_params(*self.get_params()))

    def load_params(self, fname: str) -> None:
        """Read the parameters from a file."""
        self.set_params(*read_params(fname))

    def get_states(self, merge_multi_context: bool = True) -> list:
        """Return states, of modules that have some."""
        self._need_params()
        if merge_multi_context:
            raise AssertionError("merge_multi_context=True is not supported for get_states yet.")
        return []

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Set states, of modules that have some."""
        self._need_params()
        if states or value:
            raise AssertionError("this module has no states")

    def install_monitor(self, mon: Any) -> None:
        """Let a monitor watch what is computed."""
        raise NotImplementedError

    # -- steps --------------------------------------------------------------------------------

    def prepare(self, data_batch: Any, sparse_row_id_fn: Callable | None = None) -> None:
        """Get ready for a batch that will come to `forward` next."""
        if sparse_row_id_fn is not None:
            raise NotImplementedError(f"{type(self).__name__}.prepare takes no sparse_row_id_fn.")

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Compute the outputs of a batch."""
        raise NotImplementedError

    def backward(self, out_grads: Any = None) -> None:
        """Compute the gradients."""
        raise NotImplementedError

    def get_outputs(self, merge_multi_context: bool = True) -> list:
        """Return the outputs of the last forward."""
        raise NotImplementedError

    def get_input_grads(self, merge_multi_context: bool = True) -> list:
        """Return the gradients of the inputs."""
        raise NotImplementedError

    def update(self) -> None:
        """Change the parameters by the gradients of the last backward."""
        raise NotImplementedError

    def update_metric(self, eval_metric: EvalMetric, labels: Any, pre_sliced: bool = False) -> None:
        """Let a metric take the outputs of the last forward."""
        raise NotImplementedError

    def bind(
        self,
        data_shapes: list,
        label_shapes: list | None = None,
        for_training: bool = True,
        inputs_need_grad: bool = False,
        force_rebind: bool = False,
        shared_module: Any = None,
        grad_req: Any = "write",
    ) -> None:
        """Get ready to compute on batches of these shapes."""
        raise NotImplementedError

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = SGD_DEFAULTS,
        force_init: bool = False,
    ) -> None:
        """Get ready to update."""
        raise NotImplementedError

    # -- all that training changes, for `fit(resume=...)` -------------------------------------

    def _training_state(self) -> Mapping[str, Any]:
        """Return everything that training changes, as a tree of arrays, bytes and numbers."""
        arg_params, aux_params = self.get_params()
        return {"arg": dict(arg_params), "aux": dict(aux_params)}

    def _restore_training_state(self, state: Mapping[str, Any]) -> None:
        """Take over what `_training_state` gave."""
        self.set_params(state["arg"], state["aux"])
