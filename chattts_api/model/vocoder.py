"""Log-mel to sound: the Vocos backbone and its inverse short-time Fourier transform."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from chattts_api.model.checkpoint import Checkpoint, Shape
from chattts_api.model.config import VocoderConfig
from chattts_api.model.convnext import KERNEL, Block, block_shapes, build_block, layer_norm
from chattts_api.model.linear import PackedLinear

VOCODER_UNUSED = ("feature_extractor.", "head.istft.window")
_MAX_MAGNITUDE = 1e2


@dataclass(frozen=True, slots=True, eq=False)
class Vocoder:
    config: VocoderConfig
    embed: tuple[Tensor, Tensor]
    norm: tuple[Tensor, Tensor]
    blocks: tuple[Block, ...]
    final_norm: tuple[Tensor, Tensor]
    head: PackedLinear  # [num_fft + 2, C]
    window: Tensor  # [num_fft] float32

    def __call__(self, mel: Tensor) -> Tensor:
        """log-mel [B, num_mels, T] -> samples float32 [B, (T - 1) * hop]"""
        x = F.conv1d(mel, *self.embed, padding=KERNEL // 2)
        x = layer_norm(x.transpose(1, 2), *self.norm).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        x = layer_norm(x.transpose(1, 2), *self.final_norm)
        spectrum = self.head(x.flatten(0, 1)).float().view(*x.shape[:2], -1)
        return self._invert(spectrum.transpose(1, 2))

    def _invert(self, spectrum: Tensor) -> Tensor:
        """Log-magnitudes and phases [B, num_fft + 2, T] -> samples."""
        magnitude, phase = spectrum.chunk(2, dim=1)
        bins = torch.polar(magnitude.exp().clamp_max(_MAX_MAGNITUDE), phase)
        size, hop = self.config.num_fft, self.config.hop
        return torch.istft(bins, size, hop, size, self.window, center=True)


def vocoder_config(checkpoint: Checkpoint) -> VocoderConfig:
    hidden_size, num_mels, _ = checkpoint.shape("backbone.embed.weight", 3)
    intermediate_size, _ = checkpoint.shape("backbone.convnext.0.pwconv1.weight", 2)
    num_bins, _ = checkpoint.shape("head.out.weight", 2)
    return VocoderConfig(
        num_mels=num_mels,
        hidden_size=hidden_size,
        intermediate_size=intermediate_size,
        num_layers=checkpoint.count("backbone.convnext."),
        num_fft=num_bins - 2,
    )


def vocoder_shapes(config: VocoderConfig) -> dict[str, Shape]:
    """Every tensor of Vocos.safetensors that is of use."""
    hidden = config.hidden_size
    shapes: dict[str, Shape] = {
        "backbone.embed.weight": (hidden, config.num_mels, KERNEL),
        "backbone.embed.bias": (hidden,),
        "backbone.norm.weight": (hidden,),
        "backbone.norm.bias": (hidden,),
        "backbone.final_layer_norm.weight": (hidden,),
        "backbone.final_layer_norm.bias": (hidden,),
        "head.out.weight": (config.num_fft + 2, hidden),
        "head.out.bias": (config.num_fft + 2,),
    }
    block = block_shapes(hidden, config.intermediate_size, "gamma")
    for index in range(config.num_layers):
        shapes |= {f"backbone.convnext.{index}.{name}": shape for name, shape in block.items()}
    return shapes


def build_vocoder(tensors: Mapping[str, Tensor], config: VocoderConfig) -> Vocoder:
    def pair(name: str) -> tuple[Tensor, Tensor]:
        return tensors[f"backbone.{name}.weight"], tensors[f"backbone.{name}.bias"]

    return Vocoder(
        config=config,
        embed=pair("embed"),
        norm=pair("norm"),
        blocks=tuple(
            build_block(tensors, f"backbone.convnext.{index}.", "gamma", dilation=1)
            for index in range(config.num_layers)
        ),
        final_norm=pair("final_layer_norm"),
        head=PackedLinear(tensors["head.out.weight"], tensors["head.out.bias"]),
        window=torch.hann_window(config.num_fft, device=tensors["head.out.bias"].device),
    )
