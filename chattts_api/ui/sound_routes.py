"""GET /ui/sounds/{id}.{format}: a sound of the page, live while it is being made."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final, get_args

import numpy as np
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from chattts_api.audio.encoder import Encoder, open_encoder
from chattts_api.errors import NotFoundError
from chattts_api.types import SAMPLE_RATE, AudioFormat
from chattts_api.ui.access import Access
from chattts_api.ui.sounds import Sound, SoundShelf

FORMATS: Final[tuple[AudioFormat, ...]] = get_args(AudioFormat)


def sound_routes(shelf: SoundShelf, access: Access) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    async def play(request: Request, name: str) -> Response:
        sound_id, _, suffix = name.rpartition(".")
        audio_format = next((f for f in FORMATS if f == suffix), None)
        if audio_format is None:
            raise NotFoundError("No such sound.")
        sound = shelf.find(sound_id, access.owner(request.scope))
        headers = {"cache-control": "private, no-store", "x-content-type-options": "nosniff"}
        if "download" in request.query_params:
            headers["content-disposition"] = (
                f'attachment; filename="speech-{sound_id[:8]}.{suffix}"'
            )
        if audio_format == "pcm":
            return StreamingResponse(
                sound.follow(), media_type="application/octet-stream", headers=headers
            )
        encoder = open_encoder(audio_format, sample_rate=SAMPLE_RATE)
        return StreamingResponse(
            _encoded(sound, encoder), media_type=encoder.content_type, headers=headers
        )

    router.add_api_route("/sounds/{name}", play, methods=["GET"])
    return router


async def _encoded(sound: Sound, encoder: Encoder) -> AsyncGenerator[bytes]:
    odd = b""  # a read may end inside a sample
    async with aclosing(sound.follow()) as pieces:
        async for piece in pieces:
            data = odd + piece
            whole = len(data) // 2 * 2
            odd = data[whole:]
            samples = np.frombuffer(data[:whole], "<i2").astype(np.float32) / np.float32(32767)
            if encoded := encoder.encode(samples):
                yield encoded
    if encoded := encoder.finish():
        yield encoded
