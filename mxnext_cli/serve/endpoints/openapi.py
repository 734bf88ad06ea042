"""The OpenAPI document of a server, with the inputs of its models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..payloads.decoding import JSON, NPY, NPZ, SAFETENSORS
from ..payloads.open_inference import DATATYPES

if TYPE_CHECKING:
    from ..models.repository import LoadedModel

Schema = dict[str, Any]
OBJECT: Schema = {"type": "object"}
BYTES: Schema = {"type": "string", "format": "binary"}
ERROR: Schema = {"type": "object", "properties": {"error": {"type": "string"}}}
CODES = {
    "400": "The request is not one that the model can take.",
    "401": "The token is missing or wrong.",
    "403": "A page of another site asked.",
    "404": "There is no such model, version or path.",
    "408": "The request did not arrive in time.",
    "413": "The body is larger than the model's inputs can be.",
    "415": "The content type is not taken.",
    "421": "The name in the Host header is not served.",
    "503": "Too much waits, or the server is stopping; try again.",
    "504": "The model did not answer in time.",
}


def array_schema(shape: Sequence[int] | None) -> Schema:
    """Return the schema of nested lists of a shape, with a batch axis."""
    if shape is None:
        return {"type": "array", "items": {}}
    schema: Schema = {"type": "number"}
    for size in reversed(shape):
        schema = {"type": "array", "items": schema, "minItems": size, "maxItems": size}
    return {"type": "array", "items": schema, "minItems": 1}


def describe_api(models: Sequence[LoadedModel], needs_token: bool) -> Schema:
    """Return the document for the models that are served."""
    paths: Schema = {
        "/health": {"get": _get("Whether models can answer.")},
        "/v2/health/live": {"get": _get("Whether the server runs.")},
        "/v2/health/ready": {"get": _get("Whether requests are taken.")},
        "/metrics": {"get": _get("Numbers for Prometheus.", "text/plain")},
        "/model": {"get": _get("What the first model takes and gives.")},
        "/models": {"get": _get("What all models take and give.")},
        "/v2": {"get": _get("The name of the server and its extensions.")},
        "/v2/repository/index": {"post": _operation("All models and their versions.", None)},
    }
    if models:
        paths["/predict"] = {"post": _predict(models[0])}
    for model in models:
        name = model.name
        paths[f"/predict/{name}"] = {"post": _predict(model)}
        paths[f"/v1/models/{name}"] = {"get": _get("The versions of the model.")}
        paths[f"/v1/models/{name}:predict"] = {"post": _operation(
            "Predict a list of samples.", {JSON: _instances(model)})}  # fmt: skip
        paths[f"/v2/models/{name}"] = {"get": _get("The inputs and outputs of the model.")}
        paths[f"/v2/models/{name}/ready"] = {"get": _get("Whether the model takes requests.")}
        paths[f"/v2/models/{name}/infer"] = {
            "post": _operation("Predict, in the open inference protocol.", {JSON: _infer(model)})
        }
    document: Schema = {
        "openapi": "3.1.0",
        "info": {"title": "mx serve", "version": "1", "description": "Models of MXNext."},
        "paths": paths,
    }
    if needs_token:
        document["components"] = {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}
        }
        document["security"] = [{"token": []}]
    return document


def _get(summary: str, kind: str = JSON) -> Schema:
    return _operation(summary, None, kind)


def _operation(summary: str, bodies: dict[str, Schema] | None, kind: str = JSON) -> Schema:
    """Return an operation; every one can be answered with the same errors."""
    schema: Schema = {} if kind == JSON else {"type": "string"}
    answer = {"description": "The answer.", "content": {kind: {"schema": schema}}}
    responses: Schema = {"200": answer}
    responses |= {
        code: {"description": text, "content": {JSON: {"schema": ERROR}}}
        for code, text in CODES.items()
    }
    operation: Schema = {"summary": summary, "responses": responses}
    if bodies is not None:
        content = {name: {"schema": body} for name, body in bodies.items()}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _named(model: LoadedModel) -> Schema:
    decoder = model.decoder
    properties = {name: array_schema(decoder.shapes.get(name)) for name in decoder.inputs}
    return {
        "type": "object",
        "properties": properties,
        "required": decoder.inputs,
        "additionalProperties": False,
    }


def _predict(model: LoadedModel) -> Schema:
    form = {"type": "object", "properties": {"image": BYTES}}
    inputs = {"type": "object", "properties": {"inputs": _named(model)}, "required": ["inputs"]}
    bodies: dict[str, Schema] = {JSON: inputs, NPY: BYTES, NPZ: BYTES, SAFETENSORS: BYTES}
    bodies |= {"image/jpeg": BYTES, "image/png": BYTES, "multipart/form-data": form}
    operation = _operation("Predict.", bodies)
    accepted = operation["responses"]["200"]["content"]
    accepted |= {kind: {"schema": BYTES} for kind in (NPY, NPZ, SAFETENSORS)}
    operation["parameters"] = [
        {
            "name": "top",
            "in": "query",
            "description": "How many of the best classes of each sample the answer names.",
            "schema": {"type": "integer", "minimum": 0, "maximum": 999_999},
        }
    ]
    return operation


def _instances(model: LoadedModel) -> Schema:
    sample = array_schema(model.decoder.shapes.get(model.decoder.default))
    return {"type": "object", "properties": {"instances": sample}, "required": ["instances"]}


def _infer(model: LoadedModel) -> Schema:
    tensor = {
        "type": "object",
        "properties": {
            "name": {"enum": model.decoder.inputs},
            "shape": {"type": "array", "items": {"type": "integer", "minimum": 1}},
            "datatype": {"enum": list(DATATYPES)},
            "data": {"type": "array", "items": {"type": "number"}},
        },
        "required": ["name", "shape", "datatype", "data"],
    }
    properties = {
        "id": {"type": "string"},
        "inputs": {"type": "array", "items": tensor, "minItems": 1},
    }
    return {"type": "object", "properties": properties, "required": ["inputs"]}
