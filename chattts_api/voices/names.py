"""What a saved voice may be called. A name is metadata, never a path."""

import unicodedata
from typing import Final

from chattts_api.errors import InvalidRequestError

MAX_NAME_CHARACTERS: Final = 64
_ALLOWED_MARKS = frozenset(" _-.·()（）")
_ALLOWED_CATEGORIES = "LMN"  # letters, combining marks, digits


def clean_name(name: str) -> str:
    """The name as it is stored: NFC, no spaces around.

    Raises:
        InvalidRequestError: empty, too long, or with other characters than a name needs.
    """
    cleaned = unicodedata.normalize("NFC", name).strip()
    is_named = any(unicodedata.category(c)[0] in "LN" for c in cleaned)
    is_allowed = all(
        c in _ALLOWED_MARKS or unicodedata.category(c)[0] in _ALLOWED_CATEGORIES for c in cleaned
    )
    if not (is_named and is_allowed and len(cleaned) <= MAX_NAME_CHARACTERS):
        raise InvalidRequestError(
            f"A voice's name is 1 to {MAX_NAME_CHARACTERS} letters (of any script), digits, "
            "spaces and _ - . ( ) ·",
            param="name",
        )
    return cleaned


def fold_name(name: str) -> str:
    """The form in which two names are the same name."""
    return unicodedata.normalize("NFC", name).strip().casefold()
