"""Helpers for tests: comparison, random arrays, gradient checks, data files, statistics.

Programs write ``from mxnet.test_utils import *`` and then use ``mx``, ``np``, ``os`` and others of
the names below, so ``__all__`` has them all.
"""

import bz2
import errno
import gzip
import json
import logging
import numbers
import os
import platform
import struct
import sys
import time
import traceback
import zipfile
from collections import OrderedDict
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.random as rnd
import numpy.testing as npt

import mxnet as mx

from ..context import Context, current_context
from ..ndarray import array
from ..runtime import Features
from ..symbol import Symbol
from ..symbol.numpy import _Symbol as np_symbol
from ..util import get_cuda_compute_capability, getenv, setenv, use_np
from .comparison import (
    _find_max_violation,
    almost_equal,
    assert_allclose,
    assert_almost_equal,
    assert_almost_equal_ignore_nan,
    assert_almost_equal_with_err,
    assert_exception,
    checkShapes,
    compare_ndarray_tuple,
    compare_optimizer,
    default_atols,
    default_dtype,
    default_numeric_eps,
    default_rtols,
    effective_dtype,
    get_atol,
    get_etol,
    get_rtol,
    get_tolerance,
    get_tols,
    locationError,
    same,
    same_array,
    same_symbol_structure,
)
from .consistency import (
    check_consistency,
    check_gluon_hybridize_consistency,
    check_speed,
    default_context,
    discard_stderr,
    environment,
    has_tvm_ops,
    is_aarch64_run,
    is_cd_run,
    is_op_runnable,
    list_gpus,
    retry,
    set_default_context,
)
from .data_files import (
    DummyIter,
    download,
    download_model,
    get_bz2_data,
    get_cifar10,
    get_im2rec_path,
    get_mnist,
    get_mnist_iterator,
    get_mnist_pkl,
    get_mnist_ubyte,
    get_zip_data,
)
from .gradient_checks import (
    _parse_aux_states,
    _parse_location,
    check_numeric_gradient,
    check_symbolic_backward,
    check_symbolic_forward,
    numeric_grad,
    simple_forward,
)
from .random_arrays import (
    assign_each,
    assign_each2,
    chi_square_check,
    collapse_sum_like,
    create_2d_tensor,
    create_vector,
    gen_buckets_probs_with_ppf,
    get_identity_mat,
    get_identity_mat_batch,
    mean_check,
    new_matrix_with_real_eigvals_2d,
    new_matrix_with_real_eigvals_nd,
    new_orthonormal_matrix_2d,
    new_sym_matrix_with_real_eigvals_2d,
    new_sym_matrix_with_real_eigvals_nd,
    np_reduce,
    rand_coord_2d,
    rand_shape_2d,
    rand_shape_3d,
    rand_shape_nd,
    random_arrays,
    random_sample,
    random_uniform_arrays,
    var_check,
    verify_generator,
)
from .sparse_arrays import (
    create_sparse_array,
    create_sparse_array_zd,
    rand_ndarray,
    rand_sparse_ndarray,
    shuffle_csr_column_indices,
)


def __getattr__(name: str) -> Any:
    """Import slow parts on first access, also by ``import *``."""
    if name == "ss":
        try:
            import scipy.stats
        except ImportError:
            return None
        return scipy.stats
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _is_ours_to_show(name: str) -> bool:
    """Whether ``import *`` exports a name: neither private, nor a module of this package."""
    inside = getattr(globals()[name], "__name__", "").startswith(f"{__name__}.")
    return not (name.startswith("_") or name == "Any" or inside)


__all__ = [name for name in list(globals()) if _is_ours_to_show(name)] + ["ss"]
