"""The Llama trunk in PyTorch with a KV cache of slots: the reference backend, any device and dtype.

Inputs and outputs are float32; weights, activations and the cache have the trunk's dtype.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from chattts_api.model.config import TrunkConfig
from chattts_api.model.kv_cache import KeyValueCache
from chattts_api.model.rope import rope_table, rotate
from chattts_api.model.trunk_weights import Layer, TrunkWeights

# queries, keys, values [T, heads, head_dim] of one layer -> what the queries found, same shape
Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]


class TorchTrunk:
    """Trunk (interface.py) over plain PyTorch.

    On a CPU each row attends over exactly its own length and its products do not depend on the
    number of rows (`PackedLinear`): a row's hidden states are the same bits alone and in a batch.
    Elsewhere rows attend in one masked call, and library kernels may round differently with the
    number of rows and with the longest of them.
    """

    def __init__(
        self,
        config: TrunkConfig,
        weights: TrunkWeights,
        num_slots: int,
        max_length: int,
    ) -> None:
        self.config = config
        self.num_slots = num_slots
        self.max_length = max_length
        self._weights = weights
        self._device, self._dtype = weights.norm.device, weights.norm.dtype
        self._cache = KeyValueCache(config, num_slots, max_length, self._device, self._dtype)
        self._rope = rope_table(config.head_dim, config.rope_theta, max_length).to(
            self._device, self._dtype
        )

    @property
    def hidden_size(self) -> int:
        return self.config.hidden_size

    @torch.inference_mode()
    def prefill(self, embeddings: Tensor, slot: int) -> Tensor:
        """Fill positions 0..T-1 of a slot. embeddings [T, H] -> normed hidden of the last [H]."""
        length = embeddings.shape[0]
        assert 0 < length <= self.max_length, f"{length} positions in slots of {self.max_length}"

        def attend(layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            keys, values = keys.transpose(0, 1), values.transpose(0, 1)
            self._cache.fill(layer, slot, keys, values)
            return causal_attention(queries.transpose(0, 1), keys, values).transpose(0, 1)

        return self._run(embeddings, self._rope[:, :length], attend)[-1]

    @torch.inference_mode()
    def decode(
        self, embeddings: Tensor, slots: Tensor, positions: Tensor, length: int | None = None
    ) -> Tensor:
        """One position for each row: embeddings [B, H], slots and positions int64 [B] -> [B, H].

        `length` is a bound of positions + 1 that the caller knows; without it a GPU is asked and
        waited for. Of one `length`, the shapes of every call with B rows are the same.
        """
        attend = (
            self._attend_rows(slots, positions)
            if self._device.type == "cpu"
            else self._attend_masked(slots, positions, length)
        )
        return self._run(embeddings, self._rope[:, positions], attend)

    def _attend_rows(self, slots: Tensor, positions: Tensor) -> Attend:
        lengths = (positions + 1).tolist()
        assert max(lengths) <= self.max_length, "a row is longer than its slot"
        rows = list(zip(slots.tolist(), lengths, strict=True))

        def attend(layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            self._cache.put(layer, slots, positions, keys, values)
            return self._cache.attend_rows(layer, queries, rows)

        return attend

    def _attend_masked(self, slots: Tensor, positions: Tensor, length: int | None) -> Attend:
        bound = int(positions.max()) + 1 if length is None else length
        live = torch.arange(bound, device=self._device) <= positions[:, None]
        mask = live[:, None, None]

        def attend(layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            self._cache.put(layer, slots, positions, keys, values)
            return self._cache.attend_masked(layer, queries, slots, mask)

        return attend

    def _run(self, embeddings: Tensor, rope: Tensor, attend: Attend) -> Tensor:
        """embeddings [N, H], rope [2, N, head_dim] -> normed hidden float32 [N, H]."""
        x = embeddings.to(self._dtype)
        cos, sin = rope.unsqueeze(2)
        for index, layer in enumerate(self._weights.layers):
            queries, keys, values = self._project(layer, x)
            found = attend(index, rotate(queries, cos, sin), rotate(keys, cos, sin), values)
            x = x + layer.output(found.reshape(x.shape))
            x = x + self._feed_forward(layer, x)
        return self._norm(x, self._weights.norm).float()

    def _project(self, layer: Layer, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        qkv = layer.qkv(self._norm(x, layer.attention_norm))
        shape = (x.shape[0], 3, self.config.num_heads, self.config.head_dim)
        queries, keys, values = qkv.view(shape).unbind(1)
        return queries, keys, values

    def _feed_forward(self, layer: Layer, x: Tensor) -> Tensor:
        gate, up = layer.gate_up(self._norm(x, layer.mlp_norm)).chunk(2, dim=-1)
        return layer.down(F.silu(gate) * up)

    def _norm(self, x: Tensor, weight: Tensor) -> Tensor:
        return F.rms_norm(x, weight.shape, weight, self.config.rms_norm_eps)


def causal_attention(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Each position over itself and those before it. All [heads, T, head_dim]."""
    return F.scaled_dot_product_attention(queries[None], keys[None], values[None], is_causal=True)[
        0
    ]
