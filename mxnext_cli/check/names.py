"""Rules about names: which exist in MXNext, which were removed, which packages are missing."""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.util
import inspect
import types
import warnings
from collections.abc import Iterator
from typing import Any

from mxnet import ndarray, symbol
from mxnet.ops.declare import Op

from ..run import removed
from ..run.program import Use, find_uses, resolve
from ..run.python2 import future_imports
from ..run.rewriting import bound_names, relative_imports
from .advice import IN_BOTH, name_fork, suggest
from .finding import Edit, Finding, replace_node
from .modules import (
    Project,
    advise,
    guarded_nodes,
    is_gone,
    is_installed,
    optional_imports,
)
from .rewrites import check_rewrites
from .source import Source

PACKAGE = "mxnet"
NAME_ERRORS = frozenset({"AttributeError", "NameError", "Exception", "BaseException"})
# What conditions ask that guard a name.
GUARDING_WORDS = ("hasattr", "getattr", "version", "py2", "py3", "python2")
# Methods of dictionaries that Python 3 does not have, by the name of their successor.
DICT_METHODS = {"iteritems": "items", "itervalues": "values", "iterkeys": "keys"}


def check_names(source: Source, project: Project) -> Iterator[Finding]:
    """Yield every use of a name of MXNet, of a removed name, and of a missing package."""
    optional = optional_imports(source.tree)
    guarded = guarded_nodes(source.tree, GUARDING_WORDS, NAME_ERRORS)
    for use in find_uses(source.tree):
        if not use.is_import and id(use.node) in guarded:
            continue
        if (finding := _check_use(source, project, use, optional)) is not None:
            yield finding
    for node, name in _uses_of_namespace(source.tree):
        if id(node) not in guarded:
            yield _check_namespace_use(name, node.lineno)
    yield from _check_builtins(source.tree, optional | _python_2_lines(source.tree))
    yield from _check_dict_methods(source.tree)
    yield from check_rewrites(source.tree, is_in_package=project.is_in_package(source.path))
    yield from _check_relative_imports(source, project)


def _check_use(source: Source, project: Project, use: Use, optional: set[int]) -> Finding | None:
    root, _, rest = use.name.partition(".")
    if root == PACKAGE:
        if not rest or (use.is_import and use.line in optional):
            return None
        return _check_name(use.name, use.line)
    if (use.is_import and use.line in optional) or project.has_module(root, source.path):
        return None
    if (finding := _check_removed(use)) is not None:
        return finding
    if use.is_import and not is_installed(root):
        return Finding(use.line, root, "missing package", advise(root))
    return None


# -- names of MXNet --------------------------------------------------------------------------------


def _check_name(name: str, line: int, shown: str = "") -> Finding:
    value, hint = look_up(name)
    if value is not None:
        return Finding(line, shown or name, "covered", hint, _is_operator(value))
    fork = next(filter(None, map(name_fork, name.split("."))), "")
    if fork:
        return Finding(line, shown or name, "fork", f"of {fork}, not of MXNet")
    return Finding(line, shown or name, "absent", hint)


def look_up(dotted: str) -> tuple[Any, str]:
    """Return the object of a dotted name in MXNext, or None and a hint.

    >>> look_up("mxnet.nd.zeross")
    (None, "Did you mean 'zeros'?")
    """
    parts = dotted.split(".")
    value: Any = importlib.import_module(parts[0])
    for i, part in enumerate(parts[1:], 1):
        if part == "*":
            return value, ""
        try:
            inner = _member(value, part, ".".join(parts[: i + 1]))
        except Exception as error:  # an object that refuses, such as that of MXNet's C library
            return None, str(error)
        if inner is None:
            if not isinstance(value, types.ModuleType | type):
                return value, ""  # an attribute of an object: only running it would show
            return None, suggest(part, dir(value))
        value = inner
    return value, ""


def _member(owner: Any, name: str, dotted: str) -> Any:
    missing = object()
    value = getattr(owner, name, missing)
    if value is not missing:
        return value if value is not None else missing
    if isinstance(owner, types.ModuleType) and hasattr(owner, "__path__"):
        try:
            return importlib.import_module(dotted)
        except ImportError:
            return None
    return None


