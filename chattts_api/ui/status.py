"""What the page says of a run: a bar, figures, and one sentence for screen readers."""

from html import escape

from chattts_api.ui.speaking import Progress
from chattts_api.ui.studio import Visitor


def running(progress: Progress, visitor: Visitor) -> str:
    figures = visitor.say(
        "progress",
        done=progress.segments_done,
        all=progress.num_segments,
        seconds=f"{progress.seconds:.1f}",
        rtf=f"{progress.rtf:.2f}",
    )
    key = "spoken_cut" if progress.is_cut else "spoken"
    sentence = (
        visitor.say(
            key, seconds=f"{progress.seconds:.1f}", engine=progress.engine, seed=progress.seed
        )
        if progress.is_done
        else visitor.say("speaking")
    )
    return (
        f'<div class="run" data-done="{str(progress.is_done).lower()}">'
        f'<progress max="{progress.num_segments}" value="{progress.segments_done}" '
        f'aria-label="{escape(visitor.say("progress_name"))}"></progress>'
        f'<span class="run-figures">{escape(figures)}</span>'
        f'<span class="run-sentence" role="status">{escape(sentence)}</span></div>'
    )


def failed(message: str) -> str:
    return f'<div class="run run-failed" role="alert">{escape(message)}</div>'


def note(message: str) -> str:
    return f'<div class="run run-note" role="status">{escape(message)}</div>'
