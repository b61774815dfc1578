"""A process of its own that reads one .pt file: `python -I torch_reader.py FILE`.

It bounds its own memory and time before it looks at the file, unpickles weights only, and answers
one line of JSON: {"values": [...]}, {"code": "..."} or {"error": "..."}. It imports nothing of the
product, so that it runs in isolated mode.
"""

import json
import pickle
import sys
import zipfile
from pathlib import Path
from typing import Any

MAX_FILE_BYTES = 1 << 20
MAX_UNPACKED_BYTES = 4 << 20
MEMORY_BYTES = 4 << 30
CPU_S = 60
SPEAKER_SIZE = 768


class UnreadableError(Exception):
    """Why there is no speaker in the file, for the person who gave it."""


def limit_resources() -> None:
    """No more than this, whatever the file makes the reader do."""
    if sys.platform == "win32":  # there the time limit of the parent is all there is
        return
    import resource

    for limit, value in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CPU, CPU_S),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (value, value))


def check_size(path: Path) -> None:
    """Refuse what is too large for a speaker, packed or unpacked."""
    if path.stat().st_size > MAX_FILE_BYTES:
        raise UnreadableError("the file is larger than 1 MiB")
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
        if sum(entry.file_size for entry in entries) > MAX_UNPACKED_BYTES:
            raise UnreadableError("the file unpacks to more than 4 MiB")


def read(path: Path) -> dict[str, Any]:
    """What the file holds: the values of a tensor of 768, or a speaker code."""
    check_size(path)
    import torch

    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, ValueError, EOFError, MemoryError) as error:
        raise UnreadableError("it is not a PyTorch file of plain tensors") from error
    if isinstance(content, dict):
        found = [v for v in content.values() if isinstance(v, str) or is_speaker(v)]
        content = found[0] if len(found) == 1 else None
    if isinstance(content, str):
        return {"code": content}
    if not is_speaker(content):
        raise UnreadableError(f"it does not hold one tensor of {SPEAKER_SIZE} floats")
    return {"values": content.detach().reshape(-1).double().tolist()}


def is_speaker(value: object) -> bool:
    """Judged by the declared shape alone: nothing of that size is made."""
    import torch

    return (
        isinstance(value, torch.Tensor)
        and value.layout is torch.strided
        and value.dtype in {torch.float16, torch.bfloat16, torch.float32, torch.float64}
        and not value.is_quantized
        and tuple(value.shape) in {(SPEAKER_SIZE,), (1, SPEAKER_SIZE)}
    )


def main() -> None:
    limit_resources()
    try:
        answer = read(Path(sys.argv[1]))
    except UnreadableError as error:
        answer = {"error": str(error)}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
