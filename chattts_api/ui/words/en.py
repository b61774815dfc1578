"""The page in English."""

from typing import Final

EN: Final[dict[str, str]] = {
    "heading": "# ChatTTS studio",
    "tab_speak": "Speak",
    "text": "Text",
    "text_hint": "What should be said?",
    "voice": "Voice",
    "seed": "Seed",
    "seed_hint": "Empty: drawn anew each time",
    "speed": "Speed",
    "speak": "Speak",
    "stop": "Stop",
    "player": "The sound",
    "speaking": "Speaking.",
    "spoken": "{seconds} s spoken by {engine}, seed {seed}.",
    "spoken_cut": "{seconds} s spoken by {engine}, seed {seed}. A sentence was cut at its limit.",
    "progress": "{done} of {all} segments · {seconds} s · real-time factor {rtf}",
    "progress_name": "Segments spoken",
    "error_internal": "Something went wrong on the server.",
    "js_play": "Play",
    "js_pause": "Pause",
    "js_position": "Position",
    "js_download": "Download",
    "js_lost": "The sound is no longer there.",
}
