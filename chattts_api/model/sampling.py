"""Drawing codes from logits: all rows in one pass, each with its own parameters.

The order is ChatTTS's: temperature, repetition penalty, top-p, top-k, softmax, draw. What is kept
is decided by one threshold a row, so equal logits are kept or left out together and a row's draw
does not depend on the parameters of the rows beside it.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from chattts_api.model.config import END_CODE

MIN_KEPT = 3  # however small top-p and top-k are

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class SamplingTensors:
    """The parameters of rows [B], and the largest top-k, known without asking the device."""

    temperature: Tensor
    top_p: Tensor
    top_k: Tensor
    repetition_penalty: Tensor
    max_top_k: int

    @classmethod
    def of(
        cls,
        temperature: Floats,
        top_p: Floats,
        top_k: npt.NDArray[np.int64],
        repetition_penalty: Floats,
        device: torch.device | str = "cpu",
    ) -> "SamplingTensors":
        """From arrays [B] of the host."""
        return cls(
            torch.from_numpy(temperature).to(device),
            torch.from_numpy(top_p).to(device),
            torch.from_numpy(top_k).to(device),
            torch.from_numpy(repetition_penalty).to(device),
            int(top_k.max()),
        )

    def repeated(self, num: int) -> "SamplingTensors":
        """Each row's parameters `num` times over."""
        return SamplingTensors(
            self.temperature.repeat_interleave(num),
            self.top_p.repeat_interleave(num),
            self.top_k.repeat_interleave(num),
            self.repetition_penalty.repeat_interleave(num),
            self.max_top_k,
        )


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """What rows have drawn last.

    Attributes:
        codes: int64 [B, K, C] (C codebooks), or [B, K] of text ids; the newest last.
        num_valid: int64 [B]: only so many of the newest count.
    """

    codes: Tensor
    num_valid: Tensor


@torch.inference_mode()
def sample_codes(
    logits: Tensor, history: History, params: SamplingTensors, uniforms: Tensor, forbid_end: Tensor
) -> Tensor:
    """One code of each codebook.

    logits [B, C, V], uniforms [B, C] in [0, 1), forbid_end bool [B] -> codes int64 [B, C]
    """
    num_books = logits.shape[1]
    end = torch.where(forbid_end, -torch.inf, 0.0)
    logits = logits.clone()
    logits[:, :, END_CODE] += end[:, None]
    flat = History(
        history.codes.transpose(1, 2).flatten(0, 1), history.num_valid.repeat_interleave(num_books)
    )
    drawn = _draw(logits.flatten(0, 1), flat, params.repeated(num_books), uniforms.flatten())
    return drawn.view(-1, num_books)


@torch.inference_mode()
def sample_text(
    logits: Tensor,
    history: History,
    params: SamplingTensors,
    uniforms: Tensor,
    forbid_end: Tensor,
    end_id: int,
) -> Tensor:
    """One text id a row. logits [B, V], uniforms [B], forbid_end bool [B] -> ids int64 [B]."""
    logits = logits.clone()
    logits[:, end_id] += torch.where(forbid_end, -torch.inf, 0.0)
    return _draw(logits, history, params, uniforms)


@torch.inference_mode()
def probabilities(logits: Tensor, history: History, params: SamplingTensors) -> Tensor:
    """What each row draws from: logits [N, V], history codes [N, K] -> float32 [N, V]."""
    weights = _weights(_processed(logits, history, params), params)
    return weights / weights.sum(-1, keepdim=True)


def _draw(logits: Tensor, history: History, params: SamplingTensors, uniforms: Tensor) -> Tensor:
    scores = _processed(logits, history, params)
    cumulated = _weights(scores, params).cumsum(-1)
    total = cumulated[:, -1]
    # uniforms are at most 1 - 2^-24, so the target stays below the total and a kept code is hit.
    target = (uniforms.to(total) * total).unsqueeze(-1)
    drawn = torch.searchsorted(cumulated, target, right=True).squeeze(-1)
    # A broken row (NaN) may point past the end; it must not break the rows beside it.
    drawn = drawn.clamp_max(logits.shape[-1] - 1)
    return torch.where(params.temperature == 0, scores.argmax(-1), drawn)


def _processed(logits: Tensor, history: History, params: SamplingTensors) -> Tensor:
    temperature = params.temperature.unsqueeze(-1)
    scores = logits / torch.where(temperature == 0, 1.0, temperature)
    codes = history.codes
    columns = torch.arange(codes.shape[1], 0, -1, device=codes.device)  # newest is 1
    valid = columns <= history.num_valid[:, None]
    # How often each code of the history occurs in its valid part: equal codes get equal counts,
    # so writing them back in any order gives the same.
    equal = codes[:, :, None] == codes[:, None, :]
    counts = (equal & valid[:, None, :]).sum(-1)
    penalty = params.repetition_penalty.unsqueeze(-1) ** counts
    found = scores.gather(-1, codes)
    return scores.scatter(-1, codes, torch.where(found < 0, found * penalty, found / penalty))


def _weights(scores: Tensor, params: SamplingTensors) -> Tensor:
    """exp(scores - max) of what top-p and top-k keep, 0 elsewhere. [N, V]"""
    num_codes = scores.shape[-1]
    num_sorted = min(max(params.max_top_k, MIN_KEPT), num_codes)
    highest = scores.topk(num_sorted, dim=-1).values
    top = highest[:, :1]
    weights = (scores - top).exp()
    shares = (highest - top).exp() / weights.sum(-1, keepdim=True)
    before = F.pad(shares.cumsum(-1), (1, -1))
    top_p = params.top_p[:, None]
    num_kept = ((before < top_p) | (top_p >= 1)).sum(-1)
    num_kept = num_kept.clamp_min(MIN_KEPT).minimum(params.top_k.clamp(MIN_KEPT, num_codes))
    last = (num_kept.clamp_max(num_sorted) - 1).unsqueeze(-1)
    return torch.where(scores >= highest.gather(-1, last), weights, 0.0)
