"""What may be received: headers, addresses and bodies, by size, form and time."""

import asyncio
from typing import Final

from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope

from chattts_api.api.guard.policy import MAX_HEADERS, MAX_URL
from chattts_api.errors import (
    ContentTooLargeError,
    InvalidRequestError,
    RequestTimeoutError,
    SpeechError,
    UnsupportedMediaTypeError,
)

LINGER_S: Final = 2.0
MAX_LINGER: Final = 64 * 1024 * 1024


def check_head(scope: Scope) -> None:
    """Raises InvalidRequestError where the address or the headers are too large."""
    num_bytes = sum(len(name) + len(value) + 4 for name, value in scope["headers"])
    if num_bytes > MAX_HEADERS:
        raise InvalidRequestError(f"The headers are larger than {MAX_HEADERS} bytes.")
    if len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"") > MAX_URL:
        raise InvalidRequestError(f"The address is longer than {MAX_URL} bytes.")


def check_body_headers(headers: Headers, max_bytes: int) -> None:
    """Raises before a byte of the body is read."""
    if headers.get("content-encoding", "identity").strip().lower() not in {"identity", ""}:
        raise UnsupportedMediaTypeError("Compressed bodies are not read here.")
    length = headers.get("content-length")
    if length is None:
        return
    if not (length.isascii() and length.isdigit()) or len(length) > 18:
        raise ContentTooLargeError(f"The body is larger than {max_bytes} bytes.")
    if int(length) > max_bytes:
        raise ContentTooLargeError(f"The body is larger than {max_bytes} bytes.")


async def discard(receive: Receive) -> None:
    """Read on for a moment: closing while a client still sends would lose the answer to it."""
    num_bytes = 0
    try:
        async with asyncio.timeout(LINGER_S):
            while num_bytes < MAX_LINGER:
                message = await receive()
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return
                num_bytes += len(message.get("body", b""))
    except TimeoutError:
        return


class BoundedBody:
    """`receive` with a bound on the body's bytes and on the time until its end.

    What went wrong stays in `error`: an application may make something else of the exception.
    """

    def __init__(self, receive: Receive, *, max_bytes: int, timeout_s: float) -> None:
        self._receive = receive
        self._max_bytes = max_bytes
        self._left_s = timeout_s
        self._num_bytes = 0
        self._is_whole = False
        self.error: SpeechError | None = None

    async def __call__(self) -> Message:
        if self._is_whole:
            return await self._receive()
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        try:
            async with asyncio.timeout(self._left_s):
                message = await self._receive()
        except TimeoutError:
            self.error = RequestTimeoutError("The request took too long to arrive.")
            raise self.error from None
        self._left_s -= loop.time() - began_s
        if message["type"] == "http.request":
            self._num_bytes += len(message.get("body", b""))
            if self._num_bytes > self._max_bytes:
                self.error = ContentTooLargeError(
                    f"The body is larger than {self._max_bytes} bytes."
                )
                raise self.error
            self._is_whole = not message.get("more_body", False)
        else:
            self._is_whole = True
        return message
