"""The JSON of `POST /v1/audio/dialogue`, beside the common fields of a speech request."""

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from chattts_api.types import AudioFormat

_CONFIG: Final = ConfigDict(
    strict=True, extra="ignore", allow_inf_nan=False, frozen=True, hide_input_in_errors=True
)


class TurnFields(BaseModel):
    model_config = _CONFIG

    role: str = ""
    text: str
    pause: float | None = Field(None, ge=0, le=10)


class MusicFields(BaseModel):
    model_config = _CONFIG

    data: str
    level_db: float = Field(-8.0, ge=-60, le=0)
    duck_db: float = Field(-10.0, ge=-60, le=0)


class DialogueFields(BaseModel):
    """What the route takes beside the common fields of a speech request."""

    model_config = _CONFIG

    script: str | None = Field(None, description="a string of `name: text` lines")
    turns: list[TurnFields] | None = Field(
        None, max_length=500, description='a list of at most 500 {"role", "text", "pause"}'
    )
    roles: dict[str, dict[str, object]] = Field(
        default_factory=dict,
        max_length=32,
        description="an object of at most 32 roles, each an object of speech fields",
    )
    gap: float = Field(0.4, ge=0, le=10, description="a number from 0 to 10")
    response_format: AudioFormat = Field("mp3", description="one of mp3, opus, aac, flac, wav, pcm")
    sample_rate: Literal[8000, 16000, 22050, 24000, 44100, 48000] = Field(
        24000, description="one of 8000, 16000, 22050, 24000, 44100, 48000"
    )
    subtitles: Literal["none", "srt", "vtt"] = Field("none", description="one of none, srt, vtt")
    stream_format: Literal["audio", "sse"] = Field("audio", description="audio or sse")
    music: MusicFields | None = Field(
        None, description='an object {"data": base64, "level_db", "duck_db"}'
    )

    @property
    def is_sse(self) -> bool:
        """Subtitles travel beside the sound, so they make events of it."""
        return self.stream_format == "sse" or self.subtitles != "none"
