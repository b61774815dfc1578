"""WS /v1/audio/speech/stream: text in while it is being written, one sound out.

Three parts run side by side: the reader takes messages and cuts the text into sentences, the
planner has the next sentences made, and the sender sends them in order through one encoder.
"""

import asyncio
import logging
import secrets
from collections.abc import Iterable
from contextlib import aclosing
from typing import Final

from starlette.websockets import WebSocket

from chattts_api.api.connection import ClientGoneError
from chattts_api.api.metrics import Account
from chattts_api.api.services import Services, num_dropped
from chattts_api.api.sockets import (
    IDLE,
    IDLE_S,
    INTERNAL,
    NORMAL,
    POLICY,
    RESTART,
    TOO_BIG,
    Socket,
    SocketEndedError,
    error_body,
    told,
)
from chattts_api.audio.encoder import Encoder, open_encoder
from chattts_api.errors import InputTooLongError, InvalidRequestError, SpeechError
from chattts_api.request import DEFAULTS, MAX_SEED
from chattts_api.synthesis import Speech
from chattts_api.text.sentences import SentenceBuffer
from chattts_api.types import SpeechRequest

logger = logging.getLogger(__name__)

CONFIG_S: Final = 10.0
CLAUSE_S: Final = 1.0
MAX_CHARACTERS: Final = 50_000
MAX_AHEAD: Final = 2  # sentences that are being made while one is being sent

_Piece = tuple[str, Speech | SpeechError]


class _SessionFullError(InputTooLongError):
    """More text came than a session takes."""


