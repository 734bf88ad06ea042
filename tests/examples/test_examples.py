"""Every example runs at a small size and reaches a result better than chance."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not importlib.util.find_spec("sklearn"), reason="no scikit-learn")

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))


def run(name: str, *arguments: str):
    return importlib.import_module(f"examples.{name}").main(arguments)


def test_lenet_with_gluon_classifies_digits(capsys):
    accuracy = run("lenet_gluon", "--epochs", "3")
    assert accuracy > 0.95
    assert f"saved and loaded: accuracy {accuracy:.4f}" in capsys.readouterr().out


def test_lenet_with_module_classifies_digits(capsys):
    assert run("lenet_module", "--epochs", "3") > 0.95
    assert "first image: 2, its label: 2" in capsys.readouterr().out


def test_language_model_generates_words_of_its_corpus(capsys):
    perplexity = run("language_model", "--epochs", "2", "--hidden", "64")
    assert perplexity < 2
    last_line = capsys.readouterr().out.splitlines()[-1]
    known = {"the", "one", "old", "red", "big", "cat", "dog", "bird", "sees", "hears"}
    words = last_line.replace(".", "").split()[1:-1]
    assert sum(word in known for word in words) / len(words) > 0.7


def test_vae_training_lowers_the_loss(capsys):
    first, last = run("vae", "--epochs", "3")
    assert last < first - 3
    assert "@@" in capsys.readouterr().out


def test_transfer_learning_needs_fewer_images():
    scratch, tuned = run("transfer_learning")
    assert tuned > max(scratch, 0.75)


@pytest.mark.slow
def test_unet_segments_images(capsys):
    assert run("segmentation", "--iterations", "160") > 0.75
    assert "what the network finds" in capsys.readouterr().out


@pytest.mark.slow
def test_bert_predicts_masked_verbs():
    agreement, accuracy = run("bert", "--iterations", "200")
    assert agreement > 0.9
    assert accuracy > 0.9


@pytest.mark.slow
def test_gan_covers_the_modes():
    close, found = run("gan", "--iterations", "1000")
    assert close > 0.6
    assert found >= 5


@pytest.mark.slow
def test_detector_locates_shapes(capsys):
    assert run("detection", "--iterations", "120") > 0.7
    assert "IoU" in capsys.readouterr().out


def test_factorization_machine_beats_a_linear_model():
    linear, factorized = run("factorization_machine", "--epochs", "4")
    assert linear < 0.6
    assert factorized > 0.75


def test_custom_operator_learns_intervals_of_the_right_width():
    assert 0.7 < run("custom_operator", "--iterations", "500") < 0.9


@pytest.mark.slow
def test_served_model_outputs_match_torch(capsys):
    for name in ("onnx", "onnxruntime", "granian", "starlette"):
        pytest.importorskip(name)
    assert run("convert_and_serve", "--requests", "2") < 1e-5
    assert "both sides agree" in capsys.readouterr().out


def test_network_with_gluon_and_torch_layers_trains(capsys):
    first, second = run("half_torch", "--epochs", "2")
    assert first > 0.75
    assert second > 0.85
    assert "give the same answers: 100%" in capsys.readouterr().out


@pytest.mark.slow
def test_attention_reverses_sequences():
    assert run("seq2seq_attention", "--length", "4", "--iterations", "200") > 0.5


@pytest.mark.slow
def test_dqn_improves_its_balancing_time():
    first, best = run("dqn", "--episodes", "80")
    assert best > 2 * first


def test_model_parallel_training_equals_single_device_training(capsys):
    assert run("model_parallel", "--epochs", "2") < 1e-6
    assert "fc2_weight on cpu(1)" in capsys.readouterr().out


def test_readme_lists_every_example():
    index = (ROOT / "examples/README.md").read_text("utf-8")
    for path in EXAMPLES:
        assert f"({path.relative_to(ROOT / 'examples').as_posix()})" in index
