"""`gluon.utils`: splitting batches, norms, downloads, hooks."""

from __future__ import annotations

import functools
import hashlib
import http.server
import pickle
import threading
from pathlib import Path

import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon import utils
from tests.arrays import backward, check


def test_split_data_with_and_without_even_split():
    data = mx.nd.arange(10)
    with pytest.raises(ValueError, match="cannot be evenly split into 3 slices"):
        utils.split_data(data, 3)
    parts = utils.split_data(data, 3, even_split=False)
    assert [p.shape for p in parts] == [(4,), (3,), (3,)]
    parts = utils.split_data(mx.nd.ones((2, 6)), 3, batch_axis=1)
    assert [p.shape for p in parts] == [(2, 2)] * 3
    parts = utils.split_data(mx.nd.ones((2, 3)), 3, even_split=False)
    assert [p.shape for p in parts] == [(1, 3), (1, 3), (0, 3)]


def test_split_and_load_places_slices_on_contexts():
    parts = utils.split_and_load(np.arange(4), [mx.cpu(0), mx.cpu(1)])
    assert [p.context for p in parts] == [mx.cpu(0), mx.cpu(1)]
    assert parts[1].asnumpy().tolist() == [2, 3]
    whole = mx.nd.arange(4, dtype="int32")
    assert utils.split_and_load(whole, [mx.cpu()])[0] is whole


def test_clip_global_norm_clips_in_place():
    arrays = [mx.nd.array([3.0, 4.0]), mx.nd.array([[12.0]], ctx=mx.cpu(1))]
    norm = utils.clip_global_norm(arrays, 1.0)
    assert norm == 13.0
    assert type(norm) is np.float32
    np.testing.assert_allclose(arrays[0].asnumpy(), [3 / 13, 4 / 13], rtol=1e-6)
    np.testing.assert_allclose(arrays[1].asnumpy(), [[12 / 13]], rtol=1e-6)
    norm = utils.clip_global_norm(arrays, 5.0, check_isfinite=False)
    np.testing.assert_allclose(norm.asnumpy(), [1], rtol=1e-6)


def test_clip_global_norm_with_an_array_as_max_norm():
    for limit in (mx.nd.array([1.0]), mx.np.array(1.0)):
        arrays = [mx.nd.array([3.0, 4.0])]
        assert utils.clip_global_norm(arrays, limit) == 5.0
        np.testing.assert_allclose(arrays[0].asnumpy(), [0.6, 0.8], rtol=1e-6)


def test_clip_global_norm_keeps_small_norms():
    arrays = [mx.nd.array([3.0, 4.0])]
    utils.clip_global_norm(arrays, 10.0)
    assert arrays[0].asnumpy().tolist() == [3, 4]


def test_clip_global_norm_warns_on_nan_and_inf():
    with pytest.warns(UserWarning, match="nan or inf is detected"):
        utils.clip_global_norm([mx.nd.array([np.inf])], 1.0)


def test_shape_is_known():
    known = utils.shape_is_known
    assert [known(s) for s in ((2, 3), (2, 0), (), None)] == [True, False, False, False]
    with pytest.raises(AssertionError, match="cannot be less than 0, while received -1"):
        known((2, -1))


def test_check_sha1(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"hello")
    assert utils.check_sha1(path, "aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d")
    assert not utils.check_sha1(path, "x")


