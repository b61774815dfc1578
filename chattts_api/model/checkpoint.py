"""Strict reading of one safetensors file: every tensor asked for is there, has its shape, is read.

Knows the format's faults; the names and shapes are the caller's.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from chattts_api.errors import WeightsError

Shape = tuple[int, ...]

_FLOAT_TYPES: Final = frozenset({"F32", "F16", "BF16"})
_SHOWN = 3


class Checkpoint:
    """A safetensors file, mapped into memory only while tensors are copied out of it.

    Args:
        path: the file.
        prefix: taken off the names that begin with it.
        unused: beginnings of names that are of no use here and may be there or not.
    """

    def __init__(self, path: Path, prefix: str = "", unused: tuple[str, ...] = ()) -> None:
        self.path = path
        self._names: dict[str, str] = {}
        self._shapes: dict[str, Shape] = {}
        with self._open() as file:
            for stored in file.keys():  # noqa: SIM118  not a mapping
                name = stored.removeprefix(prefix)
                if name.startswith(unused or ("\0",)):
                    continue
                self._add(name, stored, file.get_slice(stored))

    def _add(self, name: str, stored: str, entry: Any) -> None:
        if name in self._names:
            raise WeightsError(f"{self.path} holds {name} twice.")
        if entry.get_dtype() not in _FLOAT_TYPES:
            raise WeightsError(f"{self.path}: {stored} is {entry.get_dtype()}, not a float type.")
        self._names[name] = stored
        self._shapes[name] = tuple(entry.get_shape())

    def shape(self, name: str, num_dims: int) -> Shape:
        """The shape of a tensor that must be there with so many dimensions."""
        shape = self._shapes.get(name)
        if shape is None:
            raise WeightsError(f"{self.path} lacks the tensor {name}.")
        if len(shape) != num_dims or min(shape) < 1:
            raise WeightsError(f"{self.path}: {name} has the shape {list(shape)}.")
        return shape

    def count(self, prefix: str) -> int:
        """How many numbered parts `prefix`0, `prefix`1, ... there are."""
        numbers = {
            int(name.removeprefix(prefix).split(".", 1)[0])
            for name in self._names
            if name.startswith(prefix) and name.removeprefix(prefix).split(".", 1)[0].isdecimal()
        }
        return len(numbers)

    def check(self, expected: Mapping[str, Shape]) -> None:
        """The file holds these tensors in these shapes, and no other.

        Raises:
            WeightsError: naming the file and the tensor.
        """
        missing = [name for name in expected if name not in self._shapes]
        extra = [name for name in self._shapes if name not in expected]
        if missing:
            raise WeightsError(f"{self.path} lacks the tensor {_listed(missing)}.")
        if extra:
            raise WeightsError(f"{self.path} holds the unknown tensor {_listed(extra)}.")
        for name, shape in expected.items():
            if self._shapes[name] != shape:
                raise WeightsError(
                    f"{self.path}: {name} has the shape {list(self._shapes[name])}, "
                    f"expected {list(shape)}."
                )

    def read(self, names: Iterable[str], dtype: torch.dtype) -> dict[str, Tensor]:
        """Copies of these tensors; the mapping is closed again, so nothing is held twice."""
        with self._open() as file:
            return {name: file.get_tensor(self._names[name]).to(dtype, copy=True) for name in names}

    def _open(self) -> Any:
        try:
            return safe_open(self.path, framework="pt", device="cpu")
        except FileNotFoundError as error:
            raise WeightsError(f"{self.path} does not exist.") from error
        except (OSError, SafetensorError) as error:
            raise WeightsError(f"{self.path} is truncated or broken: {error}.") from error


def _listed(names: list[str]) -> str:
    rest = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(sorted(names)[:_SHOWN]) + rest
