"""Every dimension of a ChatTTS model, as frozen data. The defaults are the official model's.

The trunk's come from gpt/config.json; the others are read off the tensors' shapes by `loading.py`.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chattts_api.errors import WeightsError

NUM_CODEBOOKS = 4
NUM_CODES = 625  # codes 0..624 are sound
END_CODE = 625  # in any codebook it ends the row
HISTORY = 16  # codes that the repetition penalty looks back on


@dataclass(frozen=True, slots=True)
class TrunkConfig:
    hidden_size: int = 768
    intermediate_size: int = 3072
    num_layers: int = 20
    num_heads: int = 12
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10_000.0
    max_positions: int = 4096

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.num_heads


@dataclass(frozen=True, slots=True)
class EmbeddingConfig:
    num_text: int = 21_178
    num_code: int = NUM_CODES + 1
    hidden_size: int = 768


@dataclass(frozen=True, slots=True)
class ConvNextConfig:
    """A stack of ConvNeXt blocks between two convolutions: both decoders and the encoder."""

    input_size: int = 384
    bottleneck: int = 128
    hidden_size: int = 512
    intermediate_size: int = 2048
    output_size: int = 384
    num_layers: int = 12


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """Hidden states to log-mel."""

    stack: ConvNextConfig = ConvNextConfig()
    num_mels: int = 100


@dataclass(frozen=True, slots=True)
class DvaeConfig:
    """Codes to log-mel, and sound to codes."""

    decoder: ConvNextConfig = ConvNextConfig(512, 128, 256, 1024, 512)
    encoder: ConvNextConfig = ConvNextConfig(512, 128, 256, 1024, 1024)
    num_mels: int = 100
    group_size: int = 512


@dataclass(frozen=True, slots=True)
class VocoderConfig:
    num_mels: int = 100
    hidden_size: int = 512
    intermediate_size: int = 1536
    num_layers: int = 8
    num_fft: int = 1024

    @property
    def hop(self) -> int:
        return self.num_fft // 4


@dataclass(frozen=True, slots=True)
class ModelConfig:
    trunk: TrunkConfig = TrunkConfig()
    embedding: EmbeddingConfig = EmbeddingConfig()
    decoder: DecoderConfig = DecoderConfig()
    dvae: DvaeConfig = DvaeConfig()
    vocoder: VocoderConfig = VocoderConfig()


def read_trunk_config(path: Path) -> TrunkConfig:
    """The trunk's dimensions from gpt/config.json, in the older or the newer spelling.

    Raises:
        WeightsError: not such a file, or a trunk of another kind.
    """
    try:
        data = json.loads(path.read_bytes())
        config = _parse_trunk(data)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise WeightsError(f"{path} is not a configuration of the trunk: {error!r}.") from error
    _check_trunk(path, data, config)
    return config


def _parse_trunk(data: dict[str, Any]) -> TrunkConfig:
    rope = data.get("rope_parameters") or {}
    return TrunkConfig(
        hidden_size=int(data["hidden_size"]),
        intermediate_size=int(data["intermediate_size"]),
        num_layers=int(data["num_hidden_layers"]),
        num_heads=int(data["num_attention_heads"]),
        rms_norm_eps=float(data.get("rms_norm_eps", 1e-6)),
        rope_theta=float(rope.get("rope_theta", data.get("rope_theta", 10_000.0))),
        max_positions=int(data.get("max_position_embeddings", 4096)),
    )


def _check_trunk(path: Path, data: dict[str, Any], config: TrunkConfig) -> None:
    sizes = (config.hidden_size, config.intermediate_size, config.num_layers, config.num_heads)
    rope = data.get("rope_parameters") or {}
    scaling = data.get("rope_scaling")
    faults = {
        "sizes must be positive": min(sizes) < 1 or config.max_positions < 1,
        "hidden_size must be num_attention_heads even heads": min(sizes) > 0
        and (config.hidden_size % (2 * config.num_heads) != 0),
        "grouped keys and values are not ChatTTS's": data.get("num_key_value_heads")
        not in {None, config.num_heads},
        "head_dim must be hidden_size / num_attention_heads": config.num_heads > 0
        and data.get("head_dim") not in {None, config.head_dim},
        "the activation must be silu": data.get("hidden_act", "silu") != "silu",
        "scaled rotary positions are not ChatTTS's": scaling is not None
        or rope.get("rope_type", "default") != "default",
    }
    for fault, is_present in faults.items():
        if is_present:
            raise WeightsError(f"{path}: {fault}.")
