"""Rewrites a program's syntax tree before it runs, so that it computes what it was written for.

Divisions of Python 2, implicit relative imports of Python 2, and arrays of one element as numbers,
which NumPy 2.4 refuses. Lines stay as they are, so tracebacks fit the file.
"""

from __future__ import annotations

import ast
import importlib.machinery
import sys
from pathlib import Path

from . import arithmetic
from .lists import find_lists
from .python2 import comparison_of, first_statement, future_imports, parse_program

PREFIX = "_mx_run_"  # two underscores would be mangled in classes
# Builtins that take numbers, and for which arrays of one element are converted.
CONVERSIONS = frozenset({"int", "float", "complex", "round"})
_NEW_MODULES = frozenset({"asyncio", "dataclasses", "pathlib", "typing"})  # of Python 3
_ANNOTATED = ast.FunctionDef | ast.AsyncFunctionDef


def prepare_program(
    content: bytes, filename: str, *, is_in_package: bool = False
) -> tuple[ast.Module, bool]:
    """Return the tree of a program as it is to run, and whether it is translated from Python 2."""
    tree, is_translated = parse_program(content, filename)
    if is_in_package and "absolute_import" not in future_imports(tree):
        tree = _Imports(Path(filename).parent, prefers_sibling=is_translated).visit(tree)
    is_old = is_translated or not is_only_python_3(tree)
    rewriter = _Expressions(tree, _choose_division(tree, is_old, is_translated), is_old=is_old)
    tree = rewriter.visit(tree)
    if rewriter.functions:
        names = [ast.alias(name, PREFIX + name) for name in sorted(rewriter.functions)]
        helpers = ast.ImportFrom(arithmetic.__name__, names, 0)
        tree.body.insert(first_statement(tree), helpers)
    return ast.fix_missing_locations(tree), is_translated


def _choose_division(tree: ast.Module, is_old: bool, is_translated: bool) -> str:
    """Return the replacement of ``a / b`` (Python 2's, or watched), or ''."""
    if "division" in future_imports(tree) or not is_old:
        return ""
    return arithmetic.divide.__name__ if is_translated else arithmetic.watch_division.__name__


def is_only_python_3(tree: ast.Module) -> bool:
    """Return whether a program can only be for Python 3, such as one with f-strings."""
    nodes = list(ast.walk(tree))
    prints_as_function = "print_function" in future_imports(tree)
    return any(_is_new(n) or (not prints_as_function and _prints_several(n)) for n in nodes)


