"""Removed functions that have no successor of one name: their calls are written anew.

``np.asscalar(x)`` becomes ``x.item()``. Functions of `scipy.misc`, which no expression of today
equals, are defined in the program itself, by PIL. A call is rewritten only where the new one does
the same; any other is left to the author.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..run import scipy_misc
from ..run.program import import_aliases, resolve
from .finding import Edit, Finding, replace_node
from .modules import is_gone

# Functions that `mx fix` defines in the program.
DEFINED = {f"scipy.misc.{name}": name for name in ("imread", "imresize", "imsave", "toimage")}
# Constants: the new text, with the name of the module.
_CONSTANTS = {"numpy.NINF": "(-{}.inf)", "numpy.PZERO": "0.0", "numpy.NZERO": "(-0.0)"}
_ATOMS = ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.List | ast.ListComp | ast.Dict


class Call(NamedTuple):
    """A call of a removed function without keywords or stars, and what it is a part of."""

    module: str  # as the program calls it
    args: list[ast.expr]
    parent: ast.AST | None

    def text(self, index: int) -> str:
        """Return the text of an argument."""
        return ast.unparse(self.args[index])

    def atom(self, index: int) -> str:
        """Return the text of an argument, so that a dot can follow."""
        node = self.args[index]
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        return self.text(index) if isinstance(node, _ATOMS) or is_text else f"({self.text(index)})"


def _rewrite_join(call: Call) -> str:
    separator = call.atom(1) if len(call.args) == 2 else "' '"
    return f"{separator}.join({call.text(0)})"


def _rewrite_random_integers(call: Call) -> str | None:
    if len(call.args) == 1:
        return f"{call.module}.randint(1, {call.atom(0)} + 1)"
    size = f", {call.text(2)}" if len(call.args) == 3 else ""
    return f"{call.module}.randint({call.text(0)}, {call.atom(1)} + 1{size})"


def _rewrite_getargspec(call: Call) -> str | None:
    """Return the call of today where the first four fields alone are used, under equal names."""
    new, parent = f"{call.module}.getfullargspec({call.text(0)})", call.parent
    if isinstance(parent, ast.Attribute) and parent.attr in ("args", "varargs", "defaults"):
        return new
    if isinstance(parent, ast.Attribute) and parent.attr == "keywords":
        return None  # it is called varkw, which is beyond the call
    if isinstance(parent, ast.Subscript) and ast.unparse(parent.slice) in ("0", "1", "2", "3"):
        return new
    targets = parent.targets if isinstance(parent, ast.Assign) else []
    if len(targets) == 1 and isinstance(targets[0], ast.Tuple) and len(targets[0].elts) == 4:
        return f"{new}[:4]"
    return None


# By the old name: how many arguments there may be, and the new call.
_CALLS: dict[str, tuple[range, Callable[[Call], str | None]]] = {
    "numpy.asscalar": (range(1, 2), lambda c: f"{c.atom(0)}.item()"),
    "numpy.asfarray": (range(1, 2), lambda c: f"{c.module}.asarray({c.text(0)}, dtype=float)"),
    "numpy.msort": (range(1, 2), lambda c: f"{c.module}.sort({c.text(0)}, axis=0)"),
    "numpy.rank": (range(1, 2), lambda c: f"{c.module}.ndim({c.text(0)})"),
    "numpy.random.random_integers": (range(1, 4), _rewrite_random_integers),
    "string.join": (range(1, 3), _rewrite_join),
    "inspect.getargspec": (range(1, 2), _rewrite_getargspec),
    "pandas.rolling_mean": (range(2, 3), lambda c: f"{c.atom(0)}.rolling({c.text(1)}).mean()"),
    "pandas.rolling_std": (range(2, 3), lambda c: f"{c.atom(0)}.rolling({c.text(1)}).std()"),
}


def check_rewrites(tree: ast.Module) -> Iterator[Finding]:
    """Give the uses of removed functions whose calls can be written anew."""
    aliases = import_aliases(tree)
    parents = {id(part): node for node in ast.walk(tree) for part in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from _check_call(node, aliases, parents.get(id(node)))
        elif isinstance(node, ast.Attribute):
            yield from _check_attribute(tree, node, resolve(node, aliases) or "")
        elif isinstance(node, ast.ImportFrom | ast.Import):
            yield from _check_import(tree, node, aliases)


def _check_call(
    node: ast.Call, aliases: dict[str, str], parent: ast.AST | None
) -> Iterator[Finding]:
    name = resolve(node.func, aliases) or ""
    counts, rewrite = _CALLS.get(name, (range(0), None))
    module = name.rpartition(".")[0]
    is_plain = not node.keywords and not any(isinstance(a, ast.Starred) for a in node.args)
    if rewrite is None or not is_plain or len(node.args) not in counts or not _is_gone(name):
        return
    owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else module
    new = rewrite(Call(owner, node.args, parent))
    if new is not None:
        needs = "" if isinstance(node.func, ast.Attribute) or module not in new else module
        line = node.func.end_lineno or node.lineno
        edits = (replace_node(node, new),)
        yield Finding(line, name, "removed", f"write {new}", False, edits, needs)


def _check_attribute(tree: ast.Module, node: ast.Attribute, name: str) -> Iterator[Finding]:
    line = node.end_lineno or node.lineno
    if name in _CONSTANTS and _is_gone(name):
        new = _CONSTANTS[name].format(ast.unparse(node.value))
        edits = (replace_node(node, new),)
        yield Finding(line, name, "removed", f"write {new}", False, edits)
    elif name in DEFINED and _is_gone(name) and _can_define(tree, DEFINED[name]):
        edits = (replace_node(node, DEFINED[name]),)
        yield _defining(line, name, edits)


def _check_import(
    tree: ast.Module, node: ast.Import | ast.ImportFrom, aliases: dict[str, str]
) -> Iterator[Finding]:
    """Report imports of rewritten functions, and of `scipy.misc`, once nothing uses them."""
    module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
    for alias in node.names:
        name, local = f"{module}{alias.name}", alias.asname or alias.name
        edits = (_drop_import(node, alias),)
        if name in DEFINED and local == DEFINED[name] and _is_gone(name):
            if _can_define(tree, local):
                yield _defining(node.lineno, name, edits)
        elif name in _CALLS and _is_gone(name) and not _uses(tree, local):
            yield Finding(node.lineno, name, "removed", "nothing needs it now", False, edits)
        elif name == "scipy.misc" and is_gone(name, "imresize"):
            names = (resolve(n, aliases) for n in ast.walk(tree) if isinstance(n, ast.Attribute))
            if not any((n or "").startswith("scipy.misc.") for n in names):
                hint = "nothing needs it now"
                yield Finding(node.lineno, f"import {name}", "removed", hint, False, edits)


def _defining(line: int, name: str, edits: tuple[Edit, ...]) -> Finding:
    hint = f"the program gets a function {DEFINED[name]}, by PIL"
    return Finding(line, name, "removed", hint, False, edits, "", DEFINED[name])


def _is_gone(name: str) -> bool:
    module, _, function = name.rpartition(".")
    return is_gone(module, function)


def _uses(tree: ast.Module, local: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == local for n in ast.walk(tree))


def _can_define(tree: ast.Module, name: str) -> bool:
    """Return whether a program has no other use for the names that a definition takes."""
    names = {function.__name__ for function in _needed(name)}
    nodes = list(ast.walk(tree))
    bound = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    bound |= {n.arg for n in nodes if isinstance(n, ast.arg)}
    own = (n for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef))
    bound |= {n.name for n in own if ast.get_docstring(n) != _docstring(n.name)}
    return not names & bound


def _docstring(name: str) -> str | None:
    return inspect.getdoc(getattr(scipy_misc, name, None))


def _drop_import(node: ast.Import | ast.ImportFrom, gone: ast.alias) -> Edit:
    """Return the edit that takes one name out of an import."""
    names = ", ".join(ast.unparse(alias) for alias in node.names if alias is not gone)
    if isinstance(node, ast.Import):
        return replace_node(node, f"import {names or gone.name.partition('.')[0]}")
    if names:
        return replace_node(node, f"from {node.module} import {names}")
    return replace_node(node, f"import {(node.module or '').partition('.')[0]}")


def _needed(name: str) -> list[Callable]:
    """Return a function of `scipy_misc` after those of the module that it calls."""
    function = getattr(scipy_misc, name)
    called = [getattr(scipy_misc, n, None) for n in function.__code__.co_names]
    needed = [f for f in called if inspect.isfunction(f) and f.__module__ == scipy_misc.__name__]
    return [*dict.fromkeys(g for f in needed for g in _needed(f.__name__)), function]


def add_definitions(text: str, tree: ast.Module, names: list[str]) -> str:
    """Return a program with functions of `scipy.misc` defined after its first imports."""
    defined = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
    functions = dict.fromkeys(f for name in names for f in _needed(name))
    sources = [_plain_source(f) for f in functions if f.__name__ not in defined]
    if not sources:
        return text
    lines = text.splitlines(keepends=True)
    leading = ast.Import | ast.ImportFrom | ast.Expr
    after = 0
    for node in tree.body:
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not isinstance(node, leading) or (isinstance(node, ast.Expr) and not is_docstring):
            break
        after = node.end_lineno or node.lineno
    newline = "\r\n" if "\r\n" in text else "\n"
    added = "".join(f"\n\n{source}\n" for source in sources).replace("\n", newline)
    before, rest = "".join(lines[:after]), "".join(lines[after:])
    return f"{before}{'' if before.endswith(newline) else newline}{added}{newline}{rest}"


def _plain_source(function: Callable) -> str:
    """Return a function without annotations, which old programs do not have."""
    tree = ast.parse(inspect.getsource(function))
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef):
            node.returns = None
    return ast.unparse(tree)
