"""Networks of the zoo match MXNet 1.9.1; pretrained files are verified."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mxnet as mx
from mxnet.gluon.model_zoo import model_store, vision
from tests.golden import HERE
from tests.golden.record.zoo_cases import SEEN, SLOW, seen, summary

RECORDED = json.loads((HERE / "model_zoo.json").read_text(encoding="utf-8"))
SEEN_NAMES = [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in SEEN]


def test_zoo_has_all_networks_of_mxnet():
    assert sorted(vision.MODELS) == sorted(RECORDED)


@pytest.mark.parametrize("name", RECORDED)
def test_parameter_names_and_shapes_match_mxnet(name):
    found = summary(mx, name)
    for part in ("count", "parameters", "sha1"):
        if part in RECORDED[name]:
            assert found[part] == RECORDED[name][part], part


@pytest.mark.parametrize("name", SEEN_NAMES)
def test_output_for_an_image_matches_mxnet(name):
    wanted = np.array(RECORDED[name]["seen"], dtype="float32")
    found = seen(mx, name, hybridize=True).ravel()
    assert_allclose(found, wanted, rtol=2e-3, atol=2e-3 * np.abs(wanted).max())


@pytest.mark.parametrize("name", ["resnet18_v1", "mobilenetv2_0.25"])
def test_eager_output_equals_hybrid_output(name):
    assert_allclose(seen(mx, name), seen(mx, name, hybridize=True), rtol=1e-4, atol=1e-4)


def layers_of(name):
    """Return the operators of a network with their attributes, except channel counts."""
    net = vision.get_model(name)
    nodes = json.loads(net(mx.sym.var("data")).tojson())["nodes"]
    sizes = ("num_filter", "num_group", "num_hidden", "num_args")
    return {
        (n["op"], *((k, v) for k, v in n.get("attrs", {}).items() if k not in sizes))
        for n in nodes
        if n["op"] != "null"
    }


def test_tested_networks_cover_all_layers_of_the_zoo():
    """Only one network of each family runs and is converted: the others have the same layers."""
    run = set().union(*map(layers_of, SEEN))
    others = {name: layers_of(name) - run for name in vision.MODELS if name not in SEEN}
    assert {name: layers for name, layers in others.items() if layers} == {}


def test_unknown_model_name_raises_and_lists_known_ones():
    with pytest.raises(ValueError, match=r"Model nope is not supported.*\n\talexnet\n"):
        vision.get_model("nope")
    with pytest.raises(ValueError, match=r"Did you mean 'resnet18_v1'\? Available"):
        vision.get_model("resnet18v1")


# -- files ------------------------------------------------------------------------------------

NAME = "mobilenetv2_0.25"


@pytest.fixture
def trained(tmp_path, monkeypatch):
    """The file of a small network, with the hash that the store expects."""
    net = vision.get_model(NAME)
    net.initialize()
    net(mx.nd.zeros((1, 3, 32, 32)))
    file = tmp_path / "made.params"
    net.save_parameters(str(file))
    digest = hashlib.sha1(file.read_bytes()).hexdigest()
    monkeypatch.setitem(model_store.SHA1, NAME, digest)
    return net, file, f"{NAME}-{digest[:8]}"


def first_weight(net):
    return net.features[0].weight.data().asnumpy()


def placed(trained, folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{trained[2]}.params").write_bytes(trained[1].read_bytes())


def test_pretrained_file_in_root_is_loaded(trained, tmp_path):
    placed(trained, tmp_path / "zoo")
    net = vision.get_model(NAME, pretrained=True, root=str(tmp_path / "zoo"))
    assert_allclose(first_weight(net), first_weight(trained[0]))


def test_external_libraries_can_register_model_files(tmp_path, monkeypatch):
    file = tmp_path / "own.params"
    mx.nd.save(str(file), {"w": mx.nd.ones(2)})
    digest = hashlib.sha1(file.read_bytes()).hexdigest()
    monkeypatch.setitem(model_store._model_sha1, "own_net", digest)
    kept = file.rename(tmp_path / f"own_net-{digest[:8]}.params")
    assert model_store.get_model_file("own_net", root=str(tmp_path)) == str(kept)
    address = model_store._url_format.format(repo_url="https://m/", file_name="own_net")
    assert address == "https://m/gluon/models/own_net.zip"


def test_pretrained_file_under_mxnet_home_is_loaded(trained, tmp_path, monkeypatch):
    placed(trained, tmp_path / "home" / "models")
    monkeypatch.setenv("MXNET_HOME", str(tmp_path / "home"))
    net = vision.get_model(NAME, pretrained=True)
    assert_allclose(first_weight(net), first_weight(trained[0]))


def test_missing_file_error_names_the_expected_path(trained, tmp_path, monkeypatch):
    monkeypatch.delenv("MXNET_GLUON_REPO", raising=False)
    with pytest.raises(
        mx.MXNetError, match=rf"Put {NAME}-\w+\.params .* into {re.escape(str(tmp_path))}"
    ):
        vision.get_model(NAME, pretrained=True, root=str(tmp_path))


def test_damaged_pretrained_file_raises(trained, tmp_path, monkeypatch):
    monkeypatch.delenv("MXNET_GLUON_REPO", raising=False)
    (tmp_path / f"{trained[2]}.params").write_bytes(b"damaged")
    with pytest.raises(mx.MXNetError, match=r"its SHA-1 is not"):
        vision.get_model(NAME, pretrained=True, root=str(tmp_path))


def mirror(trained, folder, content):
    place = folder / "gluon" / "models"
    place.mkdir(parents=True)
    with zipfile.ZipFile(place / f"{trained[2]}.zip", "w") as packed:
        packed.writestr(f"{trained[2]}.params", content)
    return folder.as_uri()


def test_file_is_downloaded_from_a_mirror_and_cached(trained, tmp_path, monkeypatch):
    address = mirror(trained, tmp_path / "mirror", trained[1].read_bytes())
    monkeypatch.setenv("MXNET_GLUON_REPO", address)
    root = tmp_path / "zoo"
    net = vision.get_model(NAME, pretrained=True, root=str(root))
    assert_allclose(first_weight(net), first_weight(trained[0]))
    assert [p.name for p in root.iterdir()] == [f"{trained[2]}.params"]
    model_store.purge(str(root))
    assert not list(root.iterdir())


def test_file_of_a_mirror_with_a_wrong_hash_raises(trained, tmp_path, monkeypatch):
    monkeypatch.setenv("MXNET_GLUON_REPO", mirror(trained, tmp_path / "mirror", b"other"))
    with pytest.raises(mx.MXNetError, match="does not have the SHA-1"):
        vision.get_model(NAME, pretrained=True, root=str(tmp_path / "zoo"))
    assert not list((tmp_path / "zoo").iterdir())
