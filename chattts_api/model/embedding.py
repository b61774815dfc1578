"""Ids to vectors and hidden states to logits; a prompt's rows, its speaker and its sample."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from chattts_api.model.checkpoint import Checkpoint, Shape
from chattts_api.model.config import NUM_CODEBOOKS, EmbeddingConfig
from chattts_api.model.interface import Embedding
from chattts_api.model.linear import PackedLinear
from chattts_api.model.prompts import Prompt

_NORM = "parametrizations.weight.original0"  # of weight norm: the length of each row
_DIRECTION = "parametrizations.weight.original1"


@dataclass(frozen=True, slots=True, eq=False)
class EmbeddingWeights:
    text: Tensor  # [num_text, H]
    code: Tensor  # [4 * num_code, H], the codebooks one below the other
    head_text: PackedLinear  # [num_text, H]
    head_code: PackedLinear  # [4 * num_code, H]


class TorchEmbedding:
    """Embedding (interface.py) over plain PyTorch. Tables are float32, heads have a dtype."""

    def __init__(
        self, config: EmbeddingConfig, weights: EmbeddingWeights, dtype: torch.dtype
    ) -> None:
        self.config = config
        self._weights = weights
        self._dtype = dtype
        offsets = torch.arange(NUM_CODEBOOKS) * config.num_code
        self._offsets = offsets.to(weights.code.device)

    @torch.inference_mode()
    def text(self, ids: Tensor) -> Tensor:
        """Ids int64 [T] -> [T, H]."""
        return self._weights.text[ids]

    @torch.inference_mode()
    def codes(self, codes: Tensor) -> Tensor:
        """Codes int64 [B, 4] -> the sum over the codebooks [B, H]."""
        return self._weights.code[codes + self._offsets].sum(1)

    @torch.inference_mode()
    def code_logits(self, hidden: Tensor) -> Tensor:
        """Hidden [B, H] -> [B, 4, 626]."""
        logits = self._weights.head_code(hidden.to(self._dtype)).float()
        return logits.view(-1, NUM_CODEBOOKS, self.config.num_code)

    @torch.inference_mode()
    def text_logits(self, hidden: Tensor) -> Tensor:
        """Hidden [B, H] -> [B, 21178]."""
        return self._weights.head_text(hidden.to(self._dtype)).float()


def normalise_speaker(speaker: Tensor) -> Tensor:
    """A speaker vector of length 1, float16 [H]. In float16: in float32 it would be another one."""
    return F.normalize(speaker.to(torch.float16), p=2.0, dim=0, eps=1e-12)


@torch.inference_mode()
def embed_prompt(embedding: Embedding, prompt: Prompt, device: torch.device) -> Tensor:
    """The rows of a prompt [T, H]: the text's, the speaker over its own, then the sample's."""
    rows = embedding.text(torch.tensor(prompt.ids, device=device))
    if prompt.speaker is not None and prompt.speaker_row is not None:
        # On the CPU whatever the device: a voice is what its float16 arithmetic makes of it.
        speaker = normalise_speaker(torch.from_numpy(prompt.speaker.copy()))
        rows[prompt.speaker_row] = speaker.to(rows)
    if prompt.codes is None:
        return rows
    codes = torch.from_numpy(prompt.codes.T.astype("int64")).to(device)
    return torch.cat([rows, embedding.codes(codes)])


def embedding_config(checkpoint: Checkpoint, hidden_size: int) -> EmbeddingConfig:
    num_text, _ = checkpoint.shape("emb_text.weight", 2)
    num_code, _ = checkpoint.shape("emb_code.0.weight", 2)
    return EmbeddingConfig(num_text, num_code, hidden_size)


def embedding_shapes(config: EmbeddingConfig) -> dict[str, Shape]:
    """Every tensor of Embed.safetensors."""
    hidden = config.hidden_size
    shapes: dict[str, Shape] = {"emb_text.weight": (config.num_text, hidden)}
    heads = {"head_text": config.num_text}
    for index in range(NUM_CODEBOOKS):
        shapes[f"emb_code.{index}.weight"] = (config.num_code, hidden)
        heads[f"head_code.{index}"] = config.num_code
    for name, size in heads.items():
        shapes[f"{name}.{_NORM}"] = (size, 1)
        shapes[f"{name}.{_DIRECTION}"] = (size, hidden)
    return shapes


def read_embedding(
    checkpoint: Checkpoint, config: EmbeddingConfig, device: torch.device, dtype: torch.dtype
) -> TorchEmbedding:
    """The tables and the heads, weight norm folded; the shapes have been checked."""
    tables = checkpoint.read(
        ["emb_text.weight", *(f"emb_code.{i}.weight" for i in range(NUM_CODEBOOKS))], torch.float32
    )
    head_text = _folded(checkpoint, "head_text")
    head_code = torch.cat([_folded(checkpoint, f"head_code.{i}") for i in range(NUM_CODEBOOKS)])
    weights = EmbeddingWeights(
        text=tables.pop("emb_text.weight").to(device),
        code=torch.cat(list(tables.values())).to(device),
        head_text=PackedLinear(head_text.to(device, dtype)),
        head_code=PackedLinear(head_code.to(device, dtype)),
    )
    return TorchEmbedding(config, weights, dtype)


def _folded(checkpoint: Checkpoint, name: str) -> Tensor:
    parts = checkpoint.read([f"{name}.{_NORM}", f"{name}.{_DIRECTION}"], torch.float32)
    norm, direction = parts.values()
    lengths = direction.square().sum(dim=1, keepdim=True).sqrt()
    return direction * (norm / lengths)
