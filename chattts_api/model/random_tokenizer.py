"""A tokenizer for random weights, made here: BERT-style, with the official traps and control ids.

Its vocabulary is the Han characters of U+4E00..U+9FFF, letters, digits and marks, filled up so
that the 50 control tokens have the ids that they have in the official one. Truncation, padding
and [CLS] ... [SEP] are switched on, as there.
"""

import json
from pathlib import Path
from typing import Any, Final

from chattts_api.model import weights_layout as layout
from chattts_api.model.control_tokens import BERT_TOKENS, CONTROL_TOKENS

NUM_BASE: Final = 21_128
_HAN: Final = range(0x4E00, 0xA000)
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
_DIGITS: Final = "0123456789"
_MARKS: Final = "，。、？！,.?!'-:;()"
_MAX_LENGTH: Final = 256


def write_tokenizer(folder: Path) -> None:
    """The three files of the tokenizer folder."""
    files = {
        layout.TOKENIZER: _tokenizer(),
        layout.TOKENIZER_CONFIG: _tokenizer_config(),
        layout.SPECIAL_TOKENS: _special_tokens(),
    }
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def _vocabulary() -> list[str]:
    characters = [*_LETTERS, *_DIGITS]
    tokens = [*BERT_TOKENS, *_MARKS, *characters, *(f"##{c}" for c in characters)]
    num_han = min(len(_HAN), NUM_BASE - len(tokens))
    tokens += [chr(point) for point in _HAN[:num_han]]
    return tokens + [f"[unused{n}]" for n in range(NUM_BASE - len(tokens))]


def _tokenizer() -> dict[str, Any]:
    vocabulary = _vocabulary()
    added = list(enumerate(BERT_TOKENS))
    added += list(enumerate(CONTROL_TOKENS, start=len(vocabulary)))
    return {
        "version": "1.0",
        "truncation": {
            "direction": "Right",
            "max_length": _MAX_LENGTH,
            "strategy": "LongestFirst",
            "stride": 0,
        },
        "padding": {
            "strategy": {"Fixed": _MAX_LENGTH},
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "[PAD]",
        },
        "added_tokens": [{"id": i, **_token(content), "special": True} for i, content in added],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": _post_processor(),
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {token: i for i, token in enumerate(vocabulary)},
        },
    }


def _post_processor() -> dict[str, Any]:
    def special(token: str, type_id: int) -> dict[str, Any]:
        return {"SpecialToken": {"id": token, "type_id": type_id}}

    def sequence(name: str, type_id: int) -> dict[str, Any]:
        return {"Sequence": {"id": name, "type_id": type_id}}

    single = [special("[CLS]", 0), sequence("A", 0), special("[SEP]", 0)]
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, sequence("B", 1), special("[SEP]", 1)],
        "special_tokens": {
            token: {"id": token, "ids": [BERT_TOKENS.index(token)], "tokens": [token]}
            for token in ("[CLS]", "[SEP]")
        },
    }


def _tokenizer_config() -> dict[str, Any]:
    return {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "strip_accents": None}


def _special_tokens() -> dict[str, Any]:
    named = {f"{token[1:-1].lower()}_token": _token(token) for token in BERT_TOKENS}
    return {"additional_special_tokens": [_token(t) for t in CONTROL_TOKENS], **named}


def _token(content: str) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"content": content, **flags}