def _prints_several(node: ast.AST) -> bool:
    """Return whether a node is a call of `print` that would print a tuple in Python 2."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    return node.func.id == "print" and (len(node.args) > 1 or bool(node.keywords))


def _is_new(node: ast.AST) -> bool:
    new = (
        ast.JoinedStr, ast.AnnAssign, ast.AsyncFunctionDef, ast.Await, ast.MatMult, ast.Nonlocal,
        ast.NamedExpr, ast.YieldFrom,
    )  # fmt: skip
    if isinstance(node, new):
        return True
    if isinstance(node, _ANNOTATED):
        args = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        return bool(node.returns or node.args.kwonlyargs or any(a.annotation for a in args))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id == "super" and not node.args
    if isinstance(node, ast.Import | ast.ImportFrom):
        names = [alias.name for alias in node.names]
        return bool(_NEW_MODULES & {getattr(node, "module", None) or "", *names})
    return isinstance(node, ast.ClassDef) and any(k.arg == "metaclass" for k in node.keywords)


# -- imports ---------------------------------------------------------------------------------------


def has_sibling(folder: Path, module: str) -> bool:
    """Return whether a folder has a module of this name, as a file or as a package."""
    root = module.partition(".")[0]
    return (folder / f"{root}.py").is_file() or (folder / root / "__init__.py").is_file()


def relative_imports(node: ast.Import | ast.ImportFrom) -> list[ast.stmt]:
    """Return the import of siblings that Python 2 read in ``import x`` and ``from x import y``."""
    if isinstance(node, ast.ImportFrom):
        return [ast.ImportFrom(node.module, node.names, 1)]
    statements: list[ast.stmt] = []
    for alias in node.names:
        root, _, rest = alias.name.partition(".")
        parent, _, name = alias.name.rpartition(".")
        if not rest:
            statements.append(ast.ImportFrom(None, [ast.alias(root, alias.asname)], 1))
        elif alias.asname:
            statements.append(ast.ImportFrom(parent, [ast.alias(name, alias.asname)], 1))
        else:  # binds the root package, and imports the submodule
            statements.append(ast.ImportFrom(parent, [ast.alias(name, f"{PREFIX}{name}")], 1))
            statements.append(ast.ImportFrom(None, [ast.alias(root)], 1))
    return statements


class _Imports(ast.NodeTransformer):
    def __init__(self, folder: Path, *, prefers_sibling: bool) -> None:
        self._folder, self._prefers_sibling = folder, prefers_sibling

    def _is_relative(self, module: str) -> bool:
        root = module.partition(".")[0]
        if not has_sibling(self._folder, root):
            return False
        return self._prefers_sibling or not _can_import(root)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt | list[ast.stmt]:
        if node.level or not node.module or not self._is_relative(node.module):
            return node
        return [ast.copy_location(new, node) for new in relative_imports(node)]

    def visit_Import(self, node: ast.Import) -> ast.stmt | list[ast.stmt]:
        siblings = [alias for alias in node.names if self._is_relative(alias.name)]
        if not siblings:
            return node
        others = [alias for alias in node.names if alias not in siblings]
        new: list[ast.stmt] = [ast.Import(others)] if others else []
        new += relative_imports(ast.Import(siblings))
        return [ast.copy_location(statement, node) for statement in new]


def _can_import(root: str) -> bool:
    if root in sys.modules or root in sys.builtin_module_names:
        return True
    return importlib.machinery.PathFinder.find_spec(root) is not None


# -- expressions -----------------------------------------------------------------------------------


class _Expressions(ast.NodeTransformer):
    """Replaces divisions and conversions of arrays by calls of `arithmetic`."""

    def __init__(self, tree: ast.Module, division: str, *, is_old: bool) -> None:
        self.functions: set[str] = set()
        self._is_old = is_old
        self._lists = {id(call) for call in find_lists(tree)} if is_old else set()
        self._division = division
        self._bound = bound_names(tree)
        self._math = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import)
            for alias in node.names
            if alias.name == "math"
        } - bound_names(tree, imports=False)

    def _call(self, function: str, *args: ast.expr) -> ast.Call:
        self.functions.add(function)
        return ast.Call(ast.Name(PREFIX + function, ast.Load()), list(args), [])

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        """Skip functions that are compiled, for example by numba."""
        if any("jit" in ast.unparse(decorator) for decorator in node.decorator_list):
            return node
        self.generic_visit(node)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        new: ast.expr = node
        if isinstance(node.op, ast.Div) and self._division:
            new = self._call(self._division, node.left, node.right)
        elif isinstance(node.op, ast.Mod) and isinstance(getattr(node.left, "value", None), str):
            new = self._call(arithmetic.format_text.__name__, node.left, node.right)
        return ast.copy_location(new, node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        """Replace ``a /= b``, where reading the target twice does no harm."""
        self.generic_visit(node)
        is_division = isinstance(node.op, ast.Div) and bool(self._division)
        if not is_division or _has_effects(node.target):
            return node
        current = ast.parse(ast.unparse(node.target), mode="eval").body
        self.functions.add("itruediv")
        in_place = ast.Name(f"{PREFIX}itruediv", ast.Load())
        value = self._call(self._division, current, node.value, in_place)
        return ast.copy_location(ast.Assign([node.target], value), node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Replace ``int(x)``, ``math.sqrt(x)``, and ``d.keys()`` where it is used as a list."""
        self.generic_visit(node)
        if id(node) in self._lists:
            function = ast.Constant(ast.unparse(node.func).rpartition(".")[2])
            return ast.copy_location(self._call(arithmetic.to_list.__name__, function, node), node)
        if (compare := comparison_of(node)) is not None:
            self._compare_by_key(node, compare)
        if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
            return node
        function, new = node.func, node
        if isinstance(function, ast.Name) and len(node.args) == 1:
            if function.id in CONVERSIONS and function.id not in self._bound:
                name = ast.Constant(function.id)
                new = self._call(arithmetic.to_number.__name__, name, *node.args)
        elif self._is_math(function) and node.args:
            new = self._call(arithmetic.call_math.__name__, function, *node.args)
        elif self._is_old and isinstance(function, ast.Attribute) and function.attr == "next":
            new = node if node.args else self._call(arithmetic.to_next.__name__, function.value)
        return ast.copy_location(new, node)

    def _compare_by_key(self, node: ast.Call, compare: ast.expr) -> None:
        """Pass the comparison of a sort as its key, as Python 3 takes it."""
        node.args = [argument for argument in node.args if argument is not compare]
        node.keywords = [keyword for keyword in node.keywords if keyword.value is not compare]
        key = self._call(arithmetic.to_key.__name__, compare)
        node.keywords.append(ast.copy_location(ast.keyword("key", key), compare))

    def _is_math(self, function: ast.expr) -> bool:
        if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
            return False
        return function.value.id in self._math

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        self.generic_visit(node)
        target = node.targets[0]
        if len(node.targets) > 1 or not isinstance(target, ast.Subscript):
            return node
        if any(isinstance(part, ast.Slice) for part in ast.walk(target.slice)):
            return node  # slices can be assigned an array
        call = self._call(arithmetic.store.__name__, node.value, target.value, target.slice)
        return ast.copy_location(ast.Expr(call), node)


def bound_names(tree: ast.AST, *, imports: bool = True) -> set[str]:
    """Return the names that a program assigns, defines or imports."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif imports and isinstance(node, ast.Import | ast.ImportFrom):
            names.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
    return names


def _has_effects(target: ast.expr) -> bool:
    return any(isinstance(n, ast.Call | ast.NamedExpr | ast.Yield) for n in ast.walk(target))
