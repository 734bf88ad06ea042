"""`mx predict` gives what the model gives, from images and arrays."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import mxnet as mx
from mxnext_cli import main
from mxnext_cli.predict import IMAGENET, Preparation
from tests.golden import HERE as GOLDEN

cv2 = pytest.importorskip("cv2")
DENSE = str(GOLDEN / "gluon/dense")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = np.arange(15, dtype=np.float32).reshape(3, 5) / 10
    np.save("rows.npy", rows)
    np.savez("rows.npz", data=rows)
    np.savetxt("rows.csv", rows, delimiter=",")
    pixels = np.zeros((6, 9, 3), np.uint8)
    pixels[:, :3] = 255
    cv2.imwrite("a.png", pixels)
    cv2.imwrite("b.png", pixels[:, ::-1])
    return tmp_path


@pytest.fixture
def picture_model(folder):
    """A Module checkpoint with a label: it adds up each channel of a 3x4x4 image."""
    net = mx.sym.sum(mx.sym.var("data"), axis=(2, 3))
    net = mx.sym.broadcast_mul(net, mx.sym.var("scale"))
    net = mx.sym.SoftmaxOutput(net, name="softmax")
    mx.model.save_checkpoint("net", 3, net, {"scale": mx.nd.array([[1, 2, 3]])}, {})
    return "net"


def predicted(capsys, *arguments):
    assert main(["predict", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def expected(rows):
    net = mx.gluon.SymbolBlock.imports(f"{DENSE}-symbol.json", ["data"], f"{DENSE}-0000.params")
    return net(mx.nd.array(rows)).asnumpy()


@pytest.mark.parametrize("file", ["rows.npy", "rows.npz", "rows.csv", "data=rows.npy"])
@pytest.mark.parametrize("batch", ["2", "32"])
def test_arrays(file, batch, folder, capsys):
    samples = predicted(capsys, DENSE, "--input", file, "--batch", batch, "--output", "out.npy")
    right = expected(np.load("rows.npy"))
    np.testing.assert_allclose(np.load("out.npy"), right, rtol=1e-5)
    assert len(samples) == 3
    (first,) = samples[0]["outputs"].values()
    assert first["top"][0]["class"] == int(right[0].argmax())
    assert first["top"][0]["score"] == pytest.approx(float(right[0].max()), rel=1e-5)


def test_one_row_without_a_batch_axis(folder, capsys):
    np.save("row.npy", np.load("rows.npy")[1])
    predicted(capsys, DENSE, "--input", "row.npy", "--shape", "5", "--output", "out.csv")
    right = expected(np.load("rows.npy")[1:2])
    np.testing.assert_allclose(np.loadtxt("out.csv", delimiter=",")[None], right, rtol=1e-5)


def test_images_with_labels(picture_model, capsys):
    Path("labels.txt").write_text("cat\ndog\n")
    samples = predicted(
        capsys, picture_model, "--input", "a.png", "b.png", "--labels", "labels.txt",
        "--resize", "4", "--crop", "4", "--scale", "0.01", "--mean", "1,0,0", "--top", "3",
    )  # fmt: skip
    assert [sample["input"] for sample in samples] == ["a.png", "b.png"]
    top = samples[0]["outputs"]["softmax_output"]["top"]
    assert [row["label"] for row in top] == [None, "dog", "cat"]  # the third class has no name
    assert sum(row["score"] for row in top) == pytest.approx(1)


def test_softmax_of_scores(folder, capsys):
    samples = predicted(capsys, DENSE, "--input", "rows.npy", "--softmax")
    (first,) = samples[0]["outputs"].values()
    assert sum(row["score"] for row in first["top"]) == pytest.approx(1)


def test_preparation_of_images(folder):
    content = Path("a.png").read_bytes()
    plain = Preparation().prepare(content, "a.png")
    assert plain.shape == (3, 6, 9)
    assert plain[:, 0, 0].tolist() == [255, 255, 255]
    assert Preparation(layout="NHWC", is_gray=True).prepare(content, "a").shape == (6, 9, 1)
    assert Preparation().prepare(content, "a", (3, 2, 4)).shape == (3, 2, 4)
    assert IMAGENET.prepare(content, "a.png").shape == (3, 224, 224)
    normalized = Preparation(scale=1 / 255, mean=(0.5,), std=(0.5,)).prepare(content, "a.png")
    assert normalized[0, 0, 0] == pytest.approx(1)
    assert normalized[0, 0, -1] == pytest.approx(-1)


def test_the_order_of_channels(folder):
    red = np.zeros((2, 2, 3), np.uint8)
    red[..., 2] = 9  # OpenCV writes blue, green, red
    cv2.imwrite("red.png", red)
    content = Path("red.png").read_bytes()
    assert Preparation().prepare(content, "red")[:, 0, 0].tolist() == [9, 0, 0]
    assert Preparation(is_bgr=True).prepare(content, "red")[:, 0, 0].tolist() == [0, 0, 9]


def test_several_inputs_and_outputs(folder, capsys):
    both = mx.sym.Group([mx.sym.var("a") + mx.sym.var("b"), mx.sym.sum(mx.sym.var("a"), axis=1)])
    both.save("two-symbol.json")
    mx.nd.save("two-0000.params", {})
    predicted(capsys, "two", "--input", "a=rows.npy", "b=rows.csv", "--output", "out.npz")
    rows = np.load("rows.npy")
    with np.load("out.npz") as out:
        first, second = out.values()
    np.testing.assert_allclose(first, 2 * rows, rtol=1e-6)
    np.testing.assert_allclose(second, rows.sum(1), rtol=1e-6)


def test_half_precision(folder, capsys):
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, no_bias=True, name="fc")
    mx.model.save_checkpoint("half", 0, net, {"fc_weight": mx.nd.ones((2, 5), dtype="float16")}, {})
    predicted(capsys, "half", "--input", "rows.npy", "--output", "out.npy")
    assert np.load("out.npy").dtype == np.float16


def test_printed_table(folder, capsys):
    assert main(["predict", DENSE, "--input", "rows.npy"]) == 0
    assert "rows.npy[0]" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments, code, said",
    [
        ([DENSE, "--input", "absent.npy"], 1, "No such file"),
        ([DENSE, "--input", "zz=rows.npy"], 2, "no input 'zz'"),
        ([DENSE, "--input", "rows.npy", "--shape", "7"], 2, "cannot become samples of shape (7,)"),
        ([DENSE, "--input", "wide.npy"], 1, "Shape inconsistent"),
        ([DENSE, "--input", "objects.npy"], 1, "cannot be read"),
        ([DENSE, "--input", "words.npy"], 1, "not numbers"),
        ([DENSE, "--input", "bad.npz"], 1, "bad.npz"),
        ([DENSE, "--input", "bad.csv"], 1, "bad.csv"),
        ([DENSE, "--input", "bad.jpg"], 1, "bad.jpg"),
        ([DENSE, "--input", "none.npy"], 2, "no samples"),
        ([DENSE, "--input", "rows.xyz"], 2, "inputs are"),
        ([DENSE, "--input", "rows.npy", "--output", "x.txt"], 2, "ends in .npy"),
        ([DENSE, "--input", "rows.npy", "--mean", "a"], 2, "--mean a"),
        ([DENSE, "--input", "rows.npy", "--std", "0"], 2, "0 cannot divide"),
        ([DENSE, "--input", "rows.npy", "--labels", "bad.npz"], 1, "not text"),
        ([DENSE, "--input", "a.png", "--mean", "1,2"], 2, "--mean has 2 numbers"),
        ([f"{DENSE}-symbol.json", "--params", "rows.npy", "--input", "a.png"], 1, "rows.npy"),
    ],
)  # fmt: skip
def test_mistakes(arguments, code, said, folder, capsys):
    np.save("wide.npy", np.zeros((2, 7), np.float32))
    np.save("objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.save("words.npy", np.array(["a"]))
    np.save("none.npy", np.zeros((0, 5), np.float32))
    for name in ("bad.npz", "bad.csv", "bad.jpg"):
        Path(name).write_bytes(b"PK\x03\x04\xff\xfe")
    before = sorted(folder.iterdir())
    assert main(["predict", *arguments]) == code
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) <= 17
    assert "--traceback" not in error
    assert sorted(folder.iterdir()) == before


def test_a_color_image_for_a_gray_model_is_explained(tmp_path, capsys):
    net = mx.gluon.nn.Conv2D(2, 3, in_channels=1)
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((1, 1, 8, 8)))
    net.export(str(tmp_path / "gray"))
    picture = tmp_path / "color.png"
    cv2.imwrite(str(picture), np.full((8, 8, 3), 7, np.uint8))
    command = ["predict", str(tmp_path / "gray"), "--input", str(picture)]
    assert main(command) == 1
    assert "The model takes one channel: give --gray." in capsys.readouterr().err
    assert main([*command, "--gray"]) == 0
