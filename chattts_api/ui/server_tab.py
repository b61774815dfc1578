"""The Server tab: the engine's figures, drawn in the browser from /ui/server.json."""

import os
import resource
import sys

import gradio as gr

from chattts_api.ui.player import asset
from chattts_api.ui.studio import Studio


def build_server_tab() -> None:
    gr.HTML(
        html_template='<div class="server" data-part="server"></div>',
        js_on_load=asset("server.js"),
        elem_id="server",
        apply_default_css=False,
    )


def server_figures(studio: Studio) -> dict[str, object]:
    """What the tab draws: names as they are, numbers as they stand now."""
    stats = studio.stats()
    return {
        "engine": stats.engine,
        "device": stats.device,
        "dtype": stats.dtype,
        "is_ready": stats.is_ready,
        "notice": stats.notice,
        "progress": stats.progress,
        "waiting": stats.num_waiting,
        "running": stats.num_running,
        "paused": stats.num_paused,
        "slots": stats.num_slots,
        "queued_s": stats.queued_s,
        "steps": stats.num_steps,
        "rows": stats.num_rows,
        "finished": stats.num_finished,
        "failed": stats.num_failed,
        "aborted": stats.num_aborted,
        "retried": stats.num_retried,
        "truncated": stats.num_truncated,
        "audio_s": stats.audio_s,
        "memory_mb": memory_mb(),
        "cpus": os.cpu_count(),
    }


def memory_mb() -> float:
    """The most this process has held; ru_maxrss is in KiB, on macOS in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20) if sys.platform == "darwin" else peak / 1024
