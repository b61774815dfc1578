"""Who speaks how: a voice, a pace and a style for each role of a script."""

from dataclasses import dataclass
from typing import Final

import gradio as gr
from gradio.blocks import Block

from chattts_api.ui.loads import Loads
from chattts_api.ui.words import label

MAX_CAST: Final = 8
DEFAULT_CAST: Final = ("qinghe", "mowen", "xiaoman", "jianxing", "nova", "onyx", "coral", "echo")
_VALUES: Final = 3


@dataclass(frozen=True, slots=True, eq=False)
class CastPanel:
    """Rows for up to eight roles; those beyond speak with the last row's voice."""

    rows: tuple[gr.Row, ...]
    inputs: tuple[gr.components.Component, ...]

    def shown_for(self, roles: tuple[str, ...], narrator: str) -> list[object]:
        """Updates of rows and voices: each row named by its role."""
        updates: list[object] = []
        for number in range(MAX_CAST):
            is_used = number < len(roles)
            name = (roles[number] or narrator) if is_used else ""
            updates += [gr.update(visible=is_used), gr.update(label=name or "-")]
        return updates

    @property
    def outputs(self) -> list[Block]:
        voices = self.inputs[::_VALUES]
        return [c for pair in zip(self.rows, voices, strict=True) for c in pair]


def build_cast(loads: Loads) -> CastPanel:
    rows: list[gr.Row] = []
    inputs: list[gr.components.Component] = []
    for number in range(MAX_CAST):
        with gr.Row(visible=False) as row:
            voice = gr.Dropdown(
                choices=[(DEFAULT_CAST[number], DEFAULT_CAST[number])],
                value=DEFAULT_CAST[number],
                label="-",
                allow_custom_value=True,
                elem_id=f"cast-{number}",
                min_width=180,
            )
            speed = gr.Slider(
                0.5,
                2,
                1,
                step=0.05,
                label=label("speed"),
                elem_id=f"cast-speed-{number}",
                min_width=140,
            )
            pace = gr.Slider(
                0, 9, 5, step=1, label=label("pace"), elem_id=f"cast-pace-{number}", min_width=140
            )
        loads.voices(voice)
        rows.append(row)
        inputs += [voice, speed, pace]
    return CastPanel(tuple(rows), tuple(inputs))


def cast_fields(roles: tuple[str, ...], values: tuple[object, ...]) -> dict[str, dict[str, object]]:
    """The fields of a request for each role."""
    fields: dict[str, dict[str, object]] = {}
    for number, role in enumerate(roles):
        at = min(number, MAX_CAST - 1) * _VALUES
        voice, speed, pace = values[at : at + _VALUES]
        given: dict[str, object] = {"voice": voice or None}
        if isinstance(speed, int | float) and speed != 1:
            given["speed"] = float(speed)
        if isinstance(pace, int | float) and pace != 5:
            given["speed_token"] = round(pace)
        fields[role] = given
    return fields
