"""Rotary positions."""

import torch
from torch import Tensor


def rope_table(head_dim: int, theta: float, length: int) -> Tensor:
    """Cosines and sines of each position, float32 [2, length, head_dim]."""
    exponents = torch.arange(0, head_dim, 2, dtype=torch.int64).float() / head_dim
    angles = torch.outer(torch.arange(length).float(), 1.0 / theta**exponents)
    angles = torch.cat([angles, angles], dim=1)
    return torch.stack([angles.cos(), angles.sin()])


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x [T, heads, head_dim], cos and sin [T, 1, head_dim]: the two halves are the pairs."""
    left, right = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-right, left], dim=-1) * sin