class StreamSession:
    """One session: one voice, one format, one encoder."""

    def __init__(self, services: Services, socket: Socket, account: Account) -> None:
        self._services = services
        self._socket = socket
        self._account = account
        self._fields: dict[str, object] = {}
        self._encoder: Encoder | None = None
        self._request: SpeechRequest | None = None
        self._buffer = SentenceBuffer()
        self._num_characters = 0
        self._num_segments = 0
        self._seconds = 0.0
        self._tokens = [0, 0]
        self._has_sound = False
        self._sentences: asyncio.Queue[str | None] = asyncio.Queue()
        self._pieces: asyncio.Queue[_Piece | None] = asyncio.Queue(MAX_AHEAD)

    async def run(self) -> None:
        """Serve the session to its end. Raises SocketEndedError with the close code."""
        await self._configure()
        parts = [
            asyncio.create_task(self._read()),
            asyncio.create_task(self._make()),
            asyncio.create_task(self._send_all()),
        ]
        draining = asyncio.create_task(self._services.admission.draining.wait())
        try:
            await self._until_sent(parts, draining)
        finally:
            draining.cancel()
            for part in parts:
                part.cancel()
            await asyncio.gather(*parts, draining, return_exceptions=True)
            self._drop_pieces()

    async def _until_sent(
        self, parts: list[asyncio.Task[None]], draining: asyncio.Task[bool]
    ) -> None:
        """Wait for the sender; the other two may only end before it, or fail."""
        sender = parts[-1]
        waiting: set[asyncio.Task[object]] = {*parts, draining}
        while not sender.done():
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for part in done:
                if not part.cancelled():
                    part.result()
            if draining in done:  # what has been heard so far is spoken
                parts[0].cancel()
                self._end_input()
        sender.result()
        raise SocketEndedError(RESTART if draining.done() else NORMAL)

    async def _configure(self) -> None:
        try:
            async with asyncio.timeout(CONFIG_S):
                message = await self._socket.receive()
        except TimeoutError:
            raise SocketEndedError(IDLE) from None
        if message.get("type") != "session.config":
            raise InvalidRequestError("The first message must be session.config.", param="type")
        nested = message.get("session")
        given = nested if isinstance(nested, dict) else message
        self._fields = {k: v for k, v in given.items() if k != "type" and v is not None}
        self._fields.setdefault("response_format", "pcm")
        self._fields.setdefault("seed", secrets.randbelow(MAX_SEED))
        request = self._parse("config", "")
        self._request = request
        self._encoder = open_encoder(request.response_format, sample_rate=request.sample_rate)
        await self._socket.send({"type": "session.created", "seed": request.seed})

    def _parse(self, text: str, suffix: str) -> SpeechRequest:
        request_id = f"{self._socket.request_id}{suffix}"
        fields = {**self._fields, "input": text}
        return self._services.parse(fields, self._socket.caller, request_id, DEFAULTS)

    # ---- the reader

    async def _read(self) -> None:
        is_open = True
        while is_open:
            try:
                message = await self._next_message()
                if message is not None:
                    is_open = self._take(message)
            except _SessionFullError:
                raise
            except SpeechError as error:
                await self._tell(error)

    async def _next_message(self) -> dict[str, object] | None:
        """The next message, or None where a complete clause has waited long enough."""
        waited_s = 0.0
        receiving = asyncio.ensure_future(self._socket.receive())
        try:
            while True:
                await asyncio.wait({receiving}, timeout=CLAUSE_S)
                if receiving.done():
                    return receiving.result()
                self._say(self._buffer.take_clause())
                waited_s = 0.0 if self._is_speaking() else waited_s + CLAUSE_S
                if waited_s >= IDLE_S:
                    raise SocketEndedError(IDLE)
        finally:
            receiving.cancel()

    def _is_speaking(self) -> bool:
        return not self._sentences.empty() or not self._pieces.empty()

    def _take(self, message: dict[str, object]) -> bool:
        """Whether more may come."""
        kind = message.get("type")
        if kind == "input.text":
            text = message.get("text")
            if not isinstance(text, str):
                raise InvalidRequestError("text must be a string.", param="text")
            self._num_characters += len(text)
            if self._num_characters > MAX_CHARACTERS:
                raise _SessionFullError(
                    f"A session takes {MAX_CHARACTERS} characters.", param="text"
                )
            self._say(self._buffer.push(text))
        elif kind == "input.flush":
            self._say(self._buffer.flush())
        elif kind in {"input.done", "session.close"}:
            self._end_input()
            return False
        elif kind == "session.cancel":
            raise SocketEndedError(NORMAL)
        else:
            raise InvalidRequestError("This type of message is not known.", param="type")
        return True

    def _say(self, sentences: Iterable[str]) -> None:
        for sentence in sentences:
            self._sentences.put_nowait(sentence)

    def _end_input(self) -> None:
        self._say(self._buffer.flush())
        self._sentences.put_nowait(None)

    # ---- the planner

    async def _make(self) -> None:
        """Have each sentence begun, a few ahead of what is being sent."""
        number = 0
        while (sentence := await self._sentences.get()) is not None:
            number += 1
            try:
                request = self._parse(sentence, f"-{number}")
                speech = await self._services.begin(request, self._socket.caller, self._account)
            except SpeechError as error:
                await self._pieces.put((sentence, error))
            else:
                try:
                    await self._pieces.put((sentence, speech))
                except asyncio.CancelledError:
                    speech.abort()
                    raise
        await self._pieces.put(None)

    def _drop_pieces(self) -> None:
        while not self._pieces.empty():
            piece = self._pieces.get_nowait()
            if piece is not None and isinstance(piece[1], Speech):
                piece[1].abort()

    # ---- the sender

    async def _send_all(self) -> None:
        while (piece := await self._pieces.get()) is not None:
            sentence, speech = piece
            if isinstance(speech, SpeechError):
                await self._skip(speech)
            else:
                await self._send_segment(sentence, speech)
        assert self._encoder is not None
        if tail := self._encoder.finish():
            await self._socket.send_bytes(tail)
        usage = {
            "input_tokens": self._tokens[0],
            "output_tokens": self._tokens[1],
            "total_tokens": sum(self._tokens),
        }
        await self._socket.send(
            {
                "type": "session.done",
                "seconds": round(self._seconds, 3),
                "usage": usage,
            }
        )

    async def _skip(self, error: SpeechError) -> None:
        """One sentence is not spoken: the session goes on if the fault is the sentence's."""
        await self._tell(error)
        if error.status >= 500:
            self._account.fail(error)
            raise SocketEndedError(None if self._has_sound else INTERNAL)

    async def _send_segment(self, sentence: str, speech: Speech) -> None:
        segment, self._num_segments = self._num_segments, self._num_segments + 1
        request = speech.plan.request
        await self._socket.send(
            {
                "type": "audio.start",
                "segment": segment,
                "text": sentence,
                "format": request.response_format,
                "sample_rate": request.sample_rate,
                "channels": 1,
            }
        )
        done: dict[str, object] = {"type": "audio.done", "segment": segment}
        try:
            num_bytes = await self._send_sound(speech)
        except ClientGoneError:
            raise
        except Exception as error:  # noqa: BLE001 - the edge: told, then the connection breaks
            await self._socket.send({**done, "total_bytes": 0, "error": True})
            self._account.fail(told(error))
            await self._tell(told(error), partial=True)
            raise SocketEndedError(None) from None
        finally:
            speech.abort()
        self._seconds += speech.seconds
        self._tokens[0] += speech.usage.input_tokens
        self._tokens[1] += speech.usage.output_tokens
        self._account.spoken(speech.seconds, num_dropped(speech.reading))
        await self._socket.send({**done, "total_bytes": num_bytes, "error": False})

    async def _send_sound(self, speech: Speech) -> int:
        assert self._encoder is not None
        num_bytes = 0
        async with aclosing(aiter(speech)) as pieces:
            async for samples in pieces:
                self._has_sound = True
                if data := self._encoder.encode(samples):
                    await self._socket.send_bytes(data)
                    num_bytes += len(data)
        return num_bytes

    async def _tell(self, error: SpeechError, *, partial: bool = False) -> None:
        await self._socket.send(
            {
                "type": "error",
                **error_body(error),
                "partial_audio": partial,
            }
        )


async def serve_stream_socket(services: Services, websocket: WebSocket) -> None:
    """One session, counted as one request."""
    socket = Socket(websocket, stall_timeout_s=services.settings.stall_timeout)
    code: int | None = None
    with services.metrics.request("stream") as account, services.admission.inside():
        await socket.accept()
        try:
            await StreamSession(services, socket, account).run()
        except SocketEndedError as end:
            code = end.code
            if code is None and account.outcome == "ok":
                account.cancel()
        except ClientGoneError:
            account.cancel()
        except _SessionFullError as error:
            account.fail(error)
            await _say_no(socket, error)
            code = TOO_BIG
        except SpeechError as error:
            account.fail(error)
            await _say_no(socket, error)
            code = POLICY
    if code is None:
        socket.drop()
    else:
        await socket.close(code)


async def _say_no(socket: Socket, error: SpeechError) -> None:
    try:
        await socket.send({"type": "error", **error_body(error), "partial_audio": False})
    except ClientGoneError:
        socket.drop()
