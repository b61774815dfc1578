"""DVAE.safetensors: codes to log-mel, and a recorded sample to codes."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from chattts_api.model.checkpoint import Checkpoint, Shape
from chattts_api.model.config import DvaeConfig
from chattts_api.model.convnext import ConvNext, build_stack, stack_shapes
from chattts_api.model.decoder import MelDecoder, stack_config
from chattts_api.model.fsq import FiniteScalarQuantizer, build_fsq, fsq_shapes
from chattts_api.model.mel import log_mel

DVAE_UNUSED = ("preprocessor_mel.",)
_QUANTIZER = "vq_layer.quantizer.rvqs."


@dataclass(frozen=True, slots=True, eq=False)
class Dvae:
    """Float32 throughout."""

    decoder: MelDecoder
    quantizer: FiniteScalarQuantizer
    downsample: tuple[Tensor, Tensor]  # [C, num_mels, 3], stride 1
    downsample_half: tuple[Tensor, Tensor]  # [C, C, 4], stride 2
    encoder: ConvNext

    @torch.inference_mode()
    def decode(self, codes: Tensor) -> Tensor:
        """codes int64 [B, T, 4] -> log-mel [B, num_mels, 2 T]"""
        return self.decoder(self.quantizer.features(codes))

    @torch.inference_mode()
    def encode(self, samples: Tensor) -> Tensor:
        """24 kHz samples float32 [N] -> codes int64 [4, T]"""
        coef = self.decoder.coef
        mel = log_mel(samples.to(coef), coef.shape[1])[None] / coef
        x = F.gelu(F.conv1d(mel, *self.downsample, padding=1))
        x = F.gelu(F.conv1d(x, *self.downsample_half, stride=2, padding=1))
        return self.quantizer.codes(self.encoder(x).transpose(1, 2))[0].T.contiguous()


def dvae_config(checkpoint: Checkpoint) -> DvaeConfig:
    num_mels, _, _ = checkpoint.shape("out_conv.weight", 3)
    _, group_size = checkpoint.shape(f"{_QUANTIZER}0.project_in.weight", 2)
    return DvaeConfig(
        decoder=stack_config(checkpoint, "decoder."),
        encoder=stack_config(checkpoint, "encoder."),
        num_mels=num_mels,
        group_size=group_size,
    )


def dvae_shapes(config: DvaeConfig) -> dict[str, Shape]:
    """Every tensor of DVAE.safetensors that is of use."""
    width = config.encoder.input_size
    return (
        stack_shapes("decoder.", config.decoder)
        | stack_shapes("encoder.", config.encoder)
        | fsq_shapes(_QUANTIZER, config.group_size)
        | {
            "coef": (1, config.num_mels, 1),
            "out_conv.weight": (config.num_mels, config.decoder.output_size, 3),
            "downsample_conv.0.weight": (width, config.num_mels, 3),
            "downsample_conv.0.bias": (width,),
            "downsample_conv.2.weight": (width, width, 4),
            "downsample_conv.2.bias": (width,),
        }
    )


def build_dvae(tensors: Mapping[str, Tensor], config: DvaeConfig) -> Dvae:
    def pair(name: str) -> tuple[Tensor, Tensor]:
        return tensors[f"{name}.weight"], tensors[f"{name}.bias"]

    return Dvae(
        decoder=MelDecoder(
            build_stack(tensors, "decoder.", config.decoder.num_layers),
            tensors["out_conv.weight"],
            tensors["coef"],
        ),
        quantizer=build_fsq(tensors, _QUANTIZER),
        downsample=pair("downsample_conv.0"),
        downsample_half=pair("downsample_conv.2"),
        encoder=build_stack(tensors, "encoder.", config.encoder.num_layers),
    )
