"""Writing a safetensors file one tensor at a time, so that no file is ever held in memory."""

import json
import os
from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path

import numpy as np
import numpy.typing as npt

from chattts_api.model.durable import replace_durably

Values = Callable[[str, tuple[int, ...]], npt.NDArray[np.float32]]

_ALIGNMENT = 8
_NUM_BYTES = 4  # of a float32


def write_safetensors(path: Path, shapes: Mapping[str, tuple[int, ...]], values: Values) -> None:
    """Write float32 tensors of these shapes, asking `values` for one after the other."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        file.write(_header(shapes))
        for name, shape in shapes.items():
            tensor = values(name, shape)
            assert tensor.shape == shape, f"{name} is {tensor.shape}, not {shape}"
            file.write(np.ascontiguousarray(tensor, dtype="<f4").data)
        file.flush()
        os.fsync(file.fileno())
    replace_durably(part, path)


def _header(shapes: Mapping[str, tuple[int, ...]]) -> bytes:
    entries: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, shape in shapes.items():
        begin, end = end, end + prod(shape) * _NUM_BYTES
        entries[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    return len(text).to_bytes(8, "little") + text
