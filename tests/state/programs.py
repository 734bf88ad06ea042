"""Random programs over arrays, views, gradients, nets, executors and trainers, made from a seed.

MXNet 1.9.1 runs them for the recorded answers, so this is plain Python and NumPy. Left out is what
is undefined or wrong there: writes that overlap, edits between forward and backward, a second
backward of one forward, `add` straight into leaves of sums, means and copies.
"""

from __future__ import annotations

import math
import random
import zlib
from pathlib import Path

import numpy as np

SHAPES = [(4,), (2, 2), (2, 4), (1, 4), (3, 4), (4, 1)]
NETS = {"dense": 1, "mlp": 2, "norm": 2, "gru": 1, "views": 1}
SYMBOLS = ("dense", "sum", "product", "join", "shapes")

SETUP = Path(__file__).with_name("program_setup.py").read_text(encoding="utf-8")


class Generator:
    """Generates the statements of one program; tracks the shapes of its arrays."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.statements = []
        self.shapes = {}  # of arrays by name
        self.leaves = {}  # name to grad_req
        self.nets, self.trainers, self.executors = [], [], {}
        self.count = 0

    def pick(self, choices):
        choices = list(choices)
        return choices[int(self.random.random() * len(choices))]

    def number(self):
        return int(self.random.random() * 1000)

    def name(self, kind):
        self.count += 1
        return f"{kind}{self.count}"

    def emit(self, text):
        self.statements.append(text)

    def add(self, kind, shape, text):
        """Emit the assignment of an array, and return its name."""
        name = self.name(kind)
        self.emit(f"{name} = {text}")
        self.shapes[name] = shape
        return name

    def new(self, shape=None):
        shape = shape or self.pick(SHAPES)
        sizes = ", ".join(map(str, shape))
        return self.add("a", shape, f"numbers({self.number()}, {sizes})")

    def array(self, shape=None):
        """Return the name of an array, preferably an existing one."""
        found = [n for n, s in self.shapes.items() if shape is None or s == shape]
        return self.pick(found[-6:]) if found and self.random.random() < 0.85 else self.new(shape)

    def leaf(self, shape=None):
        found = [n for n in self.leaves if shape is None or self.shapes[n] == shape]
        if found and self.random.random() < 0.8:
            return self.pick(found)
        name = self.new(shape)
        self.leaves[name] = self.pick(["write", "write", "write", "add"])
        self.emit(f"{name}.attach_grad({self.leaves[name]!r})")
        return name

    def part(self, name):
        """Return an expression of a view of an array, and its shape."""
        shape = self.shapes[name]
        size = math.prod(shape)
        choices = [(f"{name}.reshape((-1,))", (size,)), (f"{name}[0:1]", (1, *shape[1:]))]
        choices += [(f"{name}[:]", shape), (f"{name}.reshape((2, -1))", (2, size // 2))]
        if len(shape) > 1:
            choices += [(f"{name}[{shape[0] - 1}]", shape[1:])]
        return self.pick(choices)

    # -- statements: each method adds one or a few ---------------------------------------------

    def do_view(self):
        text, shape = self.part(self.array())
        self.add("v", shape, text)

    def do_copy(self):
        a = self.array()
        texts = [f"{a}.copy()", f"nd.identity({a})", f"{a}.detach()", f"{a} * 1", f"{a}.T.T"]
        texts += [f"nd.from_dlpack({a}.to_dlpack_for_write())", f"nd.Dropout({a}, p=0)"]
        texts += [f"{a}.tostype('default')", f"nd.array({a}.asnumpy())", f"nd.concat({a}, dim=0)"]
        self.add("c", self.shapes[a], self.pick(texts))

    def do_write(self):
        a = self.array()
        shape = self.shapes[a]
        b = self.array(shape)
        texts = [
            f"{a}[:] = {b}.copy()",
            f"{a} *= 0.5",
            f"{a} += 1",
            f"{a}[0] = 2",
            f"{a}[:] = 0.25",
        ]
        texts += [f"nd.tanh({a}, out={a})", f"nd.elemwise_add({a}, {b}, out={a})"]
        texts += [
            f"{a}[::2] = 3",
            f"(-{b}).copyto({a})",
            f"nd.sgd_update({a}, {b}, lr=0.1, out={a})",
        ]
        self.emit(self.pick(texts))

    def operand(self, shape=None):
        """Return an operand to record: a leaf, behind a product if gradients are added to it."""
        if self.random.random() < 0.25:
            return self.array(shape)
        name = self.leaf(shape)
        return f"({name} * 1)" if self.leaves[name] == "add" else name

    def formula(self):
        """Return an expression to record, and its shape."""
        shape = self.pick(SHAPES)
        a, b = self.operand(shape), self.operand(shape)
        size = math.prod(shape)
        same = [f"{a} + {b}", f"{a} * {b}", f"nd.tanh({a}) - {b}", f"nd.identity({a}) + {b}"]
        same += [f"Triple()({a} * 1) * 1 + {b}", f"Square()({a} * 1) * {b}", f"nd.relu({a}) + {a}"]
        same += [f"nd.Dropout({a}, p=0) + {b}", f"nd.BlockGrad({a}) * {b}", f"{a}[:] + {b}"]
        if self.random.random() < 0.6:
            return self.pick(same), shape
        others = [(f"{a}.reshape((-1,)) + {b}.reshape((-1,))", (size,))]
        others += [(f"nd.expand_dims({a}, axis=0)", (1, *shape)), (f"({a} * {b}).sum()", (1,))]
        others += [(f"nd.concat({a}, {b}, dim=0)", (2 * shape[0], *shape[1:]))]
        others += [(f"nd.stack({a}, {b}, axis=0)", (2, *shape)), (f"{a}[0:1] * 2", (1, *shape[1:]))]
        others += [(f"nd.reshape_like({a}, nd.zeros(({size},)))", (size,))]
        others += [(f"nd.transpose({a})", shape[::-1])]
        return self.pick(others)

    def do_record(self):
        text, shape = self.formula()
        y = self.name("y")
        self.emit(f"with autograd.record():\n    {y} = {text}")
        kind = self.random.random()
        if kind < 0.4:
            self.emit(f"{y}.backward()")
        elif kind < 0.8:
            head = self.array(shape)
            self.emit(f"{y}.backward({head})")
            if self.random.random() < 0.5:
                self.emit(self.pick([f"{head}[:] = 0", f"{head} *= 2"]))
        else:
            self.emit(f"{y}.backward(retain_graph=True)")
            self.emit(f"{y}.backward({self.array(shape)})")
        self.shapes[y] = shape

    def do_grad(self):
        shape = self.pick(SHAPES)
        a, b = self.leaf(shape), self.leaf(shape)
        if a == b:
            return
        g, h = self.name("g"), self.name("g")
        text = self.pick(["{a} + {b}", "{a} * {b}", "nd.concat({a}, {b}, dim=0)", "{a} - {b} * 2"])
        self.emit(
            f"with autograd.record():\n    {g} = {text.format(a=a, b=b)}\n"
            f"{g}, {h} = autograd.grad({g}, [{a}, {b}])"
        )
        self.shapes[g] = self.shapes[h] = shape
        self.emit(self.pick([f"{g}[:] = 0", f"{h} *= 2", f"{g} += 1"]))

    def do_gradient(self):
        a = self.leaf()
        shape = self.shapes[a]
        kind = self.random.random()
        if kind < 0.35:
            views = [(f"{a}.grad", shape), (f"{a}.grad.reshape((-1,))", (math.prod(shape),))]
            text, shape = self.pick([*views, (f"{a}.grad[0:1]", (1, *shape[1:]))])
            self.add("g", shape, text)
        elif kind < 0.6:
            self.emit(self.pick([f"{a}.grad[:] = 0", f"{a}.grad[:] = {a}.grad * 2"]))
        elif kind < 0.9:
            self.emit(f"{a} -= 0.1 * {a}.grad")
        else:
            self.emit(f"{a}.attach_grad({self.leaves[a]!r})")

    def do_net(self):
        if self.nets and self.random.random() < 0.6:
            net = self.pick(self.nets)
            self.emit(f"{net}.hybridize({self.pick(['', 'static_alloc=True', 'False'])})")
            return
        net = self.name("net")
        self.emit(f"{net} = make_net({self.pick(NETS)!r}, {self.number()}, '{net}_')")
        self.nets.append(net)
        if self.random.random() < 0.7:
            self.emit(f"{net}.hybridize()")

    def do_call(self):
        if not self.nets:
            self.do_net()
        net, shape = self.pick(self.nets), self.pick([(2, 4), (3, 4)])
        x = self.array(shape)
        if self.random.random() < 0.5:
            self.add("y", shape, f"{net}({x})")
        else:
            self.add("y", shape, f"train({net}, {x}, {self.array(shape)})")

    def do_step(self):
        if not self.nets:
            self.do_net()
        if not self.trainers or self.random.random() < 0.3:
            net, trainer = self.pick(self.nets), self.name("t")
            how = self.pick(
                ["'sgd', {'learning_rate': 0.1}", "'sgd', {'learning_rate': 0.1, 'momentum': 0.9}"]
            )
            self.emit(f"{trainer} = gluon.Trainer({net}.collect_params(), {how})")
            self.trainers.append((trainer, net))
        trainer, net = self.pick(self.trainers)
        shape = self.pick([(2, 4), (3, 4)])
        self.add("y", shape, f"train({net}, {self.array(shape)}, {self.array(shape)})")
        if self.random.random() < 0.3:
            self.emit(f"gluon.utils.clip_global_norm([p.grad() for p in trained({net})], 0.5)")
        self.emit(f"{trainer}.step(2)")

    def do_parameter(self):
        if not self.nets:
            self.do_net()
        net = self.pick(self.nets)
        p = f"trained({net})[{self.pick([0, -1])}]"
        name = self.name("p")
        texts = [f"{name} = {p}.data().reshape((-1,))", f"{name} = {p}.data()[0:1]"]
        texts += [f"{name} = {p}.grad().reshape((-1,))"]
        texts += [f"{name} = nd.from_dlpack({p}.data().to_dlpack_for_write())"]
        if self.random.random() < 0.6:
            self.emit(self.pick(texts))
            self.emit(self.pick([f"{name} *= 0.5", f"{name}[:] = 0.25", f"{name}[0] = 1"]))
        else:
            self.emit(self.pick([f"{p}.set_data({p}.data() * 0.5)", f"{p}.zero_grad()"]))

    def do_executor(self):
        if not self.executors or self.random.random() < 0.3:
            e, kind, shape = self.name("e"), self.pick(SYMBOLS), self.pick([(2, 4), (3, 4)])
            of_w = (4, 4) if kind == "dense" else shape
            x, w = self.array(shape), self.new(of_w)
            req = self.pick(["write", "write", "add"])
            self.emit(
                f"{e} = make_symbol({kind!r}).bind(mx.cpu(), {{'x': {x}, 'w': {w}}}, "
                f"args_grad={{'x': nd.zeros({shape}), 'w': nd.zeros({of_w})}}, grad_req={req!r})"
            )
            heads = {"join": (2 * shape[0], 4), "shapes": (4 * shape[0],)}
            self.executors[e] = heads.get(kind, shape), shape, of_w
        e = self.pick(self.executors)
        out, of_x, of_w = self.executors[e]
        kind = self.random.random()
        if kind < 0.45:
            head = self.array(out)
            self.emit(f"run({e}, {head})")
            if self.random.random() < 0.4:
                self.emit(f"{head}[:] = 0")
        elif kind < 0.6:
            self.add("o", out, f"{e}.forward()[0]")
        elif kind < 0.8:
            texts = [(f"{e}.grad_dict['x'].reshape((-1,))", (math.prod(of_x),))]
            texts += [(f"{e}.grad_dict['w'][0:1]", (1, *of_w[1:])), (f"{e}.grad_dict['x']", of_x)]
            text, shape = self.pick(texts)
            self.add("g", shape, text)
        else:
            self.emit(f"{e}.arg_dict['w'][:] = {e}.arg_dict['w'] - 0.1 * {e}.grad_dict['w']")

    def make(self):
        """Return 8 to 25 statements."""
        kinds = [self.do_view, self.do_copy, self.do_write, self.do_write, self.do_record]
        kinds += [self.do_record, self.do_record, self.do_grad, self.do_gradient, self.do_gradient]
        kinds += self.pick([[], [self.do_net, self.do_call, self.do_step, self.do_parameter] * 3])
        kinds += self.pick([[], [self.do_executor] * 8])
        length = 8 + int(self.random.random() * 14)
        while len(self.statements) < length:
            self.pick(kinds)()
        return self.statements[:25]


def make_program(seed):
    """Return the statements of a program."""
    return Generator(seed).make()


def checksum(statements):
    """Return a checksum that links a recorded result to its program."""
    return zlib.crc32("\n".join(statements).encode())


def run_program(mx, statements):
    """Run a program; return the values of all arrays that are alive at its end, by name."""
    names = {"mx": mx, "__name__": "program"}
    exec(SETUP, names)
    before = set(names)
    for number, statement in enumerate(statements):
        exec(compile(statement, f"statement {number}", "exec"), names)
    found = {}

    def note(name, array):
        if array is not None:
            found[name] = array.asnumpy()

    for name in sorted(set(names) - before):
        value = names[name]
        if isinstance(value, mx.nd.NDArray):
            note(name, value)
            note(f"{name}.grad", value.grad)
        elif isinstance(value, mx.gluon.Block):
            for i, (_, p) in enumerate(sorted(value.collect_params().items())):
                note(f"{name}.{i}", p.data())
                note(f"{name}.{i}.grad", None if p.grad_req == "null" else p.grad())
        elif isinstance(value, mx.executor.Executor):
            for key, array in [*value.arg_dict.items(), *value.grad_dict.items()]:
                note(f"{name}.{key}{'.grad' * (array is value.grad_dict[key])}", array)
    return {name: np.array(value) for name, value in found.items()}
