"""The trunk's tensors under their official names, fused into what one step multiplies with."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from chattts_api.model.checkpoint import Checkpoint, Shape
from chattts_api.model.config import TrunkConfig
from chattts_api.model.linear import PackedLinear

TRUNK_PREFIX = "model."
TRUNK_UNUSED = ("embed_tokens.", "rotary_emb.")


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """One block: queries, keys and values are one product, gate and up another."""

    attention_norm: Tensor  # [H]
    qkv: PackedLinear  # [3 H, H]
    output: PackedLinear  # [H, H]
    mlp_norm: Tensor  # [H]
    gate_up: PackedLinear  # [2 I, H]
    down: PackedLinear  # [H, I]


@dataclass(frozen=True, slots=True, eq=False)
class TrunkWeights:
    layers: tuple[Layer, ...]
    norm: Tensor  # [H]


def layer_shapes(config: TrunkConfig) -> dict[str, Shape]:
    """The tensors of one layer, by their names inside it."""
    hidden, wide = config.hidden_size, config.intermediate_size
    return {
        "input_layernorm.weight": (hidden,),
        "self_attn.q_proj.weight": (hidden, hidden),
        "self_attn.k_proj.weight": (hidden, hidden),
        "self_attn.v_proj.weight": (hidden, hidden),
        "self_attn.o_proj.weight": (hidden, hidden),
        "post_attention_layernorm.weight": (hidden,),
        "mlp.gate_proj.weight": (wide, hidden),
        "mlp.up_proj.weight": (wide, hidden),
        "mlp.down_proj.weight": (hidden, wide),
    }


def trunk_shapes(config: TrunkConfig) -> dict[str, Shape]:
    """Every tensor of gpt/model.safetensors that the trunk uses."""
    shapes: dict[str, Shape] = {
        f"layers.{index}.{name}": shape
        for index in range(config.num_layers)
        for name, shape in layer_shapes(config).items()
    }
    return shapes | {"norm.weight": (config.hidden_size,)}


def read_layers(
    checkpoint: Checkpoint, config: TrunkConfig, dtype: torch.dtype
) -> Iterator[dict[str, Tensor]]:
    """The tensors of one layer after the other; only one layer is in memory at a time."""
    for index in range(config.num_layers):
        prefix = f"layers.{index}."
        tensors = checkpoint.read([prefix + name for name in layer_shapes(config)], dtype)
        yield {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}


def read_trunk(
    checkpoint: Checkpoint, config: TrunkConfig, device: torch.device, dtype: torch.dtype
) -> TrunkWeights:
    """Fuse and pack the weights layer by layer; the shapes have been checked."""
    layers = tuple(_fuse(tensors, device) for tensors in read_layers(checkpoint, config, dtype))
    norm = checkpoint.read(["norm.weight"], dtype)["norm.weight"].to(device)
    return TrunkWeights(layers, norm)


def _fuse(tensors: dict[str, Tensor], device: torch.device) -> Layer:
    def packed(*names: str) -> PackedLinear:
        return PackedLinear(torch.cat([tensors[f"{name}.weight"] for name in names]).to(device))

    return Layer(
        attention_norm=tensors["input_layernorm.weight"].to(device),
        qkv=packed("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
        output=packed("self_attn.o_proj"),
        mlp_norm=tensors["post_attention_layernorm.weight"].to(device),
        gate_up=packed("mlp.gate_proj", "mlp.up_proj"),
        down=packed("mlp.down_proj"),
    )
