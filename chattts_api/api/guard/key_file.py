"""The file of keys: one JSON object a line, with the SHA-256 of each key and never the key."""

import hashlib
import json
import os
import secrets
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from chattts_api.errors import SetupError

NAME_PATTERN = r"^[A-Za-z0-9._-]{1,64}$"


class StoredKey(BaseModel):
    """One line of the key file."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True)

    name: str = Field(pattern=NAME_PATTERN)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    admin: bool = False
    requests: int | None = Field(default=None, ge=1)
    characters: int | None = Field(default=None, ge=1)
    concurrency: int | None = Field(default=None, ge=1)
    expires: str | None = None

    @field_validator("expires")
    @classmethod
    def _is_time(cls, value: str | None) -> str | None:
        if value is not None:
            parse_time(value)
        return value

    @property
    def expires_s(self) -> float | None:
        """Seconds since the epoch after which the key is refused."""
        return None if self.expires is None else parse_time(self.expires)


def hash_key(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def parse_time(text: str) -> float:
    """A date or date and time in ISO 8601, UTC where no zone is given. Raises ValueError."""
    when = datetime.fromisoformat(text)
    return (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()


def read_keys(path: Path) -> tuple[StoredKey, ...]:
    """Raises SetupError that names the line at fault."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise SetupError(
            f"CHATTTS_API_KEYS_FILE: {path} cannot be read. "
            "Make it with `python -m chattts_api keys add NAME`."
        ) from None
    keys: list[StoredKey] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            keys.append(StoredKey.model_validate(json.loads(line)))
        except (ValueError, ValidationError, RecursionError):
            raise SetupError(
                f"CHATTTS_API_KEYS_FILE: line {number} of {path} is not a key."
            ) from None
    if len({key.name for key in keys}) < len(keys):
        raise SetupError(f"CHATTTS_API_KEYS_FILE: a name stands twice in {path}.")
    return tuple(keys)


def add_key(path: Path, template: StoredKey) -> str:
    """Add a key like `template`, whose sha256 is replaced, and return the key: the only time.

    Raises SetupError if the name is taken.
    """
    keys = read_keys(path) if path.exists() else ()
    if any(key.name == template.name for key in keys):
        raise SetupError(f"There is a key named {template.name} already: revoke it first.")
    key = f"sk-{secrets.token_urlsafe(32)}"
    _write(path, (*keys, template.model_copy(update={"sha256": hash_key(key)})))
    return key


def revoke_key(path: Path, name: str) -> None:
    """Raises SetupError if there is no such key."""
    keys = read_keys(path)
    kept = tuple(key for key in keys if key.name != name)
    if len(kept) == len(keys):
        raise SetupError(f"There is no key named {name}.")
    _write(path, kept)


def _write(path: Path, keys: tuple[StoredKey, ...]) -> None:
    """Replace the file as a whole, so that a server never reads half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.writelines(key.model_dump_json() + "\n" for key in keys)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
