"""A model folder in the official layout -> a model, or a WeightsError that names what is wrong.

All quirks of the files end here: `asset/` or not, a `model.` prefix, tensors of no use.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from chattts_api.errors import WeightsError
from chattts_api.model import weights_layout as layout
from chattts_api.model.acoustic import TorchAcoustic
from chattts_api.model.checkpoint import Checkpoint, Shape
from chattts_api.model.config import ModelConfig, read_trunk_config
from chattts_api.model.decoder import build_decoder, decoder_config, decoder_shapes
from chattts_api.model.dvae import DVAE_UNUSED, Dvae, build_dvae, dvae_config, dvae_shapes
from chattts_api.model.embedding import (
    TorchEmbedding,
    embedding_config,
    embedding_shapes,
    read_embedding,
)
from chattts_api.model.prompts import PromptBuilder
from chattts_api.model.tokenizer import SpeechTokenizer
from chattts_api.model.trunk import TorchTrunk
from chattts_api.model.trunk_weights import (
    TRUNK_PREFIX,
    TRUNK_UNUSED,
    read_trunk,
    trunk_shapes,
)
from chattts_api.model.vocoder import VOCODER_UNUSED, build_vocoder, vocoder_config, vocoder_shapes

MAX_LENGTH = 2560  # 2,048 steps and a prompt


class ModelFolder:
    """The files of one model, checked, and its parts, each read when it is first asked for.

    Args:
        model_dir: the folder that holds `asset/`, or the asset folder itself.

    Raises:
        WeightsError: a file or tensor is missing, broken, misshapen or unknown.
    """

    def __init__(self, model_dir: Path, device: torch.device, dtype: torch.dtype) -> None:
        self.folder = layout.find_asset_folder(model_dir)
        self.device = device
        self.dtype = dtype
        self._gpt = Checkpoint(self.folder / layout.GPT, TRUNK_PREFIX, TRUNK_UNUSED)
        self._embed = Checkpoint(self.folder / layout.EMBED)
        self._decoder = Checkpoint(self.folder / layout.DECODER)
        self._vocoder = Checkpoint(self.folder / layout.VOCOS, unused=VOCODER_UNUSED)
        self._dvae = Checkpoint(self.folder / layout.DVAE, unused=DVAE_UNUSED)
        trunk = read_trunk_config(self.folder / layout.GPT_CONFIG)
        self.config = ModelConfig(
            trunk=trunk,
            embedding=embedding_config(self._embed, trunk.hidden_size),
            decoder=decoder_config(self._decoder),
            dvae=dvae_config(self._dvae),
            vocoder=vocoder_config(self._vocoder),
        )
        self._gpt.check(trunk_shapes(trunk))
        self._embed.check(embedding_shapes(self.config.embedding))
        self._decoder.check(decoder_shapes(self.config.decoder))
        self._vocoder.check(vocoder_shapes(self.config.vocoder))
        self._dvae.check(dvae_shapes(self.config.dvae))
        self._check_joints()

    def _check_joints(self) -> None:
        """What one part puts out is what the next takes in."""
        c = self.config
        joints = {
            f"{layout.DECODER}: half a hidden state": (
                2 * c.decoder.stack.input_size,
                c.trunk.hidden_size,
            ),
            f"{layout.VOCOS}: mels": (c.vocoder.num_mels, c.decoder.num_mels),
            f"{layout.DVAE}: mels": (c.dvae.num_mels, c.decoder.num_mels),
            f"{layout.DVAE}: decoder input": (c.dvae.decoder.input_size, c.dvae.group_size),
            f"{layout.DVAE}: encoder output": (c.dvae.encoder.output_size, 2 * c.dvae.group_size),
            f"{layout.TOKENIZER}: ids": (self.tokenizer.num_ids, c.embedding.num_text),
        }
        for place, (found, expected) in joints.items():
            if found != expected:
                raise WeightsError(f"{self.folder}/{place} {found}, expected {expected}.")

    @cached_property
    def tokenizer(self) -> SpeechTokenizer:
        return SpeechTokenizer(self.folder / layout.TOKENIZER)

    def trunk(self, num_slots: int, max_length: int) -> TorchTrunk:
        """A trunk with its own cache."""
        weights = read_trunk(self._gpt, self.config.trunk, self.device, self.dtype)
        length = min(max_length, self.config.trunk.max_positions)
        return TorchTrunk(self.config.trunk, weights, num_slots, length)

    def embedding(self) -> TorchEmbedding:
        return read_embedding(self._embed, self.config.embedding, self.device, self.dtype)

    def acoustic(self) -> TorchAcoustic:
        decoder = self._read(self._decoder, decoder_shapes(self.config.decoder), self.dtype)
        vocoder = self._read(self._vocoder, vocoder_shapes(self.config.vocoder), self.dtype)
        return TorchAcoustic(
            build_decoder(decoder, self.config.decoder),
            build_vocoder(vocoder, self.config.vocoder),
        )

    def dvae(self) -> Dvae:
        """In float32: a sample's codes are rounded, and would jump in a narrower type."""
        tensors = self._read(self._dvae, dvae_shapes(self.config.dvae), torch.float32)
        return build_dvae(tensors, self.config.dvae)

    def _read(
        self, checkpoint: Checkpoint, names: Mapping[str, Shape], dtype: torch.dtype
    ) -> dict[str, Tensor]:
        return {
            name: tensor.to(self.device) for name, tensor in checkpoint.read(names, dtype).items()
        }


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model ready to speak; what only sample voices need is read when they come."""

    config: ModelConfig
    tokenizer: SpeechTokenizer
    trunk: TorchTrunk
    embedding: TorchEmbedding
    acoustic: TorchAcoustic
    read_dvae: Callable[[], Dvae]

    @cached_property
    def dvae(self) -> Dvae:
        return self.read_dvae()

    @cached_property
    def prompts(self) -> PromptBuilder:
        return PromptBuilder(self.tokenizer, self.config.trunk.hidden_size)


def load_model(
    model_dir: Path,
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
    num_slots: int = 16,
    max_length: int = MAX_LENGTH,
) -> LoadedModel:
    """Everything that speech needs, on the device.

    Raises:
        WeightsError: naming the file and the tensor at fault.
    """
    folder = ModelFolder(model_dir, torch.device(device), dtype)
    return LoadedModel(
        config=folder.config,
        tokenizer=folder.tokenizer,
        trunk=folder.trunk(num_slots, max_length),
        embedding=folder.embedding(),
        acoustic=folder.acoustic(),
        read_dvae=folder.dvae,
    )
