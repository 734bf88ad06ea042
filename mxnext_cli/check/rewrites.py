"""Calls that must be rewritten: of removed functions, and conversions that NumPy refuses.

``np.asscalar(x)`` becomes ``x.item()``. The functions of `scipy.misc` for images, which no
expression of today equals, come from a module that `mx fix` writes beside the program. A call is
rewritten only where the new one does the same; any other is left to the author.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..run import removed, scipy_misc
from ..run.lists import find_lists
from ..run.program import import_aliases, resolve
from ..run.python2 import comparison_of
from ..run.rewriting import bound_names, is_only_python_3
from .finding import Edit, Finding, replace_node
from .modules import is_gone, is_installed
from .values import Values

# The module that `mx fix` writes, and the functions that it has.
IMAGE_MODULE = "scipy_misc_images"
IMAGE_FUNCTIONS = {
    f"scipy.misc.{name}": name for name in ("imread", "imresize", "imsave", "toimage")
}
# Constants: the new text, with the name of the module.
_CONSTANTS = {"numpy.NINF": "(-{}.inf)", "numpy.PZERO": "0.0", "numpy.NZERO": "(-0.0)"}
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
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


def _rewrite_cmp(call: Call) -> str:
    return f"(({call.atom(0)} > {call.atom(1)}) - ({call.atom(0)} < {call.atom(1)}))"


def _rewrite_getargspec(call: Call) -> str | None:
    """Return the current call if only the first four fields are used, whose names are equal."""
    new, parent = f"{call.module}.getfullargspec({call.text(0)})", call.parent
    if isinstance(parent, ast.Attribute) and parent.attr in ("args", "varargs", "defaults"):
        return new
    if isinstance(parent, ast.Attribute) and parent.attr == "keywords":
        return None  # the new name, varkw, is outside of the call
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
    "builtins.cmp": (range(2, 3), _rewrite_cmp),
    "yaml.load": (range(1, 2), lambda c: f"{c.module}.safe_load({c.text(0)})"),
    "yaml.load_all": (range(1, 2), lambda c: f"{c.module}.safe_load_all({c.text(0)})"),
}
# Functions that take files of bytes, and which argument is the file.
_PICKLING = {"load": 0, "dump": 1, "Unpickler": 0, "Pickler": 0}


def check_rewrites(tree: ast.Module, *, is_in_package: bool) -> Iterator[Finding]:
    """Yield the calls that can be rewritten."""
    aliases = import_aliases(tree)
    parents = {id(part): node for node in ast.walk(tree) for part in ast.iter_child_nodes(node)}
    values = Values(tree)
    aliases |= {name: f"builtins.{name}" for name in {"cmp"} - bound_names(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from _check_call(node, aliases, parents.get(id(node)))
            yield from _check_comparison(node)
            yield from _check_pickle(node, aliases, parents, values)
        elif isinstance(node, ast.Attribute):
            yield from _check_attribute(node, resolve(node, aliases) or "", is_in_package)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            yield from _check_import(tree, node, aliases, is_in_package)
    yield from _check_conversions(tree, aliases, values)
    for call in [] if is_only_python_3(tree) else find_lists(tree):
        name = ast.unparse(call.func).rpartition(".")[2]
        start = Edit(call.lineno, call.col_offset, call.lineno, call.col_offset, "list(")
        edits = (start, _insert_after(call, ")"))
        hint = f"write list({ast.unparse(call)[:60]}): Python 2 returned a list"
        yield Finding(call.lineno, f"{name}()", "python 2", hint, False, edits)


def _insert_after(node: ast.expr, text: str) -> Edit:
    line, column = node.end_lineno or node.lineno, node.end_col_offset or 0
    return Edit(line, column, line, column, text)


def _check_comparison(node: ast.Call) -> Iterator[Finding]:
    """Report ``sorted(x, f)``: Python 3 sorts by keys."""
    compare = comparison_of(node)
    if compare is None:
        return
    new = f"key=functools.cmp_to_key({ast.unparse(compare)})"
    keyword = next((k for k in node.keywords if k.value is compare), None)
    edit = replace_node(compare, new)
    if keyword is not None:
        edit = edit._replace(line=keyword.lineno, column=keyword.col_offset)
    hint = f"write {new[:80]}: Python 3 sorts by keys"
    yield Finding(node.lineno, "sort(cmp)", "python 2", hint, False, (edit,), "functools")


def _check_pickle(
    node: ast.Call, aliases: dict[str, str], parents: dict[int, ast.AST], values: Values
) -> Iterator[Finding]:
    """Report ``pickle.load(open(path))``: Python 3 opens files as text."""
    module, _, name = (resolve(node.func, aliases) or "").rpartition(".")
    index = _PICKLING.get(name, -1) if module in ("pickle", "cPickle") else -1
    if not 0 <= index < len(node.args):
        return
    call = _opening(node.args[index], parents, values)
    if not isinstance(call, ast.Call) or ast.unparse(call.func) not in ("open", "file"):
        return
    mode = call.args[1] if len(call.args) == 2 else ast.Constant("r")
    text = mode.value if isinstance(mode, ast.Constant) else None
    if call.keywords or not call.args or not isinstance(text, str) or "b" in text:
        return
    new = repr(f"{text}b")
    edit = (
        replace_node(mode, new) if len(call.args) == 2 else _insert_after(call.args[0], f", {new}")
    )
    hint = f"open the file in mode {new}: pickles are bytes"
    yield Finding(call.lineno, f"pickle.{name}", "python 2", hint, False, (edit,))


def _opening(file: ast.expr, parents: dict[int, ast.AST], values: Values) -> ast.expr | None:
    """Return the expression whose value a file is: of the `with` around it, or as assigned."""
    node: ast.AST | None = file
    while isinstance(file, ast.Name) and node is not None and not isinstance(node, _FUNCTIONS):
        for item in node.items if isinstance(node, ast.With) else ():
            if getattr(item.optional_vars, "id", "") == file.id:
                return item.context_expr
        node = parents.get(id(node))
    return values.assigned(file) if isinstance(file, ast.Name) else file


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
        name = name.removeprefix("builtins.")
        yield Finding(line, name, "removed", f"write {new}", False, edits, needs)


def _check_attribute(node: ast.Attribute, name: str, is_in_package: bool) -> Iterator[Finding]:
    line = node.end_lineno or node.lineno
    if name in _CONSTANTS and _is_gone(name):
        new = _CONSTANTS[name].format(ast.unparse(node.value))
        edits = (replace_node(node, new),)
        yield Finding(line, name, "removed", f"write {new}", False, edits)
    elif name in IMAGE_FUNCTIONS and _is_gone(name):
        edits = (replace_node(node, f"{IMAGE_MODULE}.{IMAGE_FUNCTIONS[name]}"),)
        needs = f"from . import {IMAGE_MODULE}" if is_in_package else IMAGE_MODULE
        yield _image_function(line, name, edits, needs)


def _check_import(
    tree: ast.Module,
    node: ast.Import | ast.ImportFrom,
    aliases: dict[str, str],
    is_in_package: bool,
) -> Iterator[Finding]:
    """Report imports of rewritten functions, and of `scipy.misc`, once nothing uses them."""
    module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
    for alias in node.names:
        name, local = f"{module}{alias.name}", alias.asname or alias.name
        if name in IMAGE_FUNCTIONS and _is_gone(name):
            yield _image_function(node.lineno, name, (_move_images(node, is_in_package),))
        elif name in _CALLS and _is_gone(name) and not _uses(tree, local):
            edits = (_drop_import(node, alias),)
            yield Finding(node.lineno, name, "removed", "nothing needs it now", False, edits)
        elif name == "scipy.misc" and is_gone(name, "imresize"):
            names = (resolve(n, aliases) for n in ast.walk(tree) if isinstance(n, ast.Attribute))
            if not any((n or "").startswith("scipy.misc.") for n in names):
                hint, edits = "nothing needs it now", (_drop_import(node, alias),)
                yield Finding(node.lineno, f"import {name}", "removed", hint, False, edits)


def _image_function(line: int, name: str, edits: tuple[Edit, ...], new_import: str = "") -> Finding:
    hint = f"mx fix writes {IMAGE_MODULE}.py, which has it by PIL"
    return Finding(line, name, "removed", hint, False, edits, new_import, IMAGE_MODULE)


def _move_images(node: ast.Import | ast.ImportFrom, is_in_package: bool) -> Edit:
    """Return the edit that imports the functions of images from the module of `mx fix`."""
    moved = [a for a in node.names if f"scipy.misc.{a.name}" in IMAGE_FUNCTIONS]
    rest = [a for a in node.names if a not in moved]
    dot = "." if is_in_package else ""
    lines = [f"from scipy.misc import {', '.join(map(ast.unparse, rest))}"] if rest else []
    lines.append(f"from {dot}{IMAGE_MODULE} import {', '.join(map(ast.unparse, moved))}")
    return replace_node(node, ("\n" + " " * node.col_offset).join(lines))


def image_module_source() -> str:
    """Return the module that `mx fix` writes: the functions for images that `scipy.misc` had."""
    tree = ast.parse(inspect.getsource(scipy_misc))
    functions = [n for n in tree.body if isinstance(n, ast.FunctionDef)]
    title = '"""The functions for images that scipy.misc had until SciPy 1.2, by PIL."""'
    return "\n\n\n".join([title, *map(_plain_source, functions)]) + "\n"


def _is_gone(name: str) -> bool:
    module, _, function = name.rpartition(".")
    if module == "yaml" and is_installed(module):
        return removed.needs_loader(getattr(importlib.import_module(module), function))
    return is_gone(module, function)


def _uses(tree: ast.Module, local: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == local for n in ast.walk(tree))


def _drop_import(node: ast.Import | ast.ImportFrom, gone: ast.alias) -> Edit:
    names = ", ".join(ast.unparse(alias) for alias in node.names if alias is not gone)
    if isinstance(node, ast.Import):
        return replace_node(node, f"import {names or gone.name.partition('.')[0]}")
    if names:
        return replace_node(node, f"from {node.module} import {names}")
    return replace_node(node, f"import {(node.module or '').partition('.')[0]}")


def _plain_source(function: ast.FunctionDef) -> str:
    """Return a function without annotations, which old programs do not have."""
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef):
            node.returns = None
    return ast.unparse(function)


# -- conversions of arrays to numbers --------------------------------------------------------------

# Functions of NumPy whose results, or whose parts, are arrays; and the ones with one axis.
_PARTS_ARE_ARRAYS = frozenset({"numpy.where", "numpy.nonzero", "numpy.unique"})
_ARRAYS = frozenset({"numpy.argwhere", "numpy.flatnonzero"})
_ONE_AXIS = frozenset({"mean", "sum", "norm", "max", "min", "argmax", "argmin", "nansum", "prod"})


def _check_conversions(
    tree: ast.Module, aliases: dict[str, str], values: Values
) -> Iterator[Finding]:
    """Report ``int(array)``: NumPy 2.4 refuses arrays of one element unless they have no axis."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
            continue
        if not isinstance(node.func, ast.Name) or node.func.id not in ("int", "float"):
            continue
        argument = node.args[0]
        source = values.assigned(argument) if isinstance(argument, ast.Name) else argument
        certainty = _is_array(source, aliases)
        if certainty is None:
            continue
        new = f"{node.func.id}({ast.unparse(argument)}.item())"
        edit = _insert_after(argument, ".item()")
        status = "removed" if certainty else "conversion"
        reason = "NumPy 2.4 refuses arrays" if certainty else "NumPy 2.4 refuses it if x has 2 axes"
        name = f"{node.func.id}(array)" if certainty else f"{node.func.id}(x.asnumpy()[i])"
        yield Finding(node.lineno, name, status, f"write {new}: {reason}", False, (edit,))


def _is_array(node: ast.expr | None, aliases: dict[str, str]) -> bool | None:
    """Return whether a value is an array that does not convert; False if it may be, else None."""
    if isinstance(node, ast.Call):
        return True if resolve(node.func, aliases) in _ARRAYS else None
    if not isinstance(node, ast.Subscript):
        return None
    call, is_slice = node.value, isinstance(node.slice, ast.Slice)
    if not isinstance(call, ast.Call):
        return None
    if resolve(call.func, aliases) in _PARTS_ARE_ARRAYS:
        return True
    if not (isinstance(call.func, ast.Attribute) and call.func.attr == "asnumpy"):
        return None
    if is_slice:
        return True
    if isinstance(node.slice, ast.Tuple) or _has_one_axis(call.func.value):
        return None
    return False


def _has_one_axis(node: ast.expr) -> bool:
    """Return whether an array certainly has one axis: results of reductions, and losses."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        is_reduction = node.func.attr in _ONE_AXIS and not node.keywords
        return is_reduction or node.func.attr == "ones"
    return bool(re.search("loss|acc|label|metric|norm|scalar|num", ast.unparse(node).lower()))
