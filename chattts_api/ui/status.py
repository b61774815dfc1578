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


def turns_done(done: int, total: int, seconds: float, visitor: Visitor) -> str:
    """How far a dialogue, a chapter or a batch is."""
    figures = visitor.say("turns_progress", done=done, all=total, seconds=f"{seconds:.1f}")
    is_done = done == total
    sentence = visitor.say("turns_spoken" if is_done else "speaking")
    return (
        f'<div class="run" data-done="{str(is_done).lower()}">'
        f'<progress max="{total}" value="{done}" '
        f'aria-label="{escape(visitor.say("progress_name"))}"></progress>'
        f'<span class="run-figures">{escape(figures)}</span>'
        f'<span class="run-sentence" role="status">{escape(sentence)}</span></div>'
    )
