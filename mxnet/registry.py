"""Registries of classes by name, for initializers, metrics and others.

Each base class has a registry. Names are lowercase, by default the class name.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from .error import InvalidValue, MXNetError, did_you_mean

__all__ = ["get_alias_func", "get_create_func", "get_register_func", "get_registry"]

string_types = (str,)
Class = TypeVar("Class", bound=type)
_registries: dict[type, dict[str, type]] = {}


class RegistryError(InvalidValue, KeyError):
    """Raised for unknown names and invalid descriptions."""

    __str__ = MXNetError.__str__  # KeyError's would quote the message


def get_registry(base_class: type) -> dict[str, type]:
    """Return a copy of the registry of a base class: name -> class.

    Parameters
    ----------
    base_class
        The base class.

    >>> "accuracy" in mx.registry.get_registry(mx.metric.EvalMetric)
    True
    """
    return dict(_registries.setdefault(base_class, {}))


def get_register_func(base_class: type, nickname: str) -> Callable:
    """Return the decorator that registers subclasses of a base class.

    Parameters
    ----------
    base_class
        The base class.
    nickname
        Name of such classes in messages.

    >>> class Shape: ...
    >>> register = get_register_func(Shape, "shape")
    >>> @register
    ... class Circle(Shape): ...
    >>> get_registry(Shape)["circle"] is Circle
    True
    """
    registered = _registries.setdefault(base_class, {})

    def register(klass: Class, name: str | None = None) -> Class:
        if not (isinstance(klass, type) and issubclass(klass, base_class)):
            raise RegistryError(
                f"Can only register subclass of {base_class.__name__}, got {klass!r}"
            )
        name = (name or klass.__name__).lower()
        previous = registered.get(name, klass)
        if previous is not klass:
            warnings.warn(
                f"New {nickname} {klass.__module__}.{klass.__name__} registered with name {name} "
                f"is overriding existing {nickname} {previous.__module__}.{previous.__name__}",
                UserWarning,
                stacklevel=2,
            )
        registered[name] = klass
        return klass

    register.__doc__ = f"""Register a class as {nickname}, by its own name or the one given.

    Parameters
    ----------
    klass
        The class.
    name
        The name, in any case; by default that of the class.

    >>> @mx.{nickname}.register
    ... class Example(mx.{nickname}.{base_class.__name__}): ...
    """
    return register


def get_alias_func(base_class: type, nickname: str) -> Callable:
    """Return the decorator that registers a subclass under several names.

    Parameters
    ----------
    base_class
        The base class.
    nickname
        Name of such classes in messages.

    >>> class Color: ...
    >>> alias = get_alias_func(Color, "color")
    >>> @alias("red", "crimson")
    ... class Red(Color): ...
    >>> sorted(get_registry(Color))
    ['crimson', 'red']
    """
    register = get_register_func(base_class, nickname)

    def alias(*aliases: str) -> Callable[[Class], Class]:
        def remember(klass: Class) -> Class:
            for name in aliases:
                register(klass, name)
            return klass

        return remember

    alias.__doc__ = f"""Register a {nickname} under each of the names.

    Parameters
    ----------
    *aliases
        The names, in any case.

    >>> @mx.{nickname}.alias("example", "sample")
    ... class Example(mx.{nickname}.{base_class.__name__}): ...
    """
    return alias


def get_create_func(base_class: type, nickname: str) -> Callable:
    """Return the function that creates instances from a name, a description or JSON.

    Parameters
    ----------
    base_class
        The base class.
    nickname
        Name of such classes in messages.

    >>> class Animal:
    ...     def __init__(self, legs=4):
    ...         self.legs = legs
    >>> dog = get_register_func(Animal, "animal")(type("Dog", (Animal,), {}))
    >>> create = get_create_func(Animal, "animal")
    >>> create("dog", legs=3).legs, create('["dog", {"legs": 5}]').legs
    (3, 5)
    """
    registered = _registries.setdefault(base_class, {})

    def create(*args: Any, **kwargs: Any) -> Any:
        if args:
            value, args = args[0], args[1:]
        elif nickname in kwargs:
            value = kwargs.pop(nickname)
        else:
            raise RegistryError(f"Which {nickname}? Give its name: one of {sorted(registered)}.")
        if isinstance(value, base_class):
            if args or kwargs:
                raise RegistryError(
                    f"{nickname} is already an instance. Additional arguments are invalid: "
                    f"{[*args, *kwargs]}"
                )
            return value
        if isinstance(value, str) and value[:1] in ("[", "{"):
            if args or kwargs:
                raise RegistryError(f"A {nickname} given as JSON takes no further arguments.")
            value = _read(value, nickname)
        if isinstance(value, dict):
            return create(**value, **kwargs)
        if isinstance(value, list):
            return create(value[0], **value[1], **kwargs)
        if not isinstance(value, str):
            raise RegistryError(f"{nickname} must be of string type, got {type(value).__name__}")
        klass = registered.get(value.lower())
        if klass is None:
            raise RegistryError(
                f"{value} is not registered. Please register with {nickname}.register first. "
                + (
                    did_you_mean(value.lower(), registered)
                    or f"Known: {', '.join(sorted(registered))}."
                )
            )
        return klass(*args, **kwargs)

    create.__doc__ = f"""Return a {nickname} as it is given, or made from its name or JSON.

    Parameters
    ----------
    *args
        An instance, a name, JSON such as ``'["name", {{...}}]'``, or a dict with the key
        ``{nickname!r}``; then arguments of the class.
    """
    return create


def _read(text: str, nickname: str) -> Any:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise RegistryError(f"This {nickname} is not readable JSON: {text!r} ({error})") from None
    if isinstance(value, list) and (
        len(value) != 2 or not isinstance(value[0], str) or not isinstance(value[1], dict)
    ):
        raise RegistryError(f"A {nickname} in a list is [name, {{arguments}}], got {text!r}")
    return value
