"""Classes by nickname."""

from __future__ import annotations

import pytest

from mxnet import registry
from mxnet.error import MXNetError


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


def test_names_are_lower_case():
    assert registry.get_registry(Thing) == {"foo": Foo, "bar": Bar, "baz": Bar}


def test_the_registry_handed_out_is_a_copy():
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
def test_many_ways_to_name_one(args, kwargs, given):
    made = create(*args, **kwargs)
    assert isinstance(made, Foo)
    assert made.given == given


def test_an_instance_is_returned_as_it_is():
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
def test_mistakes_are_told(args, message):
    with pytest.raises(ValueError, match=message):
        create(*args)


def test_strangers_are_refused_and_overriding_is_told():
    with pytest.raises(MXNetError, match="Can only register subclass of Thing"):
        register(int)
    other = type("Foo", (Thing,), {})
    with pytest.warns(UserWarning, match="overriding existing thing"):
        register(other)
    with pytest.warns(UserWarning, match="overriding existing thing"):
        register(Foo)
