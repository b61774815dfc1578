"""Request bodies as JSON objects, or typed errors: never an exception of the parser's."""

import json
from typing import NoReturn

from starlette.requests import Request

from chattts_api.errors import InvalidJsonError, InvalidRequestError, UnsupportedMediaTypeError

_NOT_JSON = "The body is not valid JSON in UTF-8."


def parse_json_object(data: bytes | str) -> dict[str, object]:
    """Parse a JSON object. NaN and infinities pass here: the field they stand in is named later.

    Raises:
        InvalidJsonError: not JSON, not UTF-8, too deep, or a name given twice.
        InvalidRequestError: JSON, but not an object.
    """
    try:
        text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
        value = json.loads(text, object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError):
        raise InvalidJsonError(_NOT_JSON) from None
    if not isinstance(value, dict):
        raise InvalidRequestError("The body must be a JSON object.")
    return value


async def read_json_object(request: Request) -> dict[str, object]:
    """The body of a JSON request. A missing content type is taken for JSON."""
    content_type = request.headers.get("content-type", "application/json")
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type != "application/json" and not media_type.endswith("+json"):
        raise UnsupportedMediaTypeError("The content type must be application/json.")
    return parse_json_object(await request.body())


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        _refuse_duplicate()
    return result


def _refuse_duplicate() -> NoReturn:
    raise ValueError("duplicate name")
