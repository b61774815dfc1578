"""The three parts that the runner drives, and that each backend implements.

`torch` is the reference (any device, any dtype); `native` is the 8-bit CPU path. A row's numbers
never depend on the rows beside it: that is each backend's promise, not the runner's.
Inputs and outputs are float32 tensors on the backend's device.
"""

from typing import Protocol

from torch import Tensor


class Trunk(Protocol):
    """The Llama trunk with its KV cache: preallocated slots, each with its own length.

    A slot is written from position 0 by `prefill`, then one position a `decode`. Nothing is
    cleared between owners: a row only ever reads the positions it wrote.
    """

    @property
    def hidden_size(self) -> int: ...

    @property
    def num_slots(self) -> int: ...

    @property
    def max_length(self) -> int:
        """Positions a slot can hold."""

    def prefill(self, embeddings: Tensor, slot: int) -> Tensor:
        """Fill positions 0..T-1 of a slot. embeddings [T, H] -> normed hidden of the last [H]."""

    def decode(self, embeddings: Tensor, slots: Tensor, positions: Tensor) -> Tensor:
        """One position for each row.

        embeddings [B, H], slots int64 [B] (distinct), positions int64 [B] (where the new key and
        value go; the row attends to 0..position) -> normed hidden [B, H].
        """


class Embedding(Protocol):
    """Ids to vectors and hidden states to logits."""

    def text(self, ids: Tensor) -> Tensor:
        """Ids int64 [T] -> [T, H]."""

    def codes(self, codes: Tensor) -> Tensor:
        """Codes int64 [B, 4] -> the sum over the codebooks [B, H]."""

    def code_logits(self, hidden: Tensor) -> Tensor:
        """Hidden [B, H] -> [B, 4, 626]."""

    def text_logits(self, hidden: Tensor) -> Tensor:
        """Hidden [B, H] -> [B, 21178]."""


class Acoustic(Protocol):
    """Hidden states to sound: the decoder and the vocoder."""

    def decode(self, hidden: Tensor) -> Tensor:
        """Hidden [B, T, H], all of one length -> samples [B, (2 T - 1) * 256]."""
