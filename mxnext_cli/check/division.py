"""The rule about divisions: ``5 / 2`` is 2 in Python 2 and 2.5 in Python 3.

Where an integer is required, the program stops; elsewhere the value changes silently.
"""

from __future__ import annotations

import ast
import copy
import inspect
import re
from collections.abc import Iterator

from ..run.program import import_aliases, resolve
from ..run.python2 import future_imports
from ..run.rewriting import is_only_python_3
from .finding import Edit, Finding
from .modules import Project
from .names import look_up, operator_of
from .source import Source
from .values import Values

INTEGER_LABELS = ("int", "Shape")
_SIZES = (
    "units channels in_channels in_units num_filter num_hidden num_group kernel_size kernel "
    "strides stride padding pad hidden_size num_layers input_size input_dim output_dim shape "
    "batch_size numpy_batch_size num_outputs num_args begin end repeats"
)
INTEGER_ARGUMENTS = frozenset(_SIZES.split())  # of Gluon's layers and of iterators
# Functions of other libraries: which arguments are integers, by position or name.
FUNCTIONS: dict[str, tuple[int | str, ...]] = {
    "range": (0, 1, 2),
    "xrange": (0, 1, 2),
    **{f"numpy.{name}": (0, "shape") for name in ("zeros", "ones", "empty", "full")},
    **{f"numpy.random.{name}": ("size",) for name in ("normal", "uniform", "randint", "choice")},
    **{f"numpy.random.{name}": (0, 1, 2, 3) for name in ("rand", "randn")},
    "numpy.eye": (0, 1),
    "numpy.identity": (0,),
    "numpy.tile": (1,),
    "numpy.repeat": (1,),
    "numpy.reshape": (1,),
    "numpy.linspace": (2, "num"),
    "random.randint": (0, 1),
    "random.randrange": (0, 1, 2),
    "random.sample": (1,),
    "cv2.resize": (1, "dsize"),
    "itertools.islice": (1, 2, 3),
    **{
        f"mxnet.{module}.{name}": (0, "shape")
        for module in ("nd", "ndarray", "sym", "symbol", "np")
        for name in ("zeros", "ones", "empty", "full")
    },
}
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mod, ast.FloorDiv)
# What a result is called that was meant to be a fraction, so that the author divided in Python 3.
FRACTION_NAME = re.compile(
    r"(?:.*_)?(?:acc|accuracy|ratio|rate|avg|mean|average|frac|fraction|percent|percentage|prob|"
    r"speed|precision|recall|loss|score|progress|fps|iou|error|err|scale)(?:_.*)?|lr|f1"
)
_CUTTING = frozenset({"int", "numpy.floor", "math.floor", "numpy.int32", "numpy.int64", "long"})


def check_divisions(source: Source, project: Project) -> Iterator[Finding]:
    """Yield the divisions of integers, first those whose result must be an integer."""
    if "division" in future_imports(source.tree):
        return  # the author meant fractions
    rule = _Divisions(source)
    yield from rule.find_misfits()
    is_python_3 = is_only_python_3(source.tree) or project.is_python_3
    if source.is_python_2 or not is_python_3:
        yield from rule.find_quotients()


