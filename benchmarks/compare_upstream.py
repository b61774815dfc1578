"""Upstream ChatTTS 0.2.5 and this server on the same weights, in turn, in one run: ratios.

Upstream runs in its own environment, so that its pins never touch the product's:

    python3 -m venv upstream && cd upstream
    bin/pip install torch==2.13.0 transformers==5.24.0 numpy numba einops einx omegaconf tqdm \
        pyyaml requests scipy safetensors av
    bin/pip install --no-deps ChatTTS==0.2.5 torchaudio==2.11.0 vocos==0.1.0 \
        vector-quantize-pytorch==1.14.24 encodec pybase16384
    rm -r lib/python3*/site-packages/torchaudio/lib   # native part for CUDA; not needed here

    python -m chattts_api weights random /tmp/full --size full
    python benchmarks/compare_upstream.py --model-dir /tmp/full --upstream upstream/bin/python
"""

import argparse
import json
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

# About 40 ids with the control tokens around it.
TEXT = "今天天气真不错我们一起去公园散步吧路上可以看看新开的花店再买一杯咖啡慢慢走回来"
STEP_S = 512 / 24_000


@dataclass(frozen=True, slots=True)
class Figures:
    """What one side needed for rows of `steps` forced steps."""

    ms_per_step: dict[int, float]
    audio_s_per_s: dict[int, float]
    first_audio_ms: float
    peak_mb: float


def run_upstream(python: str, asset: Path, rows: list[int], steps: int) -> Figures:
    request = {"asset": str(asset), "text": [TEXT], "rows": rows, "steps": steps}
    worker = Path(__file__).with_name("upstream_worker.py")
    done = subprocess.run(
        [python, str(worker)],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=True,
    )
    answer = json.loads(done.stdout.splitlines()[-1])
    totals = {row["rows"]: row["total_s"] for row in answer["rows"]}
    return Figures(
        {n: 1000 * total / steps for n, total in totals.items()},
        {n: n * steps * STEP_S / total for n, total in totals.items()},
        1000 * answer["first_audio_s"],
        answer["peak_mb"],
    )


def run_product(model_dir: Path, rows: list[int], steps: int) -> Figures:
    command = [sys.executable, "-m", "chattts_api", "bench", "--json", "--model-dir"]
    command += [str(model_dir), "--steps", str(steps), "--concurrency", ",".join(map(str, rows))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return Figures(
        {line["concurrency"]: line["ms_per_step"] for line in lines},
        {line["concurrency"]: line["audio_s_per_s"] for line in lines},
        lines[0]["first_audio_ms_p50"],
        max(line["rss_mb"] for line in lines),
    )


def median(runs: list[Figures]) -> Figures:
    def over(name: str) -> dict[int, float]:
        keys = getattr(runs[0], name)
        return {n: statistics.median(getattr(run, name)[n] for run in runs) for n in keys}

    return Figures(
        over("ms_per_step"),
        over("audio_s_per_s"),
        statistics.median(run.first_audio_ms for run in runs),
        max(run.peak_mb for run in runs),
    )


def report(upstream: Figures, product: Figures, steps: int) -> None:
    rows = [("first audio, idle, ms", upstream.first_audio_ms, product.first_audio_ms, False)]
    one = upstream.ms_per_step[1], product.ms_per_step[1]
    rows.append(("one row, ms per step", *one, False))
    rtf = tuple(ms / 1000 / STEP_S for ms in one)
    rows.append(("one row, real-time factor", *rtf, False))
    best = max(upstream.audio_s_per_s.values())
    for n, audio in product.audio_s_per_s.items():
        rows.append((f"{n} rows, s of audio per s (upstream: its best)", best, audio, True))
    rows.append(("peak memory, MB", upstream.peak_mb, product.peak_mb, False))
    print(f"{steps} forced steps a row; ratio: how many times better\n")
    print("| | upstream 0.2.5 | this server | ratio |\n|---|---|---|---|")
    for name, theirs, ours, is_more_better in rows:
        ratio = ours / theirs if is_more_better else theirs / ours
        print(f"| {name} | {theirs:.2f} | {ours:.2f} | {ratio:.1f} x |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model-dir", type=Path, required=True)
    parser.add_argument("--upstream", required=True, help="upstream's Python")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    asset = args.model_dir / "asset"
    theirs, ours = [], []
    for _ in range(args.rounds):
        theirs.append(run_upstream(args.upstream, asset, [1, 4], args.steps))
        ours.append(run_product(args.model_dir, [1, 4, 8, 16, 32], args.steps))
    report(median(theirs), median(ours), args.steps)


if __name__ == "__main__":
    main()
