"""Grouped residual finite scalar quantisation, in the arithmetic the official weights were made by.

Levels 5, 5, 5, 5; two groups of two quantizers; codebook column = group * 2 + quantizer. Later
versions of the library that upstream uses changed these rules.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import torch
import torch.nn.functional as F
from torch import Tensor

from chattts_api.model.checkpoint import Shape

NUM_GROUPS: Final = 2
NUM_QUANTIZERS: Final = 2
NUM_DIGITS: Final = 4
NUM_LEVELS: Final = 5
_RESIDUAL_SCALE: Final = 4.0
_BOUND: Final = 2.002  # half of (levels - 1), widened so that rounding reaches the outer levels


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """The projections of one half of the features."""

    project_in: tuple[Tensor, Tensor]  # [4, C], [4]
    project_out: tuple[Tensor, Tensor]  # [C, 4], [C]


@dataclass(frozen=True, slots=True, eq=False)
class FiniteScalarQuantizer:
    groups: tuple[Group, ...]

    def features(self, codes: Tensor) -> Tensor:
        """codes int64 [..., 4] -> float32 [..., 2 C]"""
        values = (_digits(codes) - 2) / 2  # [..., 4 codebooks, 4 digits]
        scales = torch.tensor([1.0, 1.0 / _RESIDUAL_SCALE], device=codes.device)
        shape = (*codes.shape[:-1], NUM_GROUPS, NUM_QUANTIZERS, NUM_DIGITS)
        values = values.view(shape) * scales[:, None]
        summed = values.sum(-2)
        parts = [
            F.linear(summed[..., g, :], *group.project_out) for g, group in enumerate(self.groups)
        ]
        return torch.cat(parts, dim=-1)

    def codes(self, features: Tensor) -> Tensor:
        """features [..., 2 C] -> codes int64 [..., 4]"""
        columns: list[Tensor] = []
        for group, part in zip(self.groups, features.chunk(NUM_GROUPS, dim=-1), strict=True):
            residual = F.linear(part, *group.project_in).tanh() * _BOUND
            for quantizer in range(NUM_QUANTIZERS):
                scale = _RESIDUAL_SCALE**-quantizer
                value = ((residual / scale).tanh() * _BOUND).round() / 2
                columns.append(_code(value * 2 + 2))
                residual = residual - value * scale
        return torch.stack(columns, dim=-1)


def fsq_shapes(prefix: str, group_size: int) -> dict[str, Shape]:
    """The tensors of the quantizer, by their official names."""
    shapes: dict[str, Shape] = {}
    for group in range(NUM_GROUPS):
        shapes[f"{prefix}{group}.project_in.weight"] = (NUM_DIGITS, group_size)
        shapes[f"{prefix}{group}.project_in.bias"] = (NUM_DIGITS,)
        shapes[f"{prefix}{group}.project_out.weight"] = (group_size, NUM_DIGITS)
        shapes[f"{prefix}{group}.project_out.bias"] = (group_size,)
    return shapes


def build_fsq(tensors: Mapping[str, Tensor], prefix: str) -> FiniteScalarQuantizer:
    def pair(group: int, name: str) -> tuple[Tensor, Tensor]:
        return (
            tensors[f"{prefix}{group}.{name}.weight"],
            tensors[f"{prefix}{group}.{name}.bias"],
        )

    return FiniteScalarQuantizer(
        tuple(Group(pair(g, "project_in"), pair(g, "project_out")) for g in range(NUM_GROUPS))
    )


def _digits(codes: Tensor) -> Tensor:
    """Base-5 digits, least significant first. int64 [...] -> float32 [..., 4]"""
    powers = NUM_LEVELS ** torch.arange(NUM_DIGITS, device=codes.device)
    return (codes.unsqueeze(-1) // powers % NUM_LEVELS).float()


def _code(digits: Tensor) -> Tensor:
    powers = NUM_LEVELS ** torch.arange(NUM_DIGITS, device=digits.device)
    return (digits.round().long() * powers).sum(-1)
