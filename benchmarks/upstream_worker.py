"""Times upstream ChatTTS 0.2.5; run by `compare_upstream.py` with upstream's own Python.

Reads a JSON request from standard input, writes one JSON line. Nothing of the product is imported.
"""

import json
import resource
import sys
import time


def load(asset: str):
    import ChatTTS
    import torch

    chat = ChatTTS.Chat()
    # `load` insists on the official hashes; `_load` takes the files as they are.
    chat._load(  # noqa: SLF001
        vocos_ckpt_path=f"{asset}/Vocos.safetensors",
        dvae_ckpt_path=f"{asset}/DVAE.safetensors",
        gpt_ckpt_path=f"{asset}/gpt",
        embed_path=f"{asset}/Embed.safetensors",
        decoder_ckpt_path=f"{asset}/Decoder.safetensors",
        tokenizer_path=f"{asset}/tokenizer",
        device=torch.device("cpu"),
    )
    return chat


def speak(chat, texts: list[str], steps: int, *, stream: bool):
    """Seconds to the first sound and to the last."""
    import ChatTTS

    params = ChatTTS.Chat.InferCodeParams(
        min_new_token=steps, max_new_token=steps, show_tqdm=False, ensure_non_empty=False
    )
    began = time.perf_counter()
    result = chat.infer(
        texts,
        stream=stream,
        skip_refine_text=True,
        split_text=False,
        do_text_normalization=False,
        do_homophone_replacement=False,
        params_infer_code=params,
    )
    first = None
    for _ in result if stream else [result]:
        first = first or time.perf_counter() - began
    return first, time.perf_counter() - began


def main() -> None:
    request = json.load(sys.stdin)
    chat = load(request["asset"])
    speak(chat, request["text"][:1], 8, stream=False)
    rows = []
    for rows_at_once in request["rows"]:
        texts = request["text"] * rows_at_once
        first, total = speak(chat, texts, request["steps"], stream=False)
        rows.append({"rows": rows_at_once, "total_s": total})
    first, _ = speak(chat, request["text"], request["steps"], stream=True)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(json.dumps({"rows": rows, "first_audio_s": first, "peak_mb": peak_mb}) + "\n")


if __name__ == "__main__":
    main()
