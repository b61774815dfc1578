"""The 50 control tokens that ChatTTS adds to a BERT vocabulary, in the order of their ids."""

from typing import Final

CONTROL_TOKENS: Final = (
    *("[Sasr]", "[Pasr]", "[Easr]"),
    *("[Stts]", "[Ptts]", "[Etts]"),
    *("[Sbreak]", "[Pbreak]", "[Ebreak]"),
    *("[uv_break]", "[v_break]", "[lbreak]", "[llbreak]", "[undefine]", "[laugh]"),
    *("[spk_emb]", "[empty_spk]", "[music]", "[pure]"),
    *(f"[break_{n}]" for n in range(8)),
    *(f"[laugh_{n}]" for n in range(3)),
    *(f"[oral_{n}]" for n in range(10)),
    *(f"[speed_{n}]" for n in range(10)),
)

IN_TEXT_TOKENS: Final = ("[uv_break]", "[v_break]", "[lbreak]", "[llbreak]", "[laugh]")

BERT_TOKENS: Final = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
