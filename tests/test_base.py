"""`mxnet.base` and `mxnet.registry`."""

from __future__ import annotations

import array
import ctypes
import sys
import types

import numpy as np
import pytest

import mxnet as mx
from mxnet import base, registry
from mxnet.error import MXNetError


def test_ctypes_helper_functions():
    assert base.c_str("ab").value == b"ab"
    assert list(base.c_str_array(["a", "ü"])) == [b"a", "ü".encode()]
    assert list(base.c_array(base.mx_uint, [1, 2])) == [1, 2]
    assert base.py_str(b"relu") == "relu"
    buffer = array.array("I", [3, 4])
    shared = base.c_array_buf(ctypes.c_uint, buffer)
    shared[0] = 7
    assert buffer[0] == 7
    x = mx.nd.ones((2,))
    handle = base.NDArrayHandle(base.c_handle_array([x])[0])
    assert mx.nd.NDArray(handle).handle.data_ptr() == x.handle.data_ptr()


def test_ctypes_pointers_convert_to_arrays_and_buffers():
    numbers = (ctypes.c_float * 4)(1, 2, 3, 4)
    seen = base.ctypes2numpy_shared(ctypes.cast(numbers, base.mx_float_p), (2, 2))
    seen[0, 0] = 9
    assert numbers[0] == 9 and seen.dtype == np.float32
    text = ctypes.cast(ctypes.create_string_buffer(b"abc"), ctypes.POINTER(ctypes.c_char))
    assert base.ctypes2buffer(text, 3) == bytearray(b"abc")
    with pytest.raises(RuntimeError, match="float pointer"):
        base.ctypes2numpy_shared(3, (2,))
    with pytest.raises(TypeError, match="char pointer"):
        base.ctypes2buffer(3, 3)


def test_calling_the_c_library_raises():
    base.check_call(0)
    with pytest.raises(base.MXNetError, match="code -1"):
        base.check_call(-1)
    with pytest.raises(base.MXNetError, match="MXNDArrayCreate is a function of MXNet's C library"):
        base._LIB.MXNDArrayCreate()
    assert not hasattr(base._LIB, "__wrapped__")


def test_number_and_string_types():
    assert isinstance(np.int64(3), base.integer_types) and isinstance(3, base.integer_types)
    assert isinstance(np.float16(1), base.numeric_types)
    assert isinstance("x", base.string_types) and base.mx_real_t is np.float32


def test_data_dir(monkeypatch, tmp_path):
    monkeypatch.delenv("MXNET_HOME", raising=False)
    assert base.data_dir() == base.data_dir_default()
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    assert base.data_dir() == str(tmp_path)


def test_not_supported_for_sparse_ndarray_is_exported():
    assert issubclass(base.NotSupportedForSparseNDArray, base.MXNetError)
    with pytest.raises(AttributeError, match="nothing"):
        base.nothing  # noqa: B018


def test_build_param_doc():
    text = base.build_param_doc(["a", "b", "a"], ["int", "float", "x"], ["desc a", "", "zz"])
    assert text == "Parameters\n----------\na : int\n    desc a\nb : float\n"


def test_version_py_str_and_classproperty():
    assert base.__version__ == mx.__version__ == "1.9.1"
    assert base.py_str(x=b"a") == "a"

    class Thing:
        @base.classproperty
        def label(cls):
            return cls.__name__

    assert Thing.label == "Thing"
    assert base.c_handle_array([mx.sym.var("x")])[0]


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ("ValueError: abc", ("ValueError: abc", "ValueError")),
        ("foo.Bar: x", ("foo.Bar: x", "foo.Bar")),
        ("no colon at all", ("no colon at all", None)),
        ("Check failed: a == b: hm", ("Check failed: a == b: hm", None)),
        (
            "ValueError: bad\nmore\nStack trace:\n  [bt] (0) f\n  [bt] (1) g\ntail",
            (
                "Traceback (most recent call last):\n  [bt] (1) g\n  [bt] (0) f\n"
                "ValueError: bad\nmore\ntail",
                "ValueError",
            ),
        ),
    ],
    ids=["kind", "dotted", "none", "sentence", "stack"],
)
def test_c2pyerror(message, wanted):
    assert base.c2pyerror(message) == wanted


