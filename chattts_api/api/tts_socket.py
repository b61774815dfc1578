"""WS /ws/tts: many requests on one socket, PCM in frames of 20 ms (contract of its messages: docs).

The reader takes messages; each speak message becomes a task. With framing `raw` a task sends
from its start to its end while the others wait for their turn and go on being made; with
`tagged` every frame says whose it is.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Final, Literal

from starlette.websockets import WebSocket

from chattts_api.api.connection import ClientGoneError
from chattts_api.api.errors import renamed
from chattts_api.api.framing import FRAME_MS, Framer
from chattts_api.api.metrics import Account
from chattts_api.api.services import Services, num_dropped
from chattts_api.api.sockets import (
    IDLE,
    IDLE_S,
    RESTART,
    Socket,
    SocketEndedError,
    error_body,
    told,
)
from chattts_api.errors import (
    ConflictError,
    DrainingError,
    InvalidRequestError,
    NotFoundError,
    OverloadedError,
    SpeechError,
)
from chattts_api.request import DEFAULTS
from chattts_api.synthesis import Speech

logger = logging.getLogger(__name__)

MAX_AT_ONCE: Final = 8
MAX_WAITING: Final = 64
MAX_BUFFERED: Final = 6000  # frames that one request may be ahead of its turn: two minutes
_MAX_ID: Final = 64

ReqId = str | int
Framing = Literal["raw", "tagged"]


class _Lane:
    """One request on the socket."""

    def __init__(self, req_id: ReqId, stream: int) -> None:
        self.req_id = req_id
        self.stream = stream
        self.task: asyncio.Task[None] | None = None
        self.has_begun = False
        self.is_cancelled = False


class TtsSocket:
    """One session."""

    def __init__(self, services: Services, socket: Socket) -> None:
        self._services = services
        self._socket = socket
        self._framing: Framing = "raw"
        self._is_configurable = True
        self._is_broken = False
        self._lanes: dict[ReqId, _Lane] = {}
        self._num_streams = 0
        self._places = asyncio.Semaphore(MAX_AT_ONCE)
        self._turn = asyncio.Lock()

    async def run(self) -> None:
        """Serve the session to its end."""
        await self._socket.accept()
        try:
            await self._read_messages()
        except SocketEndedError as end:
            if end.code is not None:
                await self._socket.close(end.code)
        except ClientGoneError:
            self._socket.drop()
        finally:
            await self._stop_all()

    async def _read_messages(self) -> None:
        draining = asyncio.create_task(self._services.admission.draining.wait())
        try:
            while True:
                message = asyncio.create_task(self._next_message())
                try:
                    await self._await_message(message, draining)
                finally:
                    message.cancel()
        finally:
            draining.cancel()

    async def _await_message(
        self, message: asyncio.Task[None], draining: asyncio.Task[Literal[True]]
    ) -> None:
        """Until a message was taken in. Raises SocketEndedError when nothing more will be done."""
        while not message.done():
            busy = [lane.task for lane in self._lanes.values() if lane.task is not None]
            if not busy and (self._is_broken or draining.done()):
                raise SocketEndedError(None if self._is_broken else RESTART)
            ends: set[asyncio.Task[object]] = {message, *busy}
            if not draining.done():
                ends.add(draining)
            timeout_s = None if busy else IDLE_S
            done, _ = await asyncio.wait(
                ends, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                raise SocketEndedError(IDLE)
        message.result()

    async def _next_message(self) -> None:
        try:
            fields = await self._socket.receive()
            await self._take(fields)
        except SpeechError as error:
            await self._socket.send({"type": "error", "req_id": None, **error_body(error)})

    async def _take(self, fields: dict[str, object]) -> None:
        kind = fields.get("type", "speak")
        if kind == "config":
            self._configure(fields)
        elif kind == "cancel":
            await self._cancel(fields)
        elif kind == "speak":
            await self._admit(fields)
        else:
            raise InvalidRequestError("type must be speak, cancel or config.", param="type")
        self._is_configurable = False

    def _configure(self, fields: dict[str, object]) -> None:
        if not self._is_configurable:
            raise InvalidRequestError("config must be the first message.", param="type")
        framing = fields.get("framing", "raw")
        if framing == "raw":
            self._framing = "raw"
        elif framing == "tagged":
            self._framing = "tagged"
        else:
            raise InvalidRequestError("framing must be raw or tagged.", param="framing")

    async def _cancel(self, fields: dict[str, object]) -> None:
        req_id = _req_id(fields)
        lane = self._lanes.get(req_id)
        if lane is None or lane.task is None:
            await self._error(req_id, NotFoundError("No such request runs.", param="req_id"))
            return
        lane.is_cancelled = True
        lane.task.cancel()

    async def _admit(self, fields: dict[str, object]) -> None:
        req_id = _req_id(fields)
        if req_id in self._lanes:
            await self._error(req_id, ConflictError("This req_id is in use.", param="req_id"))
        elif len(self._lanes) >= MAX_AT_ONCE + MAX_WAITING or self._is_broken:
            await self._error(req_id, OverloadedError("Too many requests on this socket."))
        else:
            self._num_streams += 1
            lane = _Lane(req_id, self._num_streams)
            self._lanes[req_id] = lane
            lane.task = asyncio.create_task(self._serve(lane, fields))

    async def _serve(self, lane: _Lane, fields: dict[str, object]) -> None:
        """Speak one request; whatever happens ends in one message of its own."""
        try:
            async with self._places:
                with self._services.metrics.request("socket") as account:
                    await self._speak(lane, fields, account)
        except asyncio.CancelledError:
            if not lane.is_cancelled:
                raise
            await self._last_word({"type": "cancelled", "req_id": lane.req_id})
        except ClientGoneError:
            self._is_broken = True
        except Exception as error:  # noqa: BLE001 - the edge: a request fails alone
            self._is_broken = self._is_broken or lane.has_begun
            error = renamed(told(error), "input", "text")
            message = {"type": "error", "req_id": lane.req_id, **error_body(error)}
            await self._last_word(message)
        finally:
            del self._lanes[lane.req_id]

    async def _last_word(self, message: dict[str, object]) -> None:
        try:
            await self._socket.send(message)
        except ClientGoneError:
            self._is_broken = True

    async def _speak(self, lane: _Lane, fields: dict[str, object], account: Account) -> None:
        services, caller = self._services, self._socket.caller
        with services.admission.inside():
            await services.limits.charge_request(caller)
            given = {**fields, "response_format": "pcm", "input": fields.get("text")}
            request_id = f"{self._socket.request_id}-{lane.stream}"
            request = services.parse(given, caller, request_id, DEFAULTS)
            speech = await services.begin(request, caller, account)
            try:
                async with _buffered(speech) as frames:
                    await self._send_speech(lane, speech, frames)
            finally:
                speech.abort()
            account.spoken(speech.seconds, num_dropped(speech.reading))

    async def _send_speech(self, lane: _Lane, speech: Speech, frames: AsyncIterator[bytes]) -> None:
        if self._framing == "tagged":
            await self._send_frames(lane, speech, frames, lane.stream.to_bytes(4, "big"))
            return
        async with self._turn:
            await self._send_frames(lane, speech, frames, b"")

    async def _send_frames(
        self, lane: _Lane, speech: Speech, frames: AsyncIterator[bytes], tag: bytes
    ) -> None:
        lane.has_begun = True
        await self._socket.send(
            {
                "type": "start",
                "req_id": lane.req_id,
                "stream": lane.stream,
                "sample_rate": speech.plan.request.sample_rate,
                "channels": 1,
                "format": "s16le",
                "frame_ms": FRAME_MS,
                "engine": speech.engine,
                "seed": speech.seed,
            }
        )
        num_frames = 0
        async for frame in frames:
            await self._socket.send_bytes(tag + frame)
            num_frames += 1
        await self._socket.send(
            {
                "type": "end",
                "req_id": lane.req_id,
                "frames": num_frames,
                "seconds": round(speech.seconds, 3),
                "finish_reason": speech.finish_reason,
                "text_dropped": num_dropped(speech.reading),
            }
        )

    async def _error(self, req_id: ReqId, error: SpeechError) -> None:
        await self._socket.send({"type": "error", "req_id": req_id, **error_body(error)})

    async def _stop_all(self) -> None:
        tasks = [lane.task for lane in self._lanes.values() if lane.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def _buffered(speech: Speech) -> AsyncIterator[AsyncIterator[bytes]]:
    """Frames of a speech that goes on being made while its turn has not come."""
    queue: asyncio.Queue[bytes | Exception | None] = asyncio.Queue(MAX_BUFFERED)
    framer = Framer(speech.plan.request.sample_rate)

    async def fill() -> None:
        try:
            async with aclosing(speech.encoded()) as pieces:
                async for data in pieces:
                    for frame in framer.push(data):
                        await queue.put(frame)
            if rest := framer.finish():
                await queue.put(rest)
            await queue.put(None)
        except Exception as error:  # noqa: BLE001 - travels to the one who sends
            await queue.put(error)

    async def take() -> AsyncIterator[bytes]:
        while (item := await queue.get()) is not None:
            if isinstance(item, Exception):
                raise item
            yield item

    filling = asyncio.create_task(fill())
    try:
        yield take()
    finally:
        filling.cancel()
        await asyncio.gather(filling, return_exceptions=True)


def _req_id(fields: dict[str, object]) -> ReqId:
    req_id = fields.get("req_id")
    is_text = isinstance(req_id, str) and 0 < len(req_id) <= _MAX_ID and _is_encodable(req_id)
    is_number = type(req_id) is int and abs(req_id) < 2**53
    if not isinstance(req_id, str | int) or not (is_text or is_number):
        raise InvalidRequestError(
            f"req_id must be a string of 1 to {_MAX_ID} characters.", param="req_id"
        )
    return req_id


def _is_encodable(text: str) -> bool:
    return not any("\ud800" <= c <= "\udfff" for c in text)


async def serve_tts_socket(services: Services, websocket: WebSocket) -> None:
    if services.admission.is_draining:
        raise DrainingError("The server is shutting down.", retry_after_s=5)
    socket = Socket(websocket, stall_timeout_s=services.settings.stall_timeout)
    await TtsSocket(services, socket).run()
