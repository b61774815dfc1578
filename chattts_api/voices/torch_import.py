"""Voices from .pt files, offline only: the command line calls this, no route does."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from chattts_api.errors import InvalidSpeakerError
from chattts_api.voices import torch_reader
from chattts_api.voices.codes import decode_speaker
from chattts_api.voices.vector import SpeakerVector, as_speaker

_TIMEOUT_S = 90


def read_torch_file(path: Path) -> SpeakerVector:
    """The speaker of a .pt file, read in a process whose memory and time are bounded.

    Raises:
        InvalidSpeakerError: the file holds something else, or its reader had to be stopped.
    """
    answer = _ask_reader(path)
    if isinstance(answer.get("code"), str):
        return decode_speaker(answer["code"].strip())
    if isinstance(answer.get("values"), list):
        return as_speaker(answer["values"])
    reason = answer.get("error", "reading it took too much memory or time")
    raise InvalidSpeakerError(f"The .pt file cannot be used: {reason}.", param="file")


def _ask_reader(path: Path) -> dict[str, Any]:
    try:
        process = subprocess.run(  # noqa: S603  our own interpreter and script, no shell
            [sys.executable, "-I", torch_reader.__file__, str(path.resolve(strict=True))],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=True,
        )
        answer = json.loads(process.stdout)
    except FileNotFoundError as error:
        raise InvalidSpeakerError("There is no such .pt file.", param="file") from error
    except (subprocess.SubprocessError, ValueError):
        return {}
    return answer if isinstance(answer, dict) else {}
