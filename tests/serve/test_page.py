"""The page in a real browser: models, images, numbers, keys, a phone, and its policy."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from mxnet.formats.image_codec import encode

from .browser import browsing, find_chromium
from .server import NPY, npy

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed"),
]
SHOTS = os.environ.get("MX_SERVE_SHOTS")  # a folder for screenshots, to look at


@pytest.fixture(scope="module")
def page():
    with browsing() as page:
        yield page


def shoot(page, name: str) -> None:
    if SHOTS:
        page.screenshot(Path(SHOTS, f"{name}.png"))


def choose(page, number: int) -> None:
    page.run(
        f"byId('model').selectedIndex = {number}; byId('model').dispatchEvent(new Event('change'))"
    )


RESULT = "document.querySelector('#result').textContent"


def test_the_page(both, page, tmp_path):
    page.resize(1200, 900)
    page.open(both.url + "/")
    page.wait("byId('state').textContent === 'ready'")
    assert page.run("byId('title').textContent") == "dense"

    # numbers, sent by the keyboard
    page.run("byId('numbers').value = '1 2 3 4 5'; byId('numbers').focus()")
    page.press("Enter", 13, modifiers=2)
    page.wait("document.querySelectorAll('.bars li').length === 2")
    shoot(page, "numbers")

    # numbers that are none
    page.run("byId('numbers').value = '[1, oops'; predict()")
    page.wait(f"{RESULT}.includes('not numbers')")
    page.run("byId('numbers').value = '[[1, 2]]'; predict()")
    page.wait("document.querySelector('.error') && !document.querySelector('.bars')")

    # an image, larger than the server takes: it is made smaller
    choose(page, 1)
    assert page.run("byId('title').textContent") == "animals"
    picture = tmp_path / "picture.png"
    pixels = np.random.default_rng(0).integers(0, 255, (75, 75, 3), dtype=np.uint8)
    picture.write_bytes(encode(np.kron(pixels, np.ones((20, 20, 1), np.uint8)), 3, ".png"))
    page.choose_file("#file", picture)
    page.wait("document.querySelectorAll('.bars li').length === 3")
    names = "[...document.querySelectorAll('.bars .name')].map((n) => n.textContent)"
    assert sorted(page.run(names)) == ["cat", "dog", "owl"]
    assert page.run("byId('preview').naturalWidth") == 1500
    page.wait("document.querySelectorAll('#plot rect').length >= 2")
    assert "median" in page.run("byId('latency').textContent")
    shoot(page, "image")

    # a file of numbers
    page.choose_file("#file", _save(tmp_path))
    page.wait(f"{RESULT}.includes('sample 2')")

    # a phone: nothing is wider than the screen, and buttons are large enough for a finger
    page.resize(390, 844, is_mobile=True)
    page.run("byId('random').click()")
    page.wait("document.querySelectorAll('.bars li').length === 3")
    assert page.run("document.documentElement.scrollWidth") <= 390
    assert page.run("byId('predict').getBoundingClientRect().height") >= 44
    shoot(page, "phone")

    # every control can be reached by the keyboard
    page.run("document.activeElement.blur()")
    reached = []
    for _ in range(12):
        page.press("Tab", 9)
        reached.append(page.run("document.activeElement.id"))
    assert {"model", "file", "numbers", "predict", "random", "view"} <= set(reached), reached
    bad = [p for p in page.problems if "400" not in p]  # the wrong numbers were refused
    assert bad == []


def test_the_page_counts_requests_of_others_and_shows_a_command_that_runs(dense, page):
    assert dense.post(npy(np.zeros((1, 5), "f4")), NPY).code == 200
    page.problems.clear()
    for width in (1200, 390):
        page.resize(width, 844, is_mobile=width < 400)
        page.open(dense.url + "/")
        page.wait("/^[1-9][0-9,]* requests? to this model/.test(byId('total').textContent)")
        assert page.run("byId('code').scrollWidth <= byId('code').clientWidth")
    shoot(page, "command")
    command, _, program = page.run("byId('code').textContent").partition("\n\n")
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    ((row,),) = json.loads(done.stdout)["outputs"].values()
    assert len(row) == 2
    assert program.startswith("import mxnet as mx") and dense.url in program
    before = page.run("byId('total').textContent")
    page.run("byId('predict').click()")
    page.wait(f"byId('total').textContent !== '{before}'")
    assert page.run("byId('latency').textContent").startswith("last ")
    assert page.problems == []


def _save(folder: Path) -> Path:
    path = folder / "two.npy"
    np.save(path, np.zeros((2, 3, 32, 32), "f4"))
    return path


def test_layers_in_the_viewer(both, page):
    page.resize(1200, 900)
    page.problems.clear()
    page.open(both.url + "/view?model=animals")
    page.wait("document.querySelectorAll('svg').length > 0")
    shoot(page, "view")
    assert page.problems == []


def test_content_security_policy_blocks_injected_scripts(both, page):
    policy = both.get("/").headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    page.open(both.url + "/")
    page.run(
        "const script = document.createElement('script'); script.textContent = 'window.bad = 1';"
        "document.body.append(script)"
    )
    assert page.run("window.bad === undefined")
    page.problems.clear()


def test_the_page_asks_for_a_token(page, tmp_path):
    from .server import DENSE, serving

    with serving(DENSE, "--shape=5", "--token=abc") as server:
        page.open(server.url + "/")
        page.wait("!byId('token-form').hidden")
        shoot(page, "token")
        page.run("byId('token').value = 'abc'; byId('token-form').requestSubmit()")
        page.wait("byId('state').textContent === 'ready'")
        page.run("predict()")
        page.wait("document.querySelectorAll('.bars li').length === 2")
    assert json.loads(json.dumps(page.run("byId('numbers').value"))) == "[0,0,0,0,0]"
