"""`SequentialModule`: a chain of modules."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from ..initializer import Initializer, Uniform
from ..io import DataDesc
from ..ndarray import NDArray
from .base_module import SGD_DEFAULTS, BaseModule


class SequentialModule(BaseModule):
    """A chain of modules, each of which takes the outputs of the previous one.

    Parameters
    ----------
    logger : logging.Logger
        Logger of the training; by default Python's `logging`.

    >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2)
    >>> chain = mx.mod.SequentialModule()
    >>> _ = chain.add(mx.mod.Module(net, label_names=None))
    >>> _ = chain.add(mx.mod.PythonLossModule(), take_labels=True, auto_wiring=True)
    >>> chain.bind([("data", (4, 3))], [("softmax_label", (4, 2))])
    >>> chain.output_shapes
    [('pyloss_output', (4, 2))]
    """

    META_TAKE_LABELS = "take_labels"
    META_AUTO_WIRING = "auto_wiring"
    _META_KEYS: ClassVar[set[str]] = {META_TAKE_LABELS, META_AUTO_WIRING}

    def __init__(self, logger: Any = logging) -> None:
        super().__init__(logger=logger)
        self._modules: list[BaseModule] = []
        self._metas: list[dict[str, Any]] = []
        self._data_shapes: list | None = None
        self._label_shapes: Any = None

    def add(self, module: BaseModule, **kwargs: Any) -> SequentialModule:
        """Append a module; return self.

        Parameters
        ----------
        module : BaseModule
        take_labels : bool
            Whether the module takes the labels.
        auto_wiring : bool
            Whether to rename its inputs to match the outputs of the previous module.
        """
        unknown = [key for key in kwargs if key not in self._META_KEYS]
        if unknown:
            raise AssertionError(f'Unknown meta "{unknown[0]}", a typo?')
        self._modules.append(module)
        self._metas.append(kwargs)
        self.binded = self.params_initialized = self.optimizer_initialized = False
        return self

    # -- names and shapes ---------------------------------------------------------------------

    @property
    def data_names(self) -> list[str]:
        """Names of the first module's inputs."""
        return self._modules[0].data_names if self._modules else []

    @property
    def output_names(self) -> list[str]:
        """Names of the last module's outputs."""
        return self._modules[-1].output_names if self._modules else []

    @property
    def data_shapes(self) -> list:
        """Descriptions of the first module's inputs, after `bind`."""
        self._need_bind()
        return self._modules[0].data_shapes

    @property
    def label_shapes(self) -> list | None:
        """Descriptions of the labels, after `bind`; None if no module takes labels."""
        self._need_bind()
        return self._label_shapes

    @property
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Name and shape of each output of the last module, after `bind`."""
        self._need_bind()
        return self._modules[-1].output_shapes

    # -- parameters ---------------------------------------------------------------------------

    def get_params(self) -> tuple[dict, dict]:
        """Return the parameters of all modules."""
        self._need_params()
        args: dict[str, NDArray] = {}
        auxes: dict[str, NDArray] = {}
        for module in self._modules:
            arg, aux = module.get_params()
            args.update(arg)
            auxes.update(aux)
        return args, auxes

    def init_params(
        self,
        initializer: Initializer | None = Uniform(0.01),  # noqa: B008 (it holds no state)
        arg_params: Any = None,
        aux_params: Any = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Initialize the parameters of all modules."""
        if self.params_initialized and not force_init:
            return
        self._need_bind()
        for module in self._modules:
            module.init_params(
                initializer=initializer,
                arg_params=arg_params,
                aux_params=aux_params,
                allow_missing=allow_missing,
                force_init=force_init,
                allow_extra=allow_extra,
            )
        self._check_names()
        self.params_initialized = True

    def _check_names(self) -> None:
        owner: dict[str, int] = {}
        for i, module in enumerate(self._modules):
            for name in (n for params in module.get_params() for n in params):
                if name in owner:
                    j = owner[name]
                    raise AssertionError(
                        f'Duplicated parameter names: name "{name}" in layer {i} ({type(module)}) '
                        f"is already used in layer {j} ({type(self._modules[j])})."
                    )
                owner[name] = i

    # -- binding ------------------------------------------------------------------------------

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
        """Bind all modules, each to the output shapes of the previous one."""
        if self.binded and not force_rebind:
            self.logger.warning("Already bound, ignoring bind()")
            return
        if inputs_need_grad and not for_training:
            raise AssertionError("inputs_need_grad=True needs for_training=True")
        if shared_module is not None:
            raise AssertionError("Shared module is not supported")
        if not self._modules:
            raise AssertionError("Attempting to bind an empty SequentialModule")
        self.for_training, self.inputs_need_grad = for_training, inputs_need_grad
        shapes, any_takes_labels = list(data_shapes), False
        for i, (module, meta) in enumerate(zip(self._modules, self._metas, strict=True)):
            takes = bool(meta.get(self.META_TAKE_LABELS))
            any_takes_labels |= takes
            if meta.get(self.META_AUTO_WIRING):
                shapes = _renamed(shapes, module.data_names)
            module.bind(
                data_shapes=shapes,
                label_shapes=label_shapes if takes else None,
                for_training=for_training,
                inputs_need_grad=bool(inputs_need_grad or (for_training and i > 0)),
                force_rebind=force_rebind,
                grad_req=grad_req,
            )
            shapes = module.output_shapes
        self._label_shapes = label_shapes if any_takes_labels else None
        self.binded = True

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = SGD_DEFAULTS,
        force_init: bool = False,
    ) -> None:
        """Create the optimizers of all modules and their states."""
        self._need_params()
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring.")
            return
        for module in self._modules:
            module.init_optimizer(kvstore, optimizer, optimizer_params, force_init)
        self.optimizer_initialized = True

    # -- steps --------------------------------------------------------------------------------

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Run all modules, one after the other."""
        self._need_params()
        batch = copy.copy(data_batch)
        last = len(self._modules) - 1
        for i, module in enumerate(self._modules):
            module.forward(batch, is_train=is_train)
            if i < last:
                batch.data = module.get_outputs()
                if getattr(batch, "provide_data", None):
                    names = [name for name, _ in module.output_shapes]
                    if self._metas[i + 1].get(self.META_AUTO_WIRING):
                        names = self._modules[i + 1].data_names
                    batch.provide_data = [
                        DataDesc(name, x.shape) for name, x in zip(names, batch.data, strict=True)
                    ]

    def backward(self, out_grads: Any = None) -> None:
        """Run backward through all modules, the last one first."""
        self._need_params()
        for i, module in reversed(list(enumerate(self._modules))):
            module.backward(out_grads=out_grads)
            if i > 0:
                out_grads = module.get_input_grads()

    def update(self) -> None:
        """Update all modules."""
        self._need_optimizer()
        for module in self._modules:
            module.update()

    def get_outputs(self, merge_multi_context: bool = True) -> list:
        """Return the outputs of the last module."""
        self._need_params()
        return self._modules[-1].get_outputs(merge_multi_context=merge_multi_context)

    def get_input_grads(self, merge_multi_context: bool = True) -> list:
        """Return the gradients of the first module's inputs."""
        self._need_params()
        if not self.inputs_need_grad:
            raise AssertionError("bind with inputs_need_grad=True to get gradients of the inputs")
        return self._modules[0].get_input_grads(merge_multi_context=merge_multi_context)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Update a metric with the outputs of the modules that take labels."""
        self._need_params()
        for module, meta in zip(self._modules, self._metas, strict=True):
            if meta.get(self.META_TAKE_LABELS):
                module.update_metric(eval_metric, labels, pre_sliced)

    def install_monitor(self, mon: Any) -> None:
        """Install a monitor on all modules."""
        self._need_bind()
        for module in self._modules:
            module.install_monitor(mon)

    # -- training state ------------------------------------------------------------

    def _training_state(self) -> dict[str, Any]:
        return {"modules": [dict(module._training_state()) for module in self._modules]}

    def _restore_training_state(self, state: Mapping[str, Any]) -> None:
        for module, part in zip(self._modules, state["modules"], strict=True):
            module._restore_training_state(part)


def _renamed(shapes: Sequence, names: Sequence[str]) -> list[DataDesc]:
    if len(names) != len(shapes):
        raise AssertionError(
            f"auto_wiring: {len(shapes)} outputs cannot feed the inputs {', '.join(names)}"
        )
    return [DataDesc(name, shape[1]) for name, shape in zip(names, shapes, strict=True)]
