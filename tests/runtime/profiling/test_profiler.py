"""The profiler records MXNet's operator names and leaves no hooks behind."""

from __future__ import annotations

import json
import threading

import pytest

import mxnet as mx
from mxnet import profiler
from mxnet.error import MXNetError
from mxnet.ops import interpreters
from mxnet.runtime.profiling import control


@pytest.fixture(autouse=True)
def fresh(tmp_path, monkeypatch):
    monkeypatch.setattr(control, "CONFIG", dict(control.CONFIG))
    control.recording.clear()
    profiler.set_config(filename=str(tmp_path / "trace.json"), profile_all=True)
    yield
    profiler.set_state("stop")
    control.recording.clear()


def counts():
    rows = json.loads(profiler.dumps(format="json"))["Time"].get("operator", {})
    return {name: row["Count"] for name, row in rows.items()}


def trace(tmp_path):
    return json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))["traceEvents"]


def network():
    x = mx.sym.Variable("x")
    fc = mx.sym.FullyConnected(x, num_hidden=3, name="fc")
    return mx.sym.SoftmaxOutput(fc, name="out").simple_bind(mx.cpu(), x=(2, 4))


def test_eager_functions_operators_and_methods_are_recorded():
    x, relu = mx.nd.ones((4, 4)), mx.nd.relu
    profiler.set_state("run")
    mx.nd.dot(x, x)
    relu(x)  # a reference taken before the start
    x + x
    x * 2
    x.sum()
    mx.nd.FullyConnected(x, x, num_hidden=4, no_bias=True)
    profiler.set_state("stop")
    names = ("dot", "relu", "broadcast_add", "_mul_scalar", "sum", "FullyConnected")
    assert counts() == dict.fromkeys(names, 1)


def test_graphs_compiled_before_and_while_profiling_are_recorded():
    before = network()
    before.forward(is_train=True)
    profiler.set_state("run")
    before.forward(is_train=True)
    before.backward()
    network().forward()
    profiler.set_state("stop")
    found = counts()
    assert found["FullyConnected"] == found["SoftmaxOutput"] == 2
    assert found["_backward_FullyConnected"] == found["_backward_SoftmaxOutput"] == 1


def test_backward_operators_are_recorded():
    w = mx.nd.ones((3, 3))
    w.attach_grad()
    profiler.set_state("run")
    with mx.autograd.record():
        loss = (mx.nd.dot(w, w) * 3).sum()
    loss.backward()
    profiler.set_state("stop")
    assert {"_backward_dot", "_backward_mul_scalar", "_backward_sum"} <= counts().keys()


def test_stopping_removes_all_hooks():
    relu = mx.nd.relu
    profiler.set_state("run")
    assert len(interpreters.eager) == 1
    exe = network()
    exe.forward()
    profiler.set_state("stop")
    assert not interpreters.eager and not interpreters.graphs
    seen = counts()
    exe.forward()
    relu(mx.nd.ones((2,)))
    assert counts() == seen


def test_functions_created_while_profiling_are_not_recorded_later():
    vars(mx.nd).pop("arccosh", None)  # functions are created on first access
    vars(mx.nd.op).pop("arccosh", None)
    x = mx.nd.ones((2,)) * 2
    profiler.set_state("run")
    made = mx.nd.arccosh
    made(x)
    profiler.set_state("stop")
    made(x)
    assert counts()["arccosh"] == 1


def test_profile_symbolic_or_imperative_only():
    exe, x = network(), mx.nd.ones((2,))
    profiler.set_config(profile_all=False, profile_imperative=False, profile_symbolic=True)
    profiler.set_state("run")
    exe.forward()
    mx.nd.relu(x)
    profiler.set_state("stop")
    assert counts() == {"FullyConnected": 1, "SoftmaxOutput": 1}
    profiler.dumps(reset=True)
    profiler.set_config(profile_imperative=True, profile_symbolic=False)
    profiler.set_state("run")
    exe.forward()
    mx.nd.relu(x)
    profiler.set_state("stop")
    assert counts() == {"relu": 1}


class _DoubledExp(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], mx.nd.exp(in_data[0]) * 2)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * out_data[0])


def test_operators_inside_custom_operators_have_a_prefixed_name():
    @mx.operator.register("DoubledExp")
    class _Prop(mx.operator.CustomOpProp):
        def create_operator(self, ctx, in_shapes, in_dtypes):
            return _DoubledExp()

    x = mx.nd.ones(2)
    x.attach_grad()
    profiler.set_state("run")
    with mx.autograd.record():
        y = mx.nd.Custom(x, op_type="DoubledExp")
    y.backward()
    mx.nd.exp(y)
    profiler.set_state("stop")
    rows = json.loads(profiler.dumps(format="json"))["Time"]
    assert {name: row["Count"] for name, row in rows["Custom Operator"].items()} == {
        "DoubledExp::pure_python": 1,
        "DoubledExp::exp": 1,
        "DoubledExp::_mul_scalar": 1,
        "_backward_DoubledExp::pure_python": 1,
        "_backward_DoubledExp::broadcast_mul": 1,
    }
    assert rows["operator"]["exp"]["Count"] == 1
    assert all(row["Min"] >= 0 for row in rows["Custom Operator"].values())