@pytest.fixture
def site(tmp_path):
    """Serve one file from this machine."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "model.bin").write_bytes(b"weights")
    quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    handler = functools.partial(quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join(120)
    server.server_close()


def test_download_verifies_sha1_and_keeps_valid_files(site, tmp_path):
    sha1 = hashlib.sha1(b"weights").hexdigest()
    folder = tmp_path / "here"
    folder.mkdir()
    path = utils.download(site + "model.bin", path=str(folder), sha1_hash=sha1)
    assert path == str(folder / "model.bin")
    (folder / "model.bin").write_bytes(b"mine")
    assert utils.download(site + "model.bin", path=path) == path
    assert (folder / "model.bin").read_bytes() == b"mine"
    utils.download(site + "model.bin", path=path, sha1_hash=sha1)
    assert (folder / "model.bin").read_bytes() == b"weights"


def test_failed_downloads_leave_no_files(site, tmp_path):
    target = tmp_path / "model.bin"
    with pytest.raises(mx.MXNetError, match="content hash does not match"):
        utils.download(site + "model.bin", path=str(target), sha1_hash="0" * 40, retries=1)
    with pytest.raises(OSError, match="404"):
        utils.download(site + "nothing.bin", path=str(target), retries=0)
    assert not list(tmp_path.glob("*model*"))
    with pytest.raises(ValueError, match="file-name from this URL"):
        utils.download(site)


def test_download_tries_the_next_url_after_a_failure(site, tmp_path, capsys):
    sha1 = hashlib.sha1(b"weights").hexdigest()
    (tmp_path / "other.bin").write_bytes(b"other")
    addresses = [site + "nothing.bin", (tmp_path / "other.bin").as_uri(), site + "model.bin"]
    path = utils.download(addresses, path=str(tmp_path / "target"), sha1_hash=sha1, retries=0)
    assert Path(path).read_bytes() == b"weights"
    said = [line.rsplit(" ", 1)[-1] for line in capsys.readouterr().out.splitlines()]
    assert said == [f"{address}..." for address in addresses]


def test_download_error_names_every_url_and_reason(site, tmp_path):
    addresses = [site + "nothing.bin", "gopher://x/y", (tmp_path / "none").as_uri()]
    with pytest.raises(OSError, match=r"nothing\.bin: 404 .*; gopher.*protocol.*; file:.*No such"):
        utils.download(addresses, path=str(tmp_path / "target"))


def test_download_does_not_retry_missing_local_files(tmp_path, capsys):
    with pytest.raises(OSError, match="No such file"):
        utils.download((tmp_path / "none").as_uri(), path=str(tmp_path / "target"))
    assert "retrying" not in capsys.readouterr().out


def test_gluon_repo_can_be_a_folder_or_a_list(tmp_path, monkeypatch):
    monkeypatch.setenv("MXNET_GLUON_REPO", str(tmp_path))
    assert utils._get_repo_file_url("gluon/dataset", "x") == f"{tmp_path.as_uri()}/gluon/dataset/x"
    monkeypatch.setenv("MXNET_GLUON_REPO", f"{tmp_path}, https://host/mirror/")
    assert utils.repository_addresses("x") == [f"{tmp_path.as_uri()}/x", "https://host/mirror/x"]


def test_hook_handle_detach_and_pickle():
    hooks = type("Hooks", (dict,), {})()
    handle = utils.HookHandle()
    handle.attach(hooks, print)
    with pytest.raises(mx.MXNetError, match="attached twice"):
        handle.attach(hooks, print)
    handle.detach()
    handle.detach()
    assert not hooks
    assert isinstance(pickle.loads(pickle.dumps(utils.HookHandle())), utils.HookHandle)


def test_long_lists_of_names_are_shortened():
    assert utils._brief_print_list("abcdefghij") == "'a', 'b', 'c', ..., 'g', 'h', 'i', 'j'"
    assert utils._brief_print_list("ab") == "'a', 'b'"


def test_downloads_without_verification_warn(tmp_path):
    target = tmp_path / "there"
    target.write_bytes(b"")
    with pytest.warns(UserWarning, match=r"^Unverified HTTPS request is being made \(verify_ssl=F"):
        utils.download("https://localhost/there", path=str(target), verify_ssl=False)


class Views(mx.gluon.HybridBlock):
    """Adds two parameters of different shapes to its input."""

    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.a = self.params.get("a", shape=(2, 2), init="ones")
            self.b = self.params.get("b", shape=(4,), init="ones")

    def hybrid_forward(self, F, x, a, b):
        y = F.reshape(a, shape=(1, 4)) + F.expand_dims(b, axis=0)
        return F.broadcast_add(x, y)


def trained_views(hybridize):
    net = Views()
    net.initialize()
    if hybridize:
        net.hybridize()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0})
    backward(lambda: net(mx.nd.zeros((1, 4))))
    return net, trainer


@pytest.mark.parametrize("hybridize", [False, True])
def test_clip_global_norm_scales_every_gradient_once(hybridize):
    net, trainer = trained_views(hybridize)
    mx.gluon.utils.clip_global_norm([net.a.grad(), net.b.grad()], 1.0)
    check(net.a.grad(), 0.3535534)
    check(net.b.grad(), 0.3535534)
    trainer.step(1)
    check(net.a.data(), 0.6464466)
    check(net.b.data(), 0.6464466)


@pytest.mark.parametrize("hybridize", [False, True])
def test_zero_grad_does_not_change_other_parameters(hybridize):
    net, _ = trained_views(hybridize)
    net.a.zero_grad()
    check(net.a.grad(), 0)
    check(net.b.grad(), 1)
