"""The nine official files of ChatTTS: where they lie, how large they are, what they hash to.

Knows names only; reading them is `loading.py`'s, fetching and checking them `hub.py`'s.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from chattts_api.errors import WeightsError

HUB_REPOSITORY: Final = "2Noise/ChatTTS"
HUB_REVISION: Final = "1a3c04a8b0651689bd9242fbb55b1f4b5a9aef84"
ASSET_FOLDER: Final = "asset"

DECODER: Final = "Decoder.safetensors"
DVAE: Final = "DVAE.safetensors"
EMBED: Final = "Embed.safetensors"
VOCOS: Final = "Vocos.safetensors"
GPT_CONFIG: Final = "gpt/config.json"
GPT: Final = "gpt/model.safetensors"
SPECIAL_TOKENS: Final = "tokenizer/special_tokens_map.json"
TOKENIZER_CONFIG: Final = "tokenizer/tokenizer_config.json"
TOKENIZER: Final = "tokenizer/tokenizer.json"


@dataclass(frozen=True, slots=True)
class OfficialFile:
    """One file of the published model.

    Attributes:
        name: relative to the asset folder, with forward slashes.
    """

    name: str
    num_bytes: int
    sha256: str

    @property
    def hub_path(self) -> str:
        """Its path in the hub's repository."""
        return f"{ASSET_FOLDER}/{self.name}"


OFFICIAL_FILES: Final = (
    OfficialFile(
        GPT_CONFIG, 762, "0aaa1ecd96c49ad4f473459eb1982fa7ad79fa5de08cde2781bf6ad1f9a0c236"
    ),
    OfficialFile(
        SPECIAL_TOKENS, 7847, "bd0ac9d9bb1657996b5c5fbcaa7d80f8de530d01a283da97f89deae5b1b8d011"
    ),
    OfficialFile(
        TOKENIZER_CONFIG, 11028, "43e9d658b554fa5ee8d8e1d763349323bfef1ed7a89c0794220ab8861387d421"
    ),
    OfficialFile(
        TOKENIZER, 448604, "843838a64e121e23e774cc75874c6fe862198d9f7dd43747914633a8fd89c20e"
    ),
    OfficialFile(
        VOCOS, 54348240, "07e5561491cce41f7f90cfdb94b2ff263ff5742c3d89339db99b17ad82cc3f44"
    ),
    OfficialFile(
        DVAE, 60359112, "1d0b044a8368c0513100a2eca98456b289e6be6a18b7a63be1bcaa315ea874d9"
    ),
    OfficialFile(
        DECODER, 103694920, "77aa55e0a977949c4733df3c6f876fa85860d3298cba63295a7bc6901729d4e0"
    ),
    OfficialFile(
        EMBED, 145598536, "2ff0be7134934155741b643b74e32fb6bf3eec41257984459b2ed60cdb4c48b0"
    ),
    OfficialFile(
        GPT, 853423872, "cd0806fd971f52f6a22c923ec64982b305e817bcc41ca83417fcf9141b984a0f"
    ),
)

OFFICIAL_BY_NAME: Final[Mapping[str, OfficialFile]] = MappingProxyType(
    {file.name: file for file in OFFICIAL_FILES}
)


def find_asset_folder(model_dir: Path) -> Path:
    """The folder that holds the files: `model_dir/asset`, or `model_dir` itself.

    Raises:
        WeightsError: neither is there with all nine files; the message names those missing.
    """
    if not model_dir.is_dir():
        raise WeightsError(f"The model folder {model_dir} does not exist.")
    nested = model_dir / ASSET_FOLDER
    folder = nested if nested.is_dir() else model_dir
    missing = missing_files(folder)
    if missing:
        raise WeightsError(f"The model folder {folder} lacks {', '.join(missing)}.")
    return folder


def missing_files(folder: Path) -> list[str]:
    """The names of the official files that an asset folder lacks."""
    return [file.name for file in OFFICIAL_FILES if not (folder / file.name).is_file()]