def operator_of(value: Any) -> Op | None:
    """Return the operator that a function of `mx.nd` or `mx.sym` calls."""
    if isinstance(value, Op):
        return value
    operator = inspect.getattr_static(value, "op", None)
    return operator if isinstance(operator, Op) else None


def _is_operator(value: Any) -> bool:
    return operator_of(value) is not None


def _uses_of_namespace(tree: ast.AST) -> Iterator[tuple[ast.Attribute, str]]:
    """Yield the attributes of F in ``hybrid_forward(self, F, x)``, with their dotted names.

    Other functions and lambdas with an argument F are called by such functions.
    """
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            continue
        args = [arg.arg for arg in node.args.args]
        if "F" in args:
            space = "F"
        elif getattr(node, "name", "") == "hybrid_forward" and len(args) > 1:
            space = args[1]
        else:
            continue
        yield from _attributes_of(node, {space: ""})


def _attributes_of(tree: ast.AST, aliases: dict[str, str]) -> Iterator[tuple[ast.Attribute, str]]:
    """Yield the longest dotted names that begin with a name, without methods of results."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Attribute) and (name := resolve(node, aliases)) is not None:
            yield node, name.removeprefix(".")
            continue
        waiting.extend(ast.iter_child_nodes(node))


def _check_namespace_use(name: str, line: int) -> Finding:
    shown = f"F.{name}"
    in_symbols = _check_name(f"{symbol.__name__}.{name}", line, shown)
    in_arrays = _check_name(f"{ndarray.__name__}.{name}", line, shown)
    if in_symbols.status == "covered" or in_arrays.status != "covered":
        return in_arrays if in_arrays.status != "covered" else in_symbols
    instead = f": write F.{IN_BOTH[name]}" if name in IN_BOTH else ""
    hint = f"fails when hybridized, because mx.sym.{name} does not exist in MXNet either{instead}"
    return Finding(line, shown, "nd only", hint, in_arrays.is_operator)


# -- removed names ---------------------------------------------------------------------------------


def _check_removed(use: Use) -> Finding | None:
    """Report a name or module that Python or a library no longer has."""
    module, _, name = use.name.rpartition(".")
    row = removed.ATTRIBUTES.get(module, {}).get(name)
    if row is not None and is_gone(module, name):
        path, instead = removed.read_row(row)
        edits, new_import = _replace_attribute(use, module, path)
        return Finding(use.line, use.name, "removed", f"write {instead}", False, edits, new_import)
    for old in (use.name, module) if use.is_import else ():
        successor = removed.MODULES.get(old)
        if (successor or old in removed.MADE_MODULES) and not _can_import(old):
            instead = f"import {successor}" if successor else removed.MADE_MODULES[old][0]
            edits = _replace_import(use, old, successor) if successor else ()
            return Finding(use.line, f"import {old}", "removed", f"write {instead}", False, edits)
    return None


def _can_import(module: str) -> bool:
    root = module.partition(".")[0]
    if root in removed.MADE_MODULES:  # looking for a part would import it, and distutils warns
        return is_installed(root)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _replace_attribute(use: Use, module: str, path: str) -> tuple[tuple[Edit, ...], str]:
    """Return the edit from an old name to the object at `path`, and the module that it needs."""
    if isinstance(use.node, ast.ImportFrom):
        return _replace_names(use.node, module), ""
    new_module, _, name = path.partition(":")
    if not isinstance(use.node, ast.Attribute) or not _has_equal(path):
        return (), ""
    prefix = ast.unparse(use.node.value) if new_module == module else new_module
    text = name if new_module == "builtins" else f"{prefix}.{name}"
    needs = "" if new_module in (module, "builtins") else new_module
    return (replace_node(use.node, text),), needs


def _has_equal(path: str) -> bool:
    """Return whether an existing name can replace another, not one that `mx run` recreates."""
    module, _, name = path.partition(":")
    return bool(name) and not module.startswith(removed.__name__.partition(".")[0])


def _replace_names(node: ast.ImportFrom, module: str) -> tuple[Edit, ...]:
    """Return the edit that imports each name from where it is now, if one has moved."""
    groups: dict[str, list[str]] = {}
    for alias in node.names:
        row = removed.ATTRIBUTES[module].get(alias.name)
        path = removed.read_row(row)[0] if row is not None else ""
        new_module, _, name = path.partition(":")
        if not _has_equal(path) or "." in name or not is_gone(module, alias.name):
            new_module, name = module, alias.name
        local = alias.asname or alias.name
        shown = name if name == local else f"{name} as {local}"
        groups.setdefault(new_module, []).append(shown)
    if groups.keys() == {module}:
        return ()
    lines = [f"from {source} import {', '.join(names)}" for source, names in groups.items()]
    return (replace_node(node, ("\n" + " " * node.col_offset).join(lines)),)


def _replace_import(use: Use, old: str, new: str) -> tuple[Edit, ...]:
    node = use.node
    if isinstance(node, ast.ImportFrom):
        names = ", ".join(ast.unparse(alias) for alias in node.names)
        return (replace_node(node, f"from {new} import {names}"),)
    if not isinstance(node, ast.Import):
        return ()
    lines = []
    for alias in node.names:
        name = new if alias.name == old else removed.MODULES.get(alias.name, alias.name)
        local = alias.asname or alias.name
        is_plain = name == alias.name and not alias.asname
        if is_plain or name == local:
            lines.append(name)
        elif "." in local:
            return ()  # ``import a.b`` binds a, which has no successor
        else:
            lines.append(f"{name} as {local}")
    return (replace_node(node, f"import {', '.join(lines)}"),)


def _check_builtins(tree: ast.AST, optional: set[int]) -> Iterator[Finding]:
    """Report builtins of Python 2 that the program neither defines nor imports."""
    bound = bound_names(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name) or node.id in bound or node.lineno in optional:
            continue
        row = removed.BUILTINS.get(node.id)
        if row is None or hasattr(builtins, node.id):
            continue
        path, instead = removed.read_row(row)
        module, _, name = path.partition(":")
        edits: tuple[Edit, ...] = ()
        if not module.startswith(__name__.partition(".")[0]):
            text = name if module == "builtins" else f"{module}.{name}"
            edits = (replace_node(node, text),)
        needs = module if edits and module != "builtins" else ""
        yield Finding(node.lineno, node.id, "removed", f"write {instead}", False, edits, needs)


def _python_2_lines(tree: ast.AST) -> set[int]:
    """Return the lines that run under a condition about Python's version, or after an error."""
    guarded = guarded_nodes(tree, GUARDING_WORDS, NAME_ERRORS)
    handlers = [node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)]
    guarded |= {id(inner) for handler in handlers for inner in ast.walk(handler)}
    return {n.lineno for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) in guarded}


