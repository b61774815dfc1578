"""Subtitles of a dialogue: one cue or more for each turn, words at estimated times."""

from collections.abc import Iterable
from typing import Final, Literal, get_args

from chattts_api.audio.subtitles import Cue, lines, to_srt, to_webvtt
from chattts_api.dialogue.conversation import SpokenTurn

SubtitleFormat = Literal["srt", "vtt"]
SUBTITLE_FORMATS: Final[tuple[SubtitleFormat, ...]] = get_args(SubtitleFormat)


def captions(spoken: Iterable[SpokenTurn], kind: SubtitleFormat) -> str:
    """The subtitle file of the turns that have been spoken."""
    cues = [
        line
        for turn in spoken
        for line in lines(Cue(turn.start_s, turn.end_s, turn.text, turn.role))
    ]
    return to_srt(cues) if kind == "srt" else to_webvtt(cues)
