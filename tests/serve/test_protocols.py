"""All protocols return the model's outputs, and errors explain invalid requests."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mxnet as mx
from mxnet.formats.image_codec import encode

from .server import DENSE, NPY, NPZ, OUTPUT, npy, npz

ROWS = np.arange(10, dtype=np.float32).reshape(2, 5) / 7
SAFETENSORS = "application/x-safetensors"
IMAGE = np.random.default_rng(0).integers(0, 255, (40, 48, 3), dtype=np.uint8)


def expected(rows: np.ndarray = ROWS) -> np.ndarray:
    net = mx.gluon.SymbolBlock.imports(f"{DENSE}-symbol.json", ["data"], f"{DENSE}-0000.params")
    return net(mx.nd.array(rows)).asnumpy()


def check(outputs) -> None:
    np.testing.assert_allclose(np.array(outputs, np.float32), expected(), rtol=1e-5)


@pytest.mark.parametrize(
    "content, kind",
    [
        ({"inputs": {"data": ROWS.tolist()}}, "application/json"),
        ({"inputs": ROWS.tolist()}, "application/x-www-form-urlencoded"),  # what curl -d says
        ({"inputs": ROWS.tolist()}, "application/vnd.api+json; charset=utf-8"),
        (npy(ROWS), NPY),
        (npy(ROWS), ""),
        (npy(ROWS.astype(">f8")), NPY),
        (npy(ROWS.astype("g")), NPY),
        (npy(np.asfortranarray(ROWS)), "application/octet-stream"),
        (npz(data=ROWS), NPZ),
    ],
)
def test_bodies(dense, content, kind):
    answer = dense.post(content, kind)
    assert answer.code == 200, answer.content
    check(answer.json()["outputs"][OUTPUT])
    assert answer.headers["mx-model-version"] == "1"


def test_binary_answers(dense):
    from mxnext_cli.serve.decoding import read_npy, read_npz, read_safetensors

    answer = dense.post(npy(ROWS), NPY, accept=NPY)
    assert answer.headers["content-type"] == NPY
    check(read_npy(answer.content))
    check(read_npz(dense.post(npy(ROWS), NPY, accept=NPZ).content, 10**6)[OUTPUT])
    safetensors = pytest.importorskip("safetensors.numpy")
    body = safetensors.save({"data": ROWS})
    check(read_safetensors(dense.post(body, SAFETENSORS, accept=SAFETENSORS).content)[OUTPUT])


def test_one_sample_gets_a_batch_axis(dense):
    answer = dense.post(npy(ROWS[0]), NPY)
    np.testing.assert_allclose(answer.json()["outputs"][OUTPUT], expected(ROWS[:1]), rtol=1e-5)


def test_values_that_json_lacks_become_null(dense):
    answer = dense.post(npy(np.full((1, 5), np.nan, np.float32)), NPY)
    assert answer.json() == {"outputs": {OUTPUT: [[None, None]]}}


@pytest.mark.parametrize("path", ["/predict", "/v1/models/dense:predict"])
def test_instances(dense, path):
    check(dense.post({"instances": ROWS.tolist()}, path=path).json()["predictions"])
    named = [{"data": row} for row in ROWS.tolist()]
    check(dense.post({"instances": named}, path=path).json()["predictions"])
    wrong = [{"data": ROWS[0].tolist()}, {"x": [1]}]
    assert dense.post({"instances": wrong}, path=path).code == 400
    assert dense.post({"instances": 3}, path=path).code == 400
    assert dense.get("/v1/models/dense").json()["model_version_status"][0]["version"] == "1"


def tensor(**changes):
    fields = {"name": "data", "shape": [2, 5], "datatype": "FP32", "data": ROWS.ravel().tolist()}
    return {**fields, **changes}


def infer(server, request: dict, binary: bytes = b"", **headers):
    head = json.dumps(request).encode()
    if binary:
        headers["Inference_Header_Content_Length"] = str(len(head))
    return server.post(head + binary, "application/json", "/v2/models/dense/infer", **headers)


def test_open_inference_protocol(dense):
    answer = infer(dense, {"id": "7", "inputs": [tensor()]}).json()
    assert answer["id"] == "7"
    assert (answer["model_name"], answer["model_version"]) == ("dense", "1")
    (out,) = answer["outputs"]
    assert (out["name"], out["shape"], out["datatype"]) == (OUTPUT, [2, 2], "FP32")
    check(np.array(out["data"]).reshape(2, 2))
    nested = infer(dense, {"inputs": [tensor(data=ROWS.tolist(), datatype="FP64")]}).json()
    check(np.array(nested["outputs"][0]["data"]).reshape(2, 2))


def test_open_inference_protocol_in_bytes(dense):
    request = {
        "inputs": [tensor(parameters={"binary_data_size": ROWS.nbytes})],
        "outputs": [{"name": OUTPUT, "parameters": {"binary_data": True}}],
    }
    del request["inputs"][0]["data"]
    answer = infer(dense, request, ROWS.tobytes())
    length = int(answer.headers["inference-header-content-length"])
    (out,) = json.loads(answer.content[:length])["outputs"]
    assert out["parameters"] == {"binary_data_size": 16}
    check(np.frombuffer(answer.content[length:], "<f4").reshape(2, 2))
    request["outputs"] = []
    request["parameters"] = {"binary_data_output": True}
    assert "inference-header-content-length" in infer(dense, request, ROWS.tobytes()).headers


@pytest.mark.parametrize(
    "request_, binary, message",
    [
        ({}, b"", "inputs"),
        ({"inputs": [tensor(name="x")]}, b"", "no input 'x'"),
        ({"inputs": [tensor(datatype="BYTES")]}, b"", "datatype 'BYTES'"),
        ({"inputs": [tensor(shape=[3, 5])]}, b"", "does not fit 10 numbers"),
        ({"inputs": [tensor(shape=[-2, -5])]}, b"", "inputs[0].shape[0]"),
        ({"inputs": [tensor(shape="a")]}, b"", "inputs[0].shape"),
        ({"inputs": [tensor(shape=[10], data=[1] * 10)]}, b"", "a sample has shape"),
        ({"inputs": [tensor(), tensor()]}, b"", "twice"),
        ({"inputs": [tensor()], "outputs": [{"name": "y"}]}, b"", "no output 'y'"),
        ({"inputs": [tensor(parameters={"binary_data_size": 40})]}, b"abc", "not 40 bytes"),
        ({"inputs": [tensor(parameters={"binary_data_size": 4})]}, b"abcd", "takes 40 bytes"),
        ({"inputs": [tensor()]}, b"abcd", "belong to no input"),
    ],
)
def test_wrong_requests_of_the_protocol(dense, request_, binary, message):
    answer = infer(dense, request_, binary)
    assert (answer.code, message in answer.error) == (400, True), answer.content
    wrong = infer(dense, {"inputs": [tensor()]}, Inference_Header_Content_Length="99999")
    assert wrong.code == 400


def test_facts_about_models(both):
    server = both.get("/v2").json()
    assert server["name"] == "mxnext"
    facts = both.get("/v2/models/animals").json()
    assert facts["inputs"] == [{"name": "data", "datatype": "FP32", "shape": [-1, 3, 32, 32]}]
    assert facts["outputs"][0]["shape"] == [-1, 3]
    assert both.get("/v2/models/animals/versions/1/ready").code == 200
    assert both.get("/v2/models/animals/versions/9").code == 404
    assert both.get("/v2/models/zebra").code == 404
    index = both.post(b"", path="/v2/repository/index").json()
    assert [(m["name"], m["version"]) for m in index] == [("dense", "1"), ("animals", "1")]
    assert both.post(b"", path="/v2/repository/models/dense/load").code == 403
    card = both.get("/model?model=animals").json()
    assert card["inputs"] == {"data": [3, 32, 32]}
    assert (card["parameters"], card["labels"]) > (0, 3)
    assert len(both.get("/models").json()) == 2


def test_images_with_labels_and_probabilities(both):
    for kind, extension in (("image/jpeg", ".jpg"), ("image/png", ".png")):
        answer = both.post(encode(IMAGE, 95, extension), kind, "/predict/animals")
        assert answer.code == 200, answer.content
        ((scores,),) = answer.json()["outputs"].values()
        assert sum(scores) == pytest.approx(1, abs=1e-5)
        ((best,),) = answer.json()["top"].values()
        assert [set(b) for b in best] == [{"class", "label", "score"}] * 2
        assert best[0]["label"] in ("cat", "dog", "owl")
        assert best[0]["score"] == pytest.approx(max(scores), abs=1e-6)
    body = encode(IMAGE, 95, ".png")
    assert "top" not in both.post(body, "image/png", "/predict/animals?top=0").json()
    assert both.post(body, "image/png", "/predict/animals?top=x").code == 400


def form(*parts: tuple[str, str, bytes]) -> bytes:
    lines = b""
    for name, kind, content in parts:
        lines += b'--edge\r\nContent-Disposition: form-data; name="%s"; filename="f"\r\n' % (
            name.encode()
        )
        lines += (b"Content-Type: %s\r\n" % kind.encode() if kind else b"") + b"\r\n"
        lines += content + b"\r\n"
    return lines + b"--edge--\r\n"


def post_form(server, body: bytes, path: str = "/predict/animals"):
    return server.post(body, "multipart/form-data; boundary=edge", path)


def test_forms(both):
    png = encode(IMAGE, 95, ".png")
    one = both.post(png, "image/png", "/predict/animals").json()
    answer = post_form(both, form(("image", "image/png", png), ("image", "", png)))
    assert answer.code == 200, answer.content
    ((first, second),) = answer.json()["outputs"].values()
    assert first == second
    ((single,),) = one["outputs"].values()
    np.testing.assert_allclose(first, single, rtol=1e-5)
    check(_only(post_form(both, form(("data", NPY, npy(ROWS))), "/predict/dense")))
    check(_only(post_form(both, form(("f", "", json.dumps(ROWS.tolist()).encode())), "/predict")))


def _only(answer):
    (outputs,) = answer.json()["outputs"].values()
    return outputs


@pytest.mark.parametrize(
    "body, message",
    [
        (b"nothing", "the form"),
        (form(("a", "", b"hello")), "neither an image nor an array"),
        (form(), "1 or more: none"),
        (form(*[("a", "", b"[1]")] * 1100), "more than 1024 parts"),
        (form(("a", "", b"[1]"))[:-10], "ends too early"),
        (b"--edge\r\n" + b"a: " + b"b" * 10_000 + b"\r\n\r\n--edge--", "header"),
    ],
)
def test_wrong_forms(both, body, message):
    answer = post_form(both, body)
    assert (answer.code, message in answer.error) == (400, True), answer.content


@pytest.mark.parametrize(
    "content, kind, code, message",
    [
        (b"", "", 400, "empty"),
        (b"hello", "", 400, "neither JSON"),
        (b"{" * 5000, "", 400, "neither JSON"),
        (b"[" * 4000, "", 400, "neither JSON"),
        ({"inputs": 3}, "", 400, '"inputs"'),
        ({"inputs": {}}, "", 400, "1 or more: none"),
        ({"inputs": {"zz": [1]}}, "", 400, "no input 'zz'"),
        ({"inputs": {"data": [[1, 2], [3]]}}, "", 400, "different lengths"),
        ({"inputs": {"data": [["a"] * 5]}}, "", 400, "not a number"),
        ({"inputs": {"data": [[1, 2, 3]]}}, "", 400, "a sample has shape (5,)"),
        ({"inputs": {"data": []}}, "", 400, "empty list"),
        (npy(np.zeros((1025, 5), "f4")), NPY, 413, "at most 1024 samples"),
        (b"[1]" + b" " * 300_000, "application/json", 413, "larger than"),
        ({"inputs": [[1] * 5]}, "text/plain", 415, "'text/plain'"),
        (b"\x93NUMPY\x01", NPY, 400, "not an .npy array"),
        (b"PK\x03\x04zzz", NPZ, 400, "not an .npz"),
        (npz(data=np.array(["a"])), NPZ, 400, "not numbers"),
        (npz(data=ROWS, more=ROWS), NPZ, 400, "no input 'more'"),
        (npy(np.zeros((2, 5), "c8")), NPY, 400, "not numbers"),
        (npy(np.zeros((0, 5), "f4")), NPY, 400, "1 or more"),
        (b"\xff\xd8\xff", "image/jpeg", 400, "the image"),
        (b"hello", "image/jpeg", 400, "the image"),
        (b"\xff" * 50, SAFETENSORS, 400, "safetensors"),
    ],
)
def test_malformed_bodies(dense, content, kind, code, message):
    answer = dense.post(content, kind)
    assert (answer.code, message in answer.error) == (code, True), answer.content
    assert dense.post(npy(ROWS), NPY).code == 200


def test_compressed_bodies_are_not_taken(dense):
    assert dense.post(npy(ROWS), NPY, content_encoding="gzip").code == 415


def test_unknown_methods_and_paths_are_refused(dense):
    assert dense.get("/predict").code == 405
    assert dense.get("/nothing").code == 404
    assert dense.get("/health").json() == {"status": "ok"}
    assert dense.get("/v2/health/ready").json() == {"ready": True}
    assert dense.ask("HEAD", "/health").content == b""


def test_metrics_are_prometheus_text(dense):
    before = _metrics(dense)
    dense.post(npy(ROWS), NPY)
    dense.post(b"x")
    after = _metrics(dense)
    for name, growth in (
        ('mx_requests_total{code="200"}', 2),  # the one that asked before, too
        ('mx_requests_total{code="400"}', 1),
        ("mx_rows_total", 2),
        ('mx_predictions_total{model="dense"}', 1),
    ):
        assert after[name] == before.get(name, 0) + growth, name


def _metrics(server) -> dict[str, float]:
    answer = server.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    lines = answer.content.decode().splitlines()
    values = [line.rpartition(" ") for line in lines if not line.startswith("#")]
    typed = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert all(n.partition("{")[0].removesuffix("_bucket").removesuffix("_sum")
               .removesuffix("_count") in typed for n, _, _ in values)  # fmt: skip
    return {name: float(value) for name, _, value in values}
