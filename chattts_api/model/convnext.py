"""ConvNeXt blocks: the body of the decoders, the encoder and the vocoder."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from chattts_api.model.checkpoint import Shape
from chattts_api.model.config import ConvNextConfig
from chattts_api.model.linear import PackedLinear

KERNEL = 7
_NORM_EPS = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Depthwise convolution over time, then two products over channels, added to the input."""

    depthwise: Tensor  # [C, 1, 7]
    depthwise_bias: Tensor  # [C]
    norm: Tensor
    norm_bias: Tensor
    wide: PackedLinear  # [I, C], GELU
    narrow: PackedLinear  # [C, I], the layer scale folded in
    dilation: int

    def __call__(self, x: Tensor) -> Tensor:
        """x [B, C, T] -> [B, C, T]"""
        y = F.conv1d(
            x,
            self.depthwise,
            self.depthwise_bias,
            padding=self.dilation * (KERNEL // 2),
            dilation=self.dilation,
            groups=x.shape[1],
        )
        y = layer_norm(y.transpose(1, 2), self.norm, self.norm_bias)
        y = self.narrow(self.wide(y.flatten(0, 1))).view(y.shape)
        return x + y.transpose(1, 2)


@dataclass(frozen=True, slots=True, eq=False)
class ConvNext:
    """Two convolutions in, blocks, one convolution out."""

    conv_in: tuple[Tensor, Tensor]
    conv_wide: tuple[Tensor, Tensor]
    blocks: tuple[Block, ...]
    conv_out: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        """x [B, input_size, T] -> [B, output_size, T]"""
        x = F.gelu(F.conv1d(x, *self.conv_in, padding=1))
        x = F.conv1d(x, *self.conv_wide, padding=1)
        for block in self.blocks:
            x = block(x)
        return F.conv1d(x, self.conv_out)


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Over the last dimension."""
    return F.layer_norm(x, weight.shape, weight, bias, _NORM_EPS)


def block_shapes(hidden: int, wide: int, scale_name: str) -> dict[str, Shape]:
    """The tensors of one block, by their names inside it."""
    return {
        "dwconv.weight": (hidden, 1, KERNEL),
        "dwconv.bias": (hidden,),
        "norm.weight": (hidden,),
        "norm.bias": (hidden,),
        "pwconv1.weight": (wide, hidden),
        "pwconv1.bias": (wide,),
        "pwconv2.weight": (hidden, wide),
        "pwconv2.bias": (hidden,),
        scale_name: (hidden,),
    }


def stack_shapes(prefix: str, config: ConvNextConfig) -> dict[str, Shape]:
    """The tensors of a stack, by their official names."""
    shapes: dict[str, Shape] = {
        "conv_in.0.weight": (config.bottleneck, config.input_size, 3),
        "conv_in.0.bias": (config.bottleneck,),
        "conv_in.2.weight": (config.hidden_size, config.bottleneck, 3),
        "conv_in.2.bias": (config.hidden_size,),
        "conv_out.weight": (config.output_size, config.hidden_size, 1),
    }
    block = block_shapes(config.hidden_size, config.intermediate_size, "weight")
    for index in range(config.num_layers):
        shapes |= {f"decoder_block.{index}.{name}": shape for name, shape in block.items()}
    return {prefix + name: shape for name, shape in shapes.items()}


def build_block(
    tensors: Mapping[str, Tensor], prefix: str, scale_name: str, dilation: int
) -> Block:
    """A block from tensors under their official names."""
    scale = tensors[prefix + scale_name]
    return Block(
        depthwise=tensors[prefix + "dwconv.weight"],
        depthwise_bias=tensors[prefix + "dwconv.bias"],
        norm=tensors[prefix + "norm.weight"],
        norm_bias=tensors[prefix + "norm.bias"],
        wide=PackedLinear(
            tensors[prefix + "pwconv1.weight"], tensors[prefix + "pwconv1.bias"], "gelu"
        ),
        narrow=PackedLinear(
            tensors[prefix + "pwconv2.weight"] * scale[:, None],
            tensors[prefix + "pwconv2.bias"] * scale,
        ),
        dilation=dilation,
    )


def build_stack(tensors: Mapping[str, Tensor], prefix: str, num_layers: int) -> ConvNext:
    """A stack from tensors under their official names."""
    return ConvNext(
        conv_in=(tensors[prefix + "conv_in.0.weight"], tensors[prefix + "conv_in.0.bias"]),
        conv_wide=(tensors[prefix + "conv_in.2.weight"], tensors[prefix + "conv_in.2.bias"]),
        blocks=tuple(
            build_block(tensors, f"{prefix}decoder_block.{index}.", "weight", dilation=2)
            for index in range(num_layers)
        ),
        conv_out=tensors[prefix + "conv_out.weight"],
    )
