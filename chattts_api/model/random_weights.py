"""Random weights in the official layout: the whole real code path without a download.

The sound is noise, finite and neither silent nor clipped; rows seldom end by themselves.
"""

import json
import math
from collections.abc import Mapping
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal
from zlib import crc32

import numpy as np
import numpy.typing as npt

from chattts_api.model import weights_layout as layout
from chattts_api.model.checkpoint import Shape
from chattts_api.model.config import (
    END_CODE,
    ConvNextConfig,
    DecoderConfig,
    DvaeConfig,
    EmbeddingConfig,
    ModelConfig,
    TrunkConfig,
    VocoderConfig,
)
from chattts_api.model.decoder import decoder_shapes
from chattts_api.model.dvae import dvae_shapes
from chattts_api.model.embedding import embedding_shapes
from chattts_api.model.mel import NUM_FFT, mel_filters
from chattts_api.model.random_tokenizer import write_tokenizer
from chattts_api.model.safetensors_writer import write_safetensors
from chattts_api.model.trunk_weights import trunk_shapes
from chattts_api.model.vocoder import vocoder_shapes

Size = Literal["tiny", "full"]
Floats = npt.NDArray[np.float32]

FULL: Final = ModelConfig()
TINY: Final = ModelConfig(
    trunk=TrunkConfig(hidden_size=64, intermediate_size=160, num_layers=3, num_heads=4),
    embedding=EmbeddingConfig(hidden_size=64),
    decoder=DecoderConfig(ConvNextConfig(32, 24, 48, 192, 32, 3)),
    dvae=DvaeConfig(
        decoder=ConvNextConfig(32, 24, 40, 160, 32, 3),
        encoder=ConvNextConfig(32, 24, 40, 160, 64, 3),
        group_size=32,
    ),
    vocoder=VocoderConfig(hidden_size=48, intermediate_size=96, num_layers=3),
)

_LOGIT_STD = 2.0  # peaked enough that temperature and top-k matter
_QUIET_END = 0.01  # the end code's logit stays near 0, far below the twenty highest
_LAYER_SCALE = 0.3
_LOG_MAGNITUDE = 0.5  # sound of about 0.07 RMS
_LOG_MAGNITUDE_STD = 0.7
_COEF = 100.0
_MEL_STD = 2.0
_GAINS: Final[Mapping[str, float]] = MappingProxyType(
    {
        "out_conv.weight": _MEL_STD / _COEF,
        "head.out.weight": _LOG_MAGNITUDE_STD,
        "downsample_conv.0.weight": _COEF / 10,
        "backbone.embed.weight": 1 / _MEL_STD,
    }
)


def write_random_weights(directory: Path, size: Size = "tiny", seed: int = 0) -> None:
    """Write the nine files under `directory/asset`, one tensor in memory at a time.

    `tiny` takes 12 MB and has a hidden size of 64; `full` has the official dimensions, 1.1 GB.
    """
    config = TINY if size == "tiny" else FULL
    folder = directory / layout.ASSET_FOLDER
    mels: dict[str, Shape] = {"mel_scale.fb": (NUM_FFT // 2 + 1, config.vocoder.num_mels)}
    buffers: dict[str, Shape] = mels | {"spectrogram.window": (NUM_FFT,)}
    files: dict[str, Mapping[str, Shape]] = {
        layout.GPT: trunk_shapes(config.trunk),
        layout.EMBED: embedding_shapes(config.embedding),
        layout.DECODER: decoder_shapes(config.decoder),
        layout.DVAE: dvae_shapes(config.dvae)
        | {f"preprocessor_mel.mel_spec.{name}": shape for name, shape in buffers.items()},
        layout.VOCOS: vocoder_shapes(config.vocoder)
        | {f"feature_extractor.mel_spec.{name}": shape for name, shape in buffers.items()}
        | {"head.istft.window": (NUM_FFT,)},
    }
    for name, shapes in files.items():
        values = _Values(config, np.random.Generator(np.random.Philox(seed + crc32(name.encode()))))
        write_safetensors(folder / name, shapes, values)
    _write_config(folder / layout.GPT_CONFIG, config.trunk)
    write_tokenizer(folder)


def _write_config(path: Path, config: TrunkConfig) -> None:
    data = {
        "architectures": ["LlamaModel"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "num_key_value_heads": config.num_heads,
        "rms_norm_eps": config.rms_norm_eps,
        "rope_theta": config.rope_theta,
        "max_position_embeddings": config.max_positions,
    }
    path.write_text(json.dumps(data, indent=2), encoding="utf-8")


class _Values:
    """Tensors by their official names, scaled so that activations keep their size."""

    def __init__(self, config: ModelConfig, random: np.random.Generator) -> None:
        self._config = config
        self._random = random

    def __call__(self, name: str, shape: Shape) -> Floats:
        if name.endswith("mel_scale.fb"):
            return mel_filters(shape[1]).numpy()
        if name.endswith(".window"):
            return np.hanning(shape[0] + 1)[:-1].astype(np.float32)
        if name == "coef":
            return np.full(shape, _COEF, np.float32)
        if name.endswith("original0"):
            return self._gains(name, shape)
        if len(shape) == 1:
            return self._vector(name, shape)
        return self._normal(shape) * np.float32(self._std(name, shape))

    def _normal(self, shape: Shape) -> Floats:
        return self._random.standard_normal(shape, np.float32)

    def _gains(self, name: str, shape: Shape) -> Floats:
        gains = np.full(shape, _LOGIT_STD, np.float32)
        if name.startswith("head_code."):
            gains[END_CODE] = _QUIET_END
        return gains

    def _vector(self, name: str, shape: Shape) -> Floats:
        noise = self._normal(shape) * np.float32(0.02)
        if name == "head.out.bias":
            noise[: shape[0] // 2] += _LOG_MAGNITUDE
        elif name.endswith("bias"):
            pass
        elif "norm" in name:
            noise += 1.0
        else:
            noise += _LAYER_SCALE
        return noise

    def _std(self, name: str, shape: Shape) -> float:
        if name.startswith("emb_"):
            return math.sqrt(1 / shape[1])
        return self._gain(name) / math.sqrt(prod(shape[1:]))

    def _gain(self, name: str) -> float:
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            return 1 / math.sqrt(2 * self._config.trunk.num_layers)
        return _GAINS.get(name, 1.0)
