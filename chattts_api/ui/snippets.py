"""The curl and Python lines that do the same as the page did."""

import json
import shlex
from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.types import Scope

_OPENAI_FIELDS = {"model", "input", "voice", "response_format", "speed", "instructions"}


def base_url(scope: Scope) -> str:
    """Where the visitor's browser found this server."""
    headers = Headers(scope=scope)
    scheme = "https" if scope.get("state", {}).get("is_secure") else scope.get("scheme", "http")
    return f"{scheme}://{headers.get('host', '127.0.0.1:8000')}"


def curl_lines(fields: Mapping[str, object], url: str) -> str:
    body = json.dumps(_body(fields), ensure_ascii=False)
    return (
        f"curl {url}/v1/audio/speech \\\n"
        '  -H "Authorization: Bearer $CHATTTS_API_KEY" \\\n'
        '  -H "Content-Type: application/json" \\\n'
        f"  -d {shlex.quote(body)} -o speech.mp3"
    )


def python_lines(fields: Mapping[str, object], url: str) -> str:
    """For the OpenAI client; fields that it does not know go in extra_body."""
    body = _body(fields)
    known = {k: v for k, v in body.items() if k in _OPENAI_FIELDS}
    extra = {k: v for k, v in body.items() if k not in _OPENAI_FIELDS}
    lines = [f"    {k}={v!r}," for k, v in known.items()]
    if extra:
        lines.append(f"    extra_body={extra!r},")
    arguments = "\n".join(lines)
    return (
        "import os\n\nfrom openai import OpenAI\n\n"
        f'client = OpenAI(base_url="{url}/v1", '
        'api_key=os.environ.get("CHATTTS_API_KEY", "none"))\n'
        "with client.audio.speech.with_streaming_response.create(\n"
        f"{arguments}\n) as answer:\n"
        '    answer.stream_to_file("speech.mp3")\n'
    )


def _body(fields: Mapping[str, object]) -> dict[str, object]:
    given = {k: v for k, v in fields.items() if v is not None}
    return {"model": "chattts", "response_format": "mp3", **given}
