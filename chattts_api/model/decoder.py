"""Latents to log-mel: two frames a step."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from chattts_api.model.checkpoint import Checkpoint, Shape
from chattts_api.model.config import ConvNextConfig, DecoderConfig
from chattts_api.model.convnext import ConvNext, build_stack, stack_shapes


@dataclass(frozen=True, slots=True, eq=False)
class MelDecoder:
    """The acoustic decoder, from hidden states or from the features of codes."""

    stack: ConvNext
    out_conv: Tensor  # [num_mels, output_size, 3]
    coef: Tensor  # [1, num_mels, 1]

    def __call__(self, latents: Tensor) -> Tensor:
        """latents [B, T, 2 C] -> log-mel [B, num_mels, 2 T]

        Frames 2t and 2t + 1 are the two halves of step t.
        """
        batch, steps, width = latents.shape
        frames = latents.reshape(batch, 2 * steps, width // 2).transpose(1, 2)
        mel = F.conv1d(self.stack(frames), self.out_conv, padding=1)
        return mel * self.coef


def stack_config(checkpoint: Checkpoint, prefix: str) -> ConvNextConfig:
    """A stack's dimensions, off the shapes of its tensors."""
    bottleneck, input_size, _ = checkpoint.shape(f"{prefix}conv_in.0.weight", 3)
    output_size, hidden_size, _ = checkpoint.shape(f"{prefix}conv_out.weight", 3)
    intermediate_size, _ = checkpoint.shape(f"{prefix}decoder_block.0.pwconv1.weight", 2)
    return ConvNextConfig(
        input_size=input_size,
        bottleneck=bottleneck,
        hidden_size=hidden_size,
        intermediate_size=intermediate_size,
        output_size=output_size,
        num_layers=checkpoint.count(f"{prefix}decoder_block."),
    )


def decoder_config(checkpoint: Checkpoint) -> DecoderConfig:
    num_mels, _, _ = checkpoint.shape("out_conv.weight", 3)
    return DecoderConfig(stack_config(checkpoint, "decoder."), num_mels)


def decoder_shapes(config: DecoderConfig) -> dict[str, Shape]:
    """Every tensor of Decoder.safetensors."""
    return stack_shapes("decoder.", config.stack) | {
        "coef": (1, config.num_mels, 1),
        "out_conv.weight": (config.num_mels, config.stack.output_size, 3),
    }


def build_decoder(tensors: Mapping[str, Tensor], config: DecoderConfig) -> MelDecoder:
    return MelDecoder(
        build_stack(tensors, "decoder.", config.stack.num_layers),
        tensors["out_conv.weight"],
        tensors["coef"],
    )