def _check_relative_imports(source: Source, project: Project) -> Iterator[Finding]:
    """Report implicit relative imports, which Python 3 does not resolve."""
    if "absolute_import" in future_imports(source.tree) or not project.is_in_package(source.path):
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ImportFrom) and (node.level or not node.module):
            continue
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        single = isinstance(node, ast.ImportFrom) or len(node.names) == 1
        for alias in node.names:
            module = node.module if isinstance(node, ast.ImportFrom) else alias.name
            if not project.is_sibling(module or "", source.path, prefers=source.is_python_2):
                continue
            lines = [ast.unparse(new) for new in relative_imports(node)]
            new = ("\n" + " " * node.col_offset).join(lines)
            edits = (replace_node(node, new),) if single and len(lines) == 1 else ()
            hint = f"write {new}" if edits else "write from . import ..."
            yield Finding(node.lineno, ast.unparse(node), "relative import", hint, False, edits)
            break


def _check_dict_methods(tree: ast.AST) -> Iterator[Finding]:
    """Report ``d.iteritems()`` and ``d.has_key(k)``, which dictionaries no longer have."""
    defined = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        name, owner = node.func.attr, ast.unparse(node.func.value)
        if name in defined or owner == "six" or node.keywords:
            continue
        if name in DICT_METHODS and not node.args:
            new = f"{owner}.{DICT_METHODS[name]}()"
        elif name == "has_key" and len(node.args) == 1:
            new = f"({ast.unparse(node.args[0])} in {owner})"
        else:
            continue
        edit = replace_node(node, new)
        yield Finding(node.lineno, f".{name}()", "python 2", f"write {new}", False, (edit,))
