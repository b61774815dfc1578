"""A row runner without a model: each row says what to do in its text.

`end=N` ends after N codes (default: never), `break=N` goes non-finite at step N, `raise=STAGE`
raises in begin, step or vocode, `nan` gives sound that is not finite, `quiet=N` is silent from
step N on. A clause `@A` holds for attempt A alone.
"""

import re
import threading

import numpy as np

from chattts_api.engine.slots import SlotTable, StepOutcome
from chattts_api.engine.windows import FRAME_SAMPLES
from chattts_api.types import STEP_SAMPLES


class FakeRunner:
    device_name = "fake"
    dtype_name = "float32"

    def __init__(self, num_slots=4):
        self.table = SlotTable(num_slots)
        self.rules = {}
        self.attempts = {}
        self.begun = []
        self.released = []
        self.step_sizes = []
        self.gate = threading.Event()
        self.gate.set()
        self.fatal = None

    def begin(self, slot, prompt, row):
        text = prompt.text
        attempt = self.attempts[text] = self.attempts.get(text, -1) + 1
        rules = {}
        for clause in text.split():
            match = re.fullmatch(r"(\w+)(?:=(\w+))?(?:@(\d+))?", clause)
            if match and match[3] in (None, str(attempt)):
                rules[match[1]] = match[2]
        self.rules[slot] = rules
        self.begun.append((slot, prompt, row))
        if rules.get("raise") == "begin":
            raise ValueError("poisoned in begin")
        self.table.assign(slot, len(text), row)

    def step(self, slots):
        self.gate.wait(10)
        if self.fatal is not None:
            raise self.fatal
        for slot in slots:
            if self.rules[slot].get("raise") == "step":
                raise ValueError("poisoned in step")
        self.step_sizes.append(len(slots))
        made = self.table.num_steps[slots]
        ends = np.array([int(self.rules[s].get("end", 10**9)) for s in slots])
        breaks = np.array([int(self.rules[s].get("break", 10**9)) for s in slots])
        outcome = StepOutcome(slots, made >= ends, made >= breaks)
        self.table.num_steps[slots] += ~(outcome.ended | outcome.broken)
        return outcome

    def vocode(self, windows):
        sounds = []
        for slot, window in windows:
            rules = self.rules[slot]
            if rules.get("raise") == "vocode":
                raise ValueError("poisoned in vocode")
            n = (2 * window.num_steps - 1) * FRAME_SAMPLES
            at = window.start * STEP_SAMPLES + np.arange(n)
            sound = (0.1 * np.sin(at * 0.05)).astype(np.float32)
            if "quiet" in rules:
                sound[at >= int(rules["quiet"]) * STEP_SAMPLES] = 0
            if "nan" in rules:
                sound[0] = np.nan
            sounds.append(sound)
        return sounds

    def text_ids(self, slot):
        return (1, 2, 3)

    def release(self, slot):
        self.released.append(slot)

    def warm_up(self):
        pass