def test_pause_and_resume():
    x = mx.nd.ones((2,))
    profiler.set_state("run")
    mx.nd.relu(x)
    profiler.pause()
    mx.nd.sigmoid(x)
    profiler.resume()
    mx.nd.tanh(x)
    profiler.set_state("stop")
    assert counts() == {"relu": 1, "tanh": 1}


def test_trace_file_contains_operators_and_markers(tmp_path):
    domain = profiler.Domain("mine")
    task, frame = domain.new_task("task"), domain.new_frame("frame")
    profiler.set_state("run")
    counter = domain.new_counter("images", 3)
    task.start()
    frame.start()
    mx.nd.relu(mx.nd.ones((2,)))
    task.stop()
    frame.stop()
    counter += 2
    domain.new_marker("here").mark("thread")
    with profiler.Event("event"), profiler.scope("outer"), profiler.scope("inner"):
        pass
    profiler.dump()
    events = {e["name"]: e for e in trace(tmp_path)}
    relu = events["relu"]
    assert relu["cat"] == "operator" and relu["ph"] == "X"
    begin = next(e for e in trace(tmp_path) if e["name"] == "task" and e["ph"] == "b")
    end = next(e for e in trace(tmp_path) if e["name"] == "task" and e["ph"] == "e")
    assert begin["ts"] - 1 <= relu["ts"] <= relu["ts"] + relu["dur"] <= end["ts"] + 1
    assert events["images"]["args"] == {"images": 5} and events["images"]["ph"] == "C"
    assert events["here"]["s"] == "t" and events["frame"]["cat"] == "mine,frame"
    assert {"event", "outer", "outer:inner"} <= events.keys()


def test_dump_without_finished_continues_profiling(tmp_path):
    x = mx.nd.ones((2,))
    profiler.set_state("run")
    mx.nd.relu(x)
    profiler.dump(finished=False)
    mx.nd.tanh(x)
    profiler.dump()
    names = [e["name"] for e in trace(tmp_path)]
    assert names.count("relu") == 1 and names.count("tanh") == 1
    assert not control.recording.running


def test_continuous_dump_writes_when_stopped(tmp_path):
    profiler.set_config(continuous_dump=True)
    profiler.set_state("run")
    profiler.set_state("stop")
    assert (tmp_path / "trace.json").exists()


def test_dumps_table_format_sorting_and_reset():
    x = mx.nd.ones((2,))
    profiler.set_state("run")
    mx.nd.relu(x)
    mx.nd.tanh(x)
    mx.nd.tanh(x)
    text = profiler.dumps(sort_by="count", ascending=True)  # while it runs
    profiler.set_state("stop")
    lines = text.splitlines()
    assert lines[1] == "Profile Statistics:"
    start = lines.index("operator")
    heading = "Name Total Count Time (ms) Min Time (ms) Max Time (ms) Avg Time (ms)"
    assert " ".join(lines[start + 2].split()) == heading
    assert [row.split()[:2] for row in lines[start + 4 : start + 6]] == [
        ["relu", "1"],
        ["tanh", "2"],
    ]
    assert "Device Storage" in lines
    profiler.dumps(reset=True)
    assert "operator" not in profiler.dumps()


def test_profiling_with_several_threads():
    x, exe = mx.nd.ones((4,)), network()
    profiler.set_state("run")

    def work(own):
        own.forward()
        mx.nd.relu(x)

    workers = [threading.Thread(target=work, args=(network(),), daemon=True) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
        assert not worker.is_alive()
    profiler.set_state("stop")
    assert (exe.forward()[0].asnumpy() > 0).all()


def test_deprecated_function_names(tmp_path):
    for call in (
        lambda: profiler.profiler_set_config(mode="all", filename=str(tmp_path / "old.json")),
        lambda: profiler.profiler_set_state("run"),
        profiler.dump_profile,
    ):
        with pytest.warns(UserWarning, match="deprecated"):
            call()
    assert (tmp_path / "old.json").exists()


def test_counter_arithmetic_and_names():
    domain = profiler.Domain("mine")
    counter = domain.new_counter("c")
    counter -= 2
    counter.increment(5)
    assert counter.value == 3
    named = [domain, counter, domain.new_task("t"), domain.new_frame("f"), profiler.Event("e")]
    assert [str(n) for n in named] == ["mine", "c", "t", "f", "e"]


def test_profiling_servers_without_servers_warns():
    before = dict(control.CONFIG)
    with pytest.warns(UserWarning, match="Every worker records itself") as warned:
        profiler.set_config(profile_all=True, filename="server.json", profile_process="server")
        profiler.set_state("run", profile_process="server")
        profiler.dump(profile_process="server")
    assert len(warned) == 3 and dict(control.CONFIG) == before
    assert not control.recording.running


def test_invalid_profiler_arguments_raise():
    with pytest.raises(MXNetError, match=r"Cannot find argument 'filenam'.*Did you mean"):
        profiler.set_config(filenam="x")
    with pytest.raises(KeyError):
        profiler.set_state("go")
    with pytest.raises(KeyError):
        profiler.set_state("run", profile_process="scheduler")
    with pytest.raises(AssertionError, match="format"):
        profiler.dumps(format="xml")
    with pytest.raises(AssertionError, match="sort_by"):
        profiler.dumps(sort_by="name")
    with pytest.raises(AssertionError, match="ascending"):
        profiler.dumps(ascending="total")
    with pytest.raises(MXNetError, match="Invalid Input"):
        profiler.Domain("d").new_marker("m").mark("world")
