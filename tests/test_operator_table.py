"""The page of operators is true, and operators in use are declared as MXNet has them."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from mxnet.ops import registry
from tools.tables import NAMES, PAGE, absent_names, differing, page

RECORDED = json.loads(NAMES.read_text(encoding="utf-8"))
IN_USE = RECORDED["in_use"]
# MXNet 1.9.1 accepts these attributes, though its own tables do not list them.
UNLISTED = {"_linalg_potrf": {"lower": "True"}, "_linalg_potri": {"lower": "True"}}


def _same(given: Any, wanted: Any) -> bool:
    """Compare defaults; MXNet kept floating-point ones in single precision."""
    if isinstance(given, tuple) and isinstance(wanted, tuple):
        return len(given) == len(wanted) and all(map(_same, given, wanted))
    if isinstance(given, float) and isinstance(wanted, float):
        return math.isclose(given, wanted, rel_tol=1e-6)
    return given == wanted


def test_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tools.tables"


def test_differences_speak_of_registered_operators() -> None:
    assert differing()
    unknown = [name for name in differing() if registry.find(name) is None]
    assert not unknown


def test_no_name_is_our_own_invention() -> None:
    """A model file with a name that MXNet does not know could not go back to it."""
    known = {name for first, others in RECORDED["aliases"].items() for name in (first, *others)}
    ours = ("fused", "interchange")  # what the compiler makes, and what other formats mean
    own = {op.name for op in registry.operators() if op.function.__module__.split(".")[2] in ours}
    assert set(registry.names()) - own <= known
    assert not known & set(absent_names()) & set(registry.names())


@pytest.mark.parametrize("name", IN_USE)
def test_declaration_equals_mxnet(name: str) -> None:
    """All names, and all attributes in order with equal defaults (None: must be given)."""
    op = registry.get(name)
    for alias in RECORDED["aliases"][name]:
        assert registry.find(alias) is op, f"{alias} is another operator"
    wanted = {k: v for k, v in IN_USE[name].items() if k != op.count} | UNLISTED.get(name, {})
    assert [a for a in op.attributes if a != op.count] == list(wanted)
    for key, text in wanted.items():
        attribute = op.attributes[key]
        assert attribute.required == (text is None), key
        if text is not None:
            assert _same(attribute.default, attribute.parse(text, name)), key
