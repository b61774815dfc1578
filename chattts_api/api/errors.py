"""The one place where exceptions become answers: the OpenAI envelope, on every route."""

import logging
from collections.abc import Mapping
from typing import Final

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match
from starlette.websockets import WebSocket

from chattts_api.errors import (
    ContentTooLargeError,
    InvalidApiKeyError,
    InvalidRequestError,
    MethodNotAllowedError,
    NotFoundError,
    ServerError,
    SpeechError,
)

logger = logging.getLogger(__name__)

METHODS: Final = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")


def envelope(error: SpeechError) -> dict[str, dict[str, str | None]]:
    """The body of an error, all four keys."""
    return {
        "error": {
            "message": error.message,
            "type": error.type,
            "param": error.param,
            "code": error.code,
        }
    }


def error_headers(error: SpeechError) -> dict[str, str]:
    headers: dict[str, str] = {}
    if error.retry_after_s is not None:
        headers["Retry-After"] = str(max(1, error.retry_after_s))
    if isinstance(error, InvalidApiKeyError):
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, ContentTooLargeError):
        headers["Connection"] = "close"  # the rest of the body is not read
    return headers


def error_response(error: SpeechError, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse(
        envelope(error),
        status_code=error.status,
        headers={**error_headers(error), **(headers or {})},
    )


def renamed(error: SpeechError, field: str, here: str) -> SpeechError:
    """The same error where a field goes by another name."""
    if error.param == field:
        error.param = here
        error.message = error.message.replace(field, here, 1)
    return error


def internal_error() -> ServerError:
    """What a caller hears of an exception that nobody expected."""
    return ServerError("Something went wrong in the server. The request id is in x-request-id.")


def install_error_answers(app: FastAPI) -> None:
    """Give every way a route can fail the envelope."""
    app.add_exception_handler(SpeechError, _speech_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _unexpected_error)


async def _speech_error(connection: Request | WebSocket, error: Exception) -> Response:
    assert isinstance(error, SpeechError)
    if isinstance(connection, WebSocket):
        raise error  # the guard refuses the handshake with it
    return error_response(error)


async def _validation_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    details = error.errors()
    location = [str(part) for part in details[0]["loc"]] if details else []
    param = location[1] if len(location) > 1 else None
    message = f"{param} is missing or not valid." if param else "The request is not valid."
    return error_response(InvalidRequestError(message, param=param))


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        allow = ", ".join(_allowed_methods(request))
        return error_response(
            MethodNotAllowedError(f"This route answers to {allow}."), {"Allow": allow}
        )
    return error_response(_translated(error.status_code))


def _translated(status: int) -> SpeechError:
    """For the statuses that the framework itself answers with."""
    if status == 404:
        return NotFoundError("There is no such route.")
    if status == 413:
        return ContentTooLargeError("The request is too large.")
    if status < 500:
        return InvalidRequestError("The request is not valid.")
    return internal_error()


async def _unexpected_error(_request: Request, _error: Exception) -> Response:
    # Starlette raises the exception again after this answer; the guard logs it once.
    return error_response(internal_error())


def _allowed_methods(request: Request) -> list[str]:
    routes = request.app.router.routes
    return [
        method
        for method in METHODS
        if any(r.matches({**request.scope, "method": method})[0] is Match.FULL for r in routes)
    ]
