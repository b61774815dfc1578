"""Keys and values of every row: preallocated slots, each with its own length."""

import torch
import torch.nn.functional as F
from torch import Tensor

from chattts_api.model.config import TrunkConfig

# No sound model's keys come near it; a broken row's would turn masked scores into NaN.
_LARGEST = 3e4


class KeyValueCache:
    """Two buffers [slots, heads, max_length, head_dim] a layer.

    A layer at a time, so that a system without overcommit can still reserve them; on a CPU the
    pages are taken only when a row reaches them.
    """

    def __init__(
        self,
        config: TrunkConfig,
        num_slots: int,
        max_length: int,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self._is_cpu = device.type == "cpu"
        shape = (num_slots, config.num_heads, max_length, config.head_dim)
        new = torch.empty if self._is_cpu else torch.zeros
        self._keys = [new(shape, device=device, dtype=dtype) for _ in range(config.num_layers)]
        self._values = [new(shape, device=device, dtype=dtype) for _ in range(config.num_layers)]

    def fill(self, layer: int, slot: int, keys: Tensor, values: Tensor) -> None:
        """Positions 0..T-1 of one slot. keys, values [heads, T, head_dim]."""
        self._keys[layer][slot, :, : keys.shape[1]] = self._bounded(keys)
        self._values[layer][slot, :, : values.shape[1]] = self._bounded(values)

    def put(
        self, layer: int, slots: Tensor, positions: Tensor, keys: Tensor, values: Tensor
    ) -> None:
        """One position of each row. keys, values [B, heads, head_dim]."""
        self._keys[layer][slots, :, positions] = self._bounded(keys)
        self._values[layer][slots, :, positions] = self._bounded(values)

    def attend_rows(self, layer: int, queries: Tensor, rows: list[tuple[int, int]]) -> Tensor:
        """Row by row over exactly its own length: no mask, no copy, no row sees another's numbers.

        queries [B, heads, head_dim], rows (slot, length) each -> [B, heads, head_dim]
        """
        keys, values = self._keys[layer], self._values[layer]
        out = torch.empty_like(queries)
        for row, (slot, length) in enumerate(rows):
            out[row] = F.scaled_dot_product_attention(
                queries[row, None, :, None],
                keys[slot, None, :, :length],
                values[slot, None, :, :length],
            )[0, :, 0]
        return out

    def attend_masked(self, layer: int, queries: Tensor, slots: Tensor, mask: Tensor) -> Tensor:
        """All rows in one call over the first positions, those past a row's end masked.

        queries [B, heads, head_dim], mask bool [B, 1, 1, length] -> [B, heads, head_dim]
        """
        length = mask.shape[-1]
        keys = self._keys[layer][:, :, :length].index_select(0, slots)
        values = self._values[layer][:, :, :length].index_select(0, slots)
        return F.scaled_dot_product_attention(queries.unsqueeze(2), keys, values, mask).squeeze(2)

    def _bounded(self, values: Tensor) -> Tensor:
        # A slot is not cleared between owners: what a masked position holds must be finite.
        if self._is_cpu:
            return values
        return values.nan_to_num(0.0).clamp(-_LARGEST, _LARGEST)