def test_add_fileline_to_docstring(monkeypatch):
    module = types.ModuleType("told")
    code = (
        'def f():\n    """Doc."""\n\ndef g(): ...\n\n'
        'class K:\n    """K."""\n    def m(self):\n        """M."""\n'
    )
    exec(compile(code, "told.py", "exec"), vars(module))
    monkeypatch.setitem(sys.modules, "told", module)
    base.add_fileline_to_docstring(module, incursive=False)
    assert module.f.__doc__ == "Doc.\n\nFrom:told.py:1" and module.g.__doc__ is None
    assert module.K.__doc__ == "K." and module.K.m.__doc__ == "M."
    base.add_fileline_to_docstring("told")
    assert module.K.m.__doc__ == "M.\n\nFrom:told.py:8"


def test_warnings_point_at_user_code():
    class Half(mx.gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.idle = self.params.get("idle", shape=(1,))

        def hybrid_forward(self, F, x, idle):
            return x * 2

    class Whole(mx.gluon.Block):
        def __init__(self):
            super().__init__()
            self.half = Half()

        def forward(self, x):
            return self.half(x)

    net = Whole()
    net.initialize()
    net.hybridize()
    with pytest.warns(UserWarning, match="not used by any computation") as told:
        net(mx.nd.ones((1,)))
    with pytest.warns(UserWarning, match="already initialized") as again:
        net.initialize()
    assert {w.filename for w in [*told, *again]} == {__file__}


# -- classes by nickname ------------------------------------------------------------------------


class Thing:
    def __init__(self, *args, **kwargs):
        self.given = (args, kwargs)


register = registry.get_register_func(Thing, "thing")
alias = registry.get_alias_func(Thing, "thing")
create = registry.get_create_func(Thing, "thing")


@register
class Foo(Thing):
    pass


@alias("bar", "Baz")
class Bar(Thing):
    pass


def test_registry_names_are_lower_case():
    assert registry.get_registry(Thing) == {"foo": Foo, "bar": Bar, "baz": Bar}


def test_get_registry_returns_a_copy():
    registry.get_registry(Thing).clear()
    assert "foo" in registry.get_registry(Thing)


@pytest.mark.parametrize(
    ("args", "kwargs", "given"),
    [
        (("FOO", 1), {"x": 2}, ((1,), {"x": 2})),
        (('["foo", {"x": 1}]',), {}, ((), {"x": 1})),
        (('{"thing": "foo", "x": 5}',), {}, ((), {"x": 5})),
        (({"thing": "foo", "y": 1},), {}, ((), {"y": 1})),
        ((), {"thing": "foo", "z": 1}, ((), {"z": 1})),
    ],
)
def test_create_by_name_alias_json_or_keyword(args, kwargs, given):
    made = create(*args, **kwargs)
    assert isinstance(made, Foo)
    assert made.given == given


def test_create_returns_instances_unchanged():
    foo = Foo()
    assert create(foo) is foo
    with pytest.raises(MXNetError, match="already an instance"):
        create(foo, 1)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("fo",), "Did you mean 'foo'"),
        ((5,), "string type"),
        ((), "Give its name"),
        (('["foo"',), "not readable JSON"),
        (('["foo"]',), r"\[name, \{arguments\}\]"),
        (('["foo", {}]', 3), "no further arguments"),
    ],
)
def test_invalid_configurations_raise(args, message):
    with pytest.raises(ValueError, match=message):
        create(*args)


def test_registering_unrelated_classes_raises_and_overriding_warns():
    with pytest.raises(MXNetError, match="Can only register subclass of Thing"):
        register(int)
    other = type("Foo", (Thing,), {})
    with pytest.warns(UserWarning, match="overriding existing thing"):
        register(other)
    with pytest.warns(UserWarning, match="overriding existing thing"):
        register(Foo)
