"""The OpenAPI document: what the routes cannot say of themselves, bodies, errors and keys."""

from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

REFERENCE: Final = "#/components/schemas/{model}"
_ERROR: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            },
        }
    },
}
_ERROR_ANSWER: Final[dict[str, Any]] = {
    "description": "An error, as OpenAI writes it.",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
}


def described_body(model: type[BaseModel]) -> dict[str, Any]:
    """A JSON body of this model. The route reads it itself; this is for the document only."""
    schema = model.model_json_schema(by_alias=True, ref_template=REFERENCE)
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def described_answer(
    *media_types: str, schema: dict[str, Any] | None = None
) -> dict[int | str, Any]:
    """The one good answer of a route."""
    media: dict[str, Any] = {} if schema is None else {"schema": schema}
    return {200: {"description": "Done.", "content": dict.fromkeys(media_types, media)}}


def install_openapi(app: FastAPI) -> None:
    """Replace the application's own document by the completed one, built at its first use."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(title=app.title, version=app.version, routes=app.routes)
            app.openapi_schema = _completed(schema)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _completed(document: dict[str, Any]) -> dict[str, Any]:
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    schemas["Error"] = _ERROR
    components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"key": []}]
    for operations in document["paths"].values():
        for operation in operations.values():
            _hoist(operation, schemas)
            operation["responses"].pop("422", None)
            operation["responses"]["4XX"] = _ERROR_ANSWER
            operation["responses"]["5XX"] = _ERROR_ANSWER
    schemas.pop("HTTPValidationError", None)
    schemas.pop("ValidationError", None)
    return document


def _hoist(operation: dict[str, Any], schemas: dict[str, Any]) -> None:
    """Definitions that came with a body's schema go where references look for them."""
    content = operation.get("requestBody", {}).get("content", {})
    for media in content.values():
        schemas.update(media["schema"].pop("$defs", {}))
