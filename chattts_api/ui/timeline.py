"""A picture of the turns on a time line, one lane a role."""

from collections.abc import Sequence
from html import escape

from chattts_api.dialogue.conversation import SpokenTurn
from chattts_api.ui.studio import Visitor

_WIDTH, _LANE, _LEFT = 640, 30, 90


def timeline_html(spoken: Sequence[SpokenTurn], visitor: Visitor) -> str:
    if not spoken:
        return ""
    narrator = visitor.say("narrator")
    roles = list(dict.fromkeys(turn.role for turn in spoken))
    end = max(turn.end_s for turn in spoken)
    scale = (_WIDTH - _LEFT - 8) / max(end, 1e-6)
    height = _LANE * len(roles) + 24
    bars: list[str] = []
    for lane, role in enumerate(roles):
        y = lane * _LANE
        name = escape((role or narrator)[:8])
        bars.append(f'<text x="0" y="{y + 20}">{name}</text>')
        for turn in (t for t in spoken if t.role == role):
            x = _LEFT + turn.start_s * scale
            width = max(2.0, (turn.end_s - turn.start_s) * scale)
            title = escape(f"{turn.start_s:.1f}-{turn.end_s:.1f} s: {turn.text[:80]}")
            bars.append(
                f'<rect class="lane-{lane % 6}" x="{x:.1f}" y="{y + 5}" width="{width:.1f}" '
                f'height="{_LANE - 9}" rx="4"><title>{title}</title></rect>'
            )
    bars.append(f'<text x="{_LEFT}" y="{height - 4}">0 s</text>')
    bars.append(f'<text x="{_WIDTH - 8}" y="{height - 4}" text-anchor="end">{end:.1f} s</text>')
    return (
        f'<svg class="timeline" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="{escape(visitor.say("timeline_name", turns=len(spoken)))}">'
        f"{''.join(bars)}</svg>"
    )
