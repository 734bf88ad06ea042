"""Small ONNX files that expand to enormous models raise quickly and with little memory."""

from __future__ import annotations

import os
import pathlib
import resource
import select
import signal
import subprocess
import sys

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import mxnet as mx
from mxnet.contrib import onnx as contrib_onnx
from mxnet.error import FormatError
from mxnet.interop.onnx.importer import reading
from mxnext_cli import main

MAX_SECONDS = 4.0  # of computing; a helper has one for each of its two tasks
MAX_MEGABYTES = 300
OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("d", 1)]


def _model(nodes: list, inputs: list, functions: list, constants: list) -> bytes:
    output = helper.make_tensor_value_info("y", inputs[0].type.tensor_type.elem_type, ["n"])
    graph = helper.make_graph(nodes, "g", inputs, [output], constants)
    model = helper.make_model(graph, functions=functions, opset_imports=OPSETS, ir_version=8)
    return model.SerializeToString()


def _calls(depth: int, last: str) -> bytes:
    """Functions that each call the next one twice; the last one calls `last`."""
    functions = []
    for i in range(depth):
        callee, domain = (
            (f"f{i + 1}", "d") if i + 1 < depth else (last, "" if last == "Relu" else "d")
        )
        body = [
            helper.make_node(callee, ["x"], ["t"], domain=domain),
            helper.make_node(callee, ["t"], ["y"], domain=domain),
        ]
        functions.append(helper.make_function("d", f"f{i}", ["x"], ["y"], body, OPSETS))
    start = helper.make_node("f0", ["x"], ["y"], domain="d")
    return _model(
        [start], [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])], functions, []
    )


def _doubling(count: int, first: str, last: str, copies: int = 2) -> bytes:
    """A model in which each node concatenates an array with itself."""
    kind = TensorProto.FLOAT if first == "floats" else TensorProto.INT64
    shape = ["n"] if first == "shape" else [2]
    inputs = [helper.make_tensor_value_info("x", kind, shape)]
    nodes, constants, name = [], [], "x"
    if first == "constant":
        name, constants = "c", [numpy_helper.from_array(np.ones(2, np.int64), "c")]
    if first == "shape":
        nodes, name = [helper.make_node("Shape", ["x"], ["s"])], "s"
    for i in range(count):
        nodes.append(helper.make_node("Concat", [name] * copies, [f"c{i}"], axis=0))
        name = f"c{i}"
    source = ["x", name] if last == "Reshape" else [name]
    nodes.append(helper.make_node(last, source, ["y"]))
    return _model(nodes, inputs, [], constants)


REFUSED = {
    "functions that call others twice": _calls(25, "Relu"),
    "functions that call each other": _calls(3, "f0"),
    "doubled inputs": _doubling(34, "integers", "Identity"),
    "doubled floats": _doubling(34, "floats", "Identity"),
    "doubled constants": _doubling(34, "constant", "Identity"),
    "doubled shapes": _doubling(34, "constant", "Reshape"),
    "constants joined a thousand times": _doubling(4, "constant", "Identity", 1000),
}


def _used() -> tuple[float, int]:
    """Return the CPU seconds and the peak megabytes so far, including children."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in both), max(u.ru_maxrss for u in both) // 1024


@pytest.mark.parametrize("name", REFUSED)
def test_files_that_expand_to_enormous_models_raise(name: str, tmp_path: pathlib.Path) -> None:
    contrib_onnx.import_model(_doubling(1, "floats", "Identity"))  # all that is loaded once
    seconds, megabytes = _used()
    with pytest.raises(mx.MXNetError):
        contrib_onnx.import_model(REFUSED[name])
    now, largest = _used()
    assert now - seconds < MAX_SECONDS
    assert largest - megabytes < MAX_MEGABYTES


def test_import_does_not_evaluate_repeatedly_doubled_shapes() -> None:
    """The input size is symbolic, so each number would be a name in a huge list."""
    symbol = contrib_onnx.import_model(_doubling(28, "shape", "Identity"))[0]
    assert symbol.list_outputs()


def test_functions_within_limits_are_expanded() -> None:
    block = contrib_onnx.import_to_gluon(_calls(5, "Relu"))
    assert block(mx.nd.array([-1, 2])).asnumpy().tolist() == [0, 2]


def test_external_tensors_in_functions_raise() -> None:
    """Tensors stored in another file raise there, too."""
    tensor = TensorProto(name="t", data_type=TensorProto.FLOAT, dims=[1])
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "/etc/passwd"
    body = [helper.make_node("Constant", [], ["y"], value=tensor)]
    function = helper.make_function("d", "f", ["x"], ["y"], body, OPSETS)
    start = helper.make_node("f", ["x"], ["y"], domain="d")
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    with pytest.raises(FormatError, match="another file"):
        contrib_onnx.import_model(_model([start], [info], [function], []))


def test_info_command_reports_the_problem(tmp_path: pathlib.Path, capsys) -> None:
    """The command does not expand functions."""
    path = tmp_path / "bomb.onnx"
    path.write_bytes(REFUSED["functions that call others twice"])
    assert main(["info", str(path)]) == 1
    assert "problem: its functions stand for 67108863 nodes" in capsys.readouterr().out


def test_isolated_work_has_a_time_limit() -> None:
    def work() -> bytes:
        while True:
            pass

    with pytest.raises(FormatError, match="1 s of computing"):
        reading.run_isolated(work, "x")


def test_isolated_work_has_a_memory_limit() -> None:
    with pytest.raises(FormatError, match="MemoryError"):
        reading.run_isolated(lambda: bytes(1 << 30), "x")


@pytest.mark.skipif(sys.platform != "linux", reason="others have no signal for it")
def test_isolated_processes_end_with_their_parent() -> None:
    """The child holds one end of a pipe, which closes when both have ended."""
    code = (
        "import os, time\nfrom mxnet.interop.onnx.importer.reading import run_isolated\n"
        "run_isolated(lambda: (os.write(1, b'!'), time.sleep(100)) and b'', 'x')"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert os.read(parent.stdout.fileno(), 1) == b"!"
        parent.send_signal(signal.SIGKILL)
        ready = select.select([parent.stdout], [], [], 60)[0]
        assert ready and os.read(parent.stdout.fileno(), 1) == b""
