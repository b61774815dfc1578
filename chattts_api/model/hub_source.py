"""Where the weights are fetched from: the Hugging Face hub, a mirror of it, or ModelScope."""

from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import quote, urlencode, urlsplit

from chattts_api.errors import SetupError
from chattts_api.model.weights_layout import HUB_REPOSITORY, HUB_REVISION, OfficialFile

HUGGING_FACE: Final = "https://huggingface.co"
MODELSCOPE: Final = "https://www.modelscope.cn"
# A copy of the hub's files; their hashes are checked like those of every other source.
MODELSCOPE_REPOSITORY: Final = "AI-ModelScope/ChatTTS"


@dataclass(frozen=True, slots=True)
class HubSource:
    """A server and how its addresses are formed."""

    endpoint: str
    kind: Literal["huggingface", "modelscope"]

    def url(self, file: OfficialFile) -> str:
        if self.kind == "modelscope":
            query = urlencode({"Revision": "master", "FilePath": file.hub_path})
            return f"{self.endpoint}/api/v1/models/{MODELSCOPE_REPOSITORY}/repo?{query}"
        return f"{self.endpoint}/{HUB_REPOSITORY}/resolve/{HUB_REVISION}/{quote(file.hub_path)}"


def hub_source(endpoint: str | None = None) -> HubSource:
    """The source of an `HF_ENDPOINT`: None or empty for the hub, `modelscope` or its address.

    Raises:
        SetupError: not an http or https address.
    """
    text = (endpoint or HUGGING_FACE).strip().rstrip("/")
    if text.casefold() == "modelscope":
        text = MODELSCOPE
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise SetupError(
            "HF_ENDPOINT must be an http or https address such as https://hf-mirror.com, "
            "or modelscope."
        )
    host = parts.hostname.casefold()
    is_modelscope = host in {"modelscope.cn", "modelscope.ai"} or host.endswith(
        (".modelscope.cn", ".modelscope.ai")
    )
    return HubSource(text, "modelscope" if is_modelscope else "huggingface")
