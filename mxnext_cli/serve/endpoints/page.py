"""The page at `/`, and the page that shows the layers of a model."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from starlette.responses import Response

from mxnet.visualization.page import page_text

if TYPE_CHECKING:
    from ..models.repository import LoadedModel

POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "img-src 'self' blob: data:; connect-src 'self'; script-src {script}; style-src {style}"
)
FILES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
}
SCRIPT = re.compile(r"<script(?![^>]*application/json)[^>]*>(.*?)</script>", re.DOTALL)


@dataclass(frozen=True)
class Asset:
    """A file that browsers get, with the policy of what it may do."""

    content: bytes
    kind: str
    policy: str

    def response(self) -> Response:
        """Return the answer."""
        headers = {
            "content-type": self.kind,
            "content-security-policy": self.policy,
            "referrer-policy": "no-referrer",
            "cache-control": "no-cache",
            "cross-origin-opener-policy": "same-origin",
            "cross-origin-resource-policy": "same-origin",
        }
        return Response(self.content, headers=headers)

    @classmethod
    def of_model(cls, model: LoadedModel) -> Asset:
        """Return the page of a model's layers; only its own scripts run, known by their hashes."""
        shapes = {n: (1, *s) for n, s in model.decoder.shapes.items()}
        complete = set(shapes) >= set(model.model.inputs)
        known = model.model.complete_shapes(shapes) if complete else {}
        text = page_text(model.model.symbol, known, model.model.parameters, model.name)
        hashes = (_hash(script) for script in SCRIPT.findall(text))
        policy = POLICY.format(script=" ".join(hashes), style="'unsafe-inline'")
        return cls(text.encode(), FILES["/"][1], policy)


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def read_assets() -> dict[str, Asset]:
    """Return the files of the page."""
    folder = resources.files(__name__.rpartition(".")[0]) / "assets"
    policy = POLICY.format(script="'self'", style="'self'")
    return {
        path: Asset((folder / name).read_bytes(), kind, policy)
        for path, (name, kind) in FILES.items()
    }
