"""`Module`: a symbol with parameters and an optimizer, on one device or several."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from ..context import Context
from ..formats.atomic import one_commit
from ..initializer import Uniform  # noqa: F401 (MXNet shows it here)
from ..io import DataDesc  # noqa: F401 (MXNet shows it here)
from ..model import load_checkpoint, params_name, write_params, write_symbol
from ..symbol import Symbol
from . import optimizing
from .base_module import BaseModule
from .executor_group import DataParallelExecutorGroup  # noqa: F401 (MXNet shows it here)
from .steps import SGD_DEFAULTS
from .symbol_module import SymbolModule


class Module(SymbolModule):
    """A symbol that can be trained and used for prediction.

    Parameters
    ----------
    symbol : Symbol
        The network, which ends in an output layer such as `SoftmaxOutput`.
    data_names, label_names : list of str
        The arguments that come with each batch.
    logger : logging.Logger
        Where training writes; by default Python's `logging`.
    context : Context or list of Context
        Where to compute; a batch is spread over several devices.
    work_load_list : list of float, optional
        How large each device's part is, in proportion.
    fixed_param_names : list of str, optional
        Parameters that are not trained.
    state_names : list of str, optional
        Arguments that are neither parameters nor come with a batch.
    group2ctxs : dict or list of dicts, optional
        Where each ``ctx_group`` of the symbol runs.
    compression_params : dict, optional
        How gradients are compressed between devices.

    >>> net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, no_bias=True, name="fc")
    >>> mod = mx.mod.Module(net, label_names=None)
    >>> mod.bind([("data", (1, 3))], for_training=False)
    >>> mod.init_params(mx.init.One())
    >>> mod.predict(mx.nd.array([[1, 2, 3]])).asnumpy()
    array([[6., 6.]], dtype=float32)
    """

    def __init__(
        self,
        symbol: Symbol,
        data_names: Sequence[str] | None = ("data",),
        label_names: Sequence[str] | None = ("softmax_label",),
        logger: Any = logging,
        context: Context | Sequence[Context] | None = None,
        work_load_list: Sequence[float] | None = None,
        fixed_param_names: Sequence[str] | None = None,
        state_names: Sequence[str] | None = None,
        group2ctxs: Any = None,
        compression_params: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(
            symbol,
            data_names,
            label_names,
            logger,
            context,
            work_load_list,
            fixed_param_names,
            state_names,
            group2ctxs,
        )
        self._compression_params = compression_params
        self._optimizer: Any = None
        self._kvstore: Any = None
        self._update_on_kvstore: bool | None = None
        self._updater: Any = None
        self._preload_opt_states: str | None = None

    # -- optimizer ----------------------------------------------------------------------------

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = SGD_DEFAULTS,
        force_init: bool = False,
    ) -> None:
        """Get ready to update.

        Parameters
        ----------
        kvstore : str, KVStore or None
            How devices and machines exchange gradients; one device needs none.
        optimizer : str or Optimizer
            One that is made here scales gradients by 1 / batch size.
        optimizer_params : dict, or pairs
            Arguments of the optimizer, as a dict or pairs.
        force_init : bool
            Do it even if it was done before.
        """
        self._need_params()
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring...")
            return
        if self._params_dirty:
            self._sync_params_from_devices()
        optimizing.attach_optimizer(self, kvstore, optimizer, optimizer_params)
        self.optimizer_initialized = True
        if self._preload_opt_states is not None:
            self.load_optimizer_states(self._preload_opt_states)
            self._preload_opt_states = None

    def _share_with(self, module: Module) -> None:
        """Use another module's parameters, and its optimizer if there is one."""
        super()._share_with(module)
        if module.optimizer_initialized:
            self.borrow_optimizer(module)

    def borrow_optimizer(self, shared_module: Module) -> None:
        """Use another module's optimizer; both must share their parameters.

        Parameters
        ----------
        shared_module
            The other module.
        """
        if not shared_module.optimizer_initialized:
            raise AssertionError("shared_module has no optimizer yet: call its init_optimizer")
        self._optimizer = shared_module._optimizer
        self._kvstore = shared_module._kvstore
        self._update_on_kvstore = shared_module._update_on_kvstore
        self._updater = shared_module._updater
        self.optimizer_initialized = True

    def update(self) -> None:
        """Change the parameters by the gradients of the last backward."""
        self._need_optimizer()
        self._params_dirty = True
        optimizing.update_params(self)

    # -- files --------------------------------------------------------------------------------

    @staticmethod
    def load(prefix: str, epoch: int, load_optimizer_states: bool = False, **kwargs: Any) -> Module:
        """Return a module with the symbol and the parameters of a checkpoint.

        Parameters
        ----------
        prefix
            What the names of the files begin with.
        epoch
            Number of the epoch.
        load_optimizer_states
            Whether to load the states of the optimizer too.
        """
        symbol, args, auxes = load_checkpoint(prefix, epoch)
        mod = Module(symbol=symbol, **kwargs)
        mod._arg_params, mod._aux_params = args, auxes
        mod.params_initialized = True
        if load_optimizer_states:
            mod._preload_opt_states = _states_name(prefix, epoch)
        return mod

    def save_checkpoint(
        self,
        prefix: str,
        epoch: int,
        save_optimizer_states: bool = False,
        remove_amp_cast: bool = True,
    ) -> None:
        """Write symbol and parameters, and perhaps the optimizer's states, as one commit.

        Parameters
        ----------
        prefix
            What the names of the files begin with.
        epoch
            Number of the epoch.
        save_optimizer_states
            Whether to save the states of the optimizer too.
        remove_amp_cast
            Whether casts of mixed precision are left out of the saved symbol.
        """
        with one_commit():
            text = write_symbol(f"{prefix}-symbol.json", self._symbol, remove_amp_cast)
            name = params_name(prefix, epoch)
            if type(self).save_params is BaseModule.save_params:
                write_params(name, *self.get_params(), text)
            else:  # the method of a user's class has the last word
                self.save_params(name)
            if save_optimizer_states:
                self.save_optimizer_states(_states_name(prefix, epoch))
        logging.info('Saved checkpoint to "%s"', name)
        if save_optimizer_states:
            logging.info('Saved optimizer state to "%s"', _states_name(prefix, epoch))

    def save_optimizer_states(self, fname: str) -> None:
        """Write what the optimizer remembers, such as momenta.

        Parameters
        ----------
        fname
            Path of the file.
        """
        self._need_optimizer()
        optimizing.write_states(self, fname)

    def load_optimizer_states(self, fname: str) -> None:
        """Read what `save_optimizer_states` wrote, here or in MXNet.

        Parameters
        ----------
        fname
            Path of the file.
        """
        self._need_optimizer()
        optimizing.read_states(self, fname)

    # -- all that training changes ------------------------------------------------------------

    def _training_state(self) -> dict[str, Any]:
        return optimizing.state_of(self)

    def _restore_training_state(self, state: Mapping[str, Any]) -> None:
        optimizing.restore(self, state)


def _states_name(prefix: str, epoch: int) -> str:
    return f"{prefix}-{epoch:04d}.states"