class _Divisions:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._tree = source.tree
        self._lines = source.text.encode().splitlines(keepends=True)
        self._aliases = import_aliases(source.tree)
        self._values = Values(source.tree)
        self._seen: set[int] = set()
        self._parents = {
            id(part): node for node in ast.walk(source.tree) for part in ast.iter_child_nodes(node)
        }

    def find_misfits(self) -> Iterator[Finding]:
        """Yield the divisions whose result reaches a size, a count or an index."""
        for node in ast.walk(self._tree):
            for value in self._integer_values(node):
                for division in self._divisions(value):
                    if id(division) not in self._seen:
                        self._seen.update(map(id, _chain(division)))
                        yield self._report_misfit(division)

    def find_quotients(self) -> Iterator[Finding]:
        for node in ast.walk(self._tree):
            if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)):
                continue
            if id(node) in self._seen or self._means_fraction(node):
                continue
            if self._is_integer(node.left) and self._is_integer(node.right):
                self._seen.update(map(id, _chain(node)))
                yield self._report_quotient(node)

    def _is_integer(self, node: ast.expr) -> bool:
        return self._values.kind(node) == "integer"

    # -- integers are needed -------------------------------------------------------------------

    def _integer_values(self, node: ast.AST) -> Iterator[ast.expr]:
        if isinstance(node, ast.Subscript):
            yield from _indices(node.slice)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            pairs = ((node.left, node.right), (node.right, node.left))
            yield from (o for items, o in pairs if isinstance(items, ast.List | ast.Tuple))
        elif isinstance(node, ast.Call):
            yield from self._integer_arguments(node)

    def _integer_arguments(self, call: ast.Call) -> Iterator[ast.expr]:
        name = resolve(call.func, self._aliases) or ""
        if isinstance(call.func, ast.Name) and call.func.id in FUNCTIONS:
            name = call.func.id
        keys = FUNCTIONS.get(name, ())
        if isinstance(call.func, ast.Attribute) and call.func.attr == "reshape" and not keys:
            keys = tuple(range(len(call.args)))
        arguments: dict[int | str | None, ast.expr] = dict(enumerate(call.args))
        arguments.update({k.arg: k.value for k in call.keywords})
        if not keys and name.startswith("mxnet."):
            keys = _integer_parameters(name)
        yield from (value for key, value in arguments.items() if key in keys)

    def _divisions(self, value: ast.expr, depth: int = 0) -> Iterator[ast.BinOp]:
        """Yield the divisions whose result reaches a value through arithmetic and names."""
        if depth > 8:
            return
        if isinstance(value, ast.Name):
            assigned = self._values.assigned(value)
            if assigned is not None:
                yield from self._divisions(assigned, depth + 1)
        elif isinstance(value, ast.Tuple | ast.List):
            for part in value.elts:
                yield from self._divisions(part, depth + 1)
        elif isinstance(value, ast.UnaryOp):
            yield from self._divisions(value.operand, depth + 1)
        elif isinstance(value, ast.BinOp) and isinstance(value.op, _ARITHMETIC):
            is_division = isinstance(value.op, ast.Div)
            if is_division and self._values.kind(value) not in ("fraction", "other"):
                yield value
            if not isinstance(value.op, ast.FloorDiv):
                yield from self._divisions(value.left, depth + 1)
                yield from self._divisions(value.right, depth + 1)

    def _report_misfit(self, division: ast.BinOp) -> Finding:
        if self._source.is_python_2:
            return self._report_python_2(division)
        text, new = _texts(division)
        hint = f"write {new}: an integer is needed here"
        return Finding(
            division.lineno, text, "division", hint, False, _edits(division, self._lines)
        )

    # -- values that change --------------------------------------------------------------------

    def _means_fraction(self, division: ast.BinOp) -> bool:
        """Return whether the quotient is truncated anyway, or is meant to be a fraction."""
        if isinstance(division.left, ast.Constant) and division.left.value == 1:
            return True  # 1 / n was 0 in Python 2
        both = (division.left, division.right)
        numbers = [n.value for n in both if isinstance(n, ast.Constant)]
        if len(numbers) == 2 and _is_plain_fraction(*numbers):
            return True
        parent = self._parents.get(id(division))
        if isinstance(parent, ast.Call) and division in parent.args:
            name = resolve(parent.func, self._aliases) or ast.unparse(parent.func)
            if name in _CUTTING:
                return True
        return any(FRACTION_NAME.fullmatch(name.lower()) for name in self._names_of(division))

    def _names_of(self, division: ast.BinOp) -> Iterator[str]:
        node: ast.AST | None = division
        while isinstance(node, ast.expr):
            parent = self._parents.get(id(node))
            if isinstance(parent, ast.keyword):
                yield parent.arg or ""
                return
            if isinstance(parent, ast.Call | ast.Lambda):
                break
            node = parent
        if isinstance(node, ast.Assign):
            yield from (_last_name(target) for target in node.targets)
        yield _last_name(division.left)

    def _report_quotient(self, division: ast.BinOp) -> Finding:
        if self._source.is_python_2:
            return self._report_python_2(division)
        text, new = _texts(division)
        return Finding(
            division.lineno, text, "quotient", f"Python 2 gave {_cut_value(division) or new}"
        )

    def _report_python_2(self, division: ast.BinOp) -> Finding:
        text, new = _texts(division)
        edits = _edits(division, self._lines)
        hint = f"write {new}: Python 2 cut the quotient"
        return Finding(division.lineno, text, "python 2", hint, False, edits)


def _is_plain_fraction(a: object, b: object) -> bool:
    """Return whether a quotient of two numbers is exact, or was 0 in Python 2."""
    if not isinstance(a, int) or not isinstance(b, int) or b == 0:
        return True
    return a // b == 0 or a % b == 0


def _cut_value(division: ast.BinOp) -> str:
    """Return the quotient of Python 2, if both sides are numbers."""
    sides = (division.left, division.right)
    numbers = [side.value for side in sides if isinstance(side, ast.Constant)]
    integers = [number for number in numbers if isinstance(number, int)]
    return f"{integers[0] // integers[1]}" if len(integers) == 2 and integers[1] else ""


def _last_name(node: ast.expr) -> str:
    while isinstance(node, ast.BinOp | ast.Subscript):
        node = node.left if isinstance(node, ast.BinOp) else node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _integer_parameters(name: str) -> tuple[int | str, ...]:
    """Return the arguments of a function of MXNet that are integers or shapes."""
    value = look_up(name)[0]
    operator = operator_of(value)
    if operator is not None:
        attributes = operator.attributes.values()
        return tuple(a.name for a in attributes if a.type.label.startswith(INTEGER_LABELS))
    positions: list[int | str] = []
    if isinstance(value, type):
        try:
            parameters = list(inspect.signature(value).parameters)
        except (TypeError, ValueError):
            parameters = []
        positions = [i for i, p in enumerate(parameters) if p in INTEGER_ARGUMENTS]
    return (*positions, *INTEGER_ARGUMENTS)


def _indices(index: ast.expr) -> Iterator[ast.expr]:
    if isinstance(index, ast.Slice):
        yield from (part for part in (index.lower, index.upper, index.step) if part is not None)
    elif isinstance(index, ast.Tuple):
        for part in index.elts:
            yield from _indices(part)
    else:
        yield index


def _chain(division: ast.expr) -> Iterator[ast.BinOp]:
    """Yield the divisions of ``a / b / c``, from the outside."""
    while isinstance(division, ast.BinOp) and isinstance(division.op, ast.Div):
        yield division
        division = division.left


def _texts(division: ast.BinOp) -> tuple[str, str]:
    new = copy.deepcopy(division)
    for part in _chain(new):
        part.op = ast.FloorDiv()
    return ast.unparse(division), ast.unparse(new)


def _edits(division: ast.BinOp, lines: list[bytes]) -> tuple[Edit, ...]:
    """Return the edits that double the slashes on the lines on which their left sides end."""
    edits = []
    for part in _chain(division):
        line, start = part.left.end_lineno or 0, part.left.end_col_offset
        slash = lines[line - 1].find(b"/", start) if part.right.lineno == line else -1
        if slash >= 0:
            edits.append(Edit(line, slash, line, slash + 1, "//"))
    return tuple(edits)
