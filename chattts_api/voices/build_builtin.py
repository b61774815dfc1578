"""Write data/builtin.json anew: `python -m chattts_api.voices.build_builtin`."""

from chattts_api.voices.builtin import DATA_FILE, render

if __name__ == "__main__":
    DATA_FILE.write_text(render(), encoding="utf-8", newline="\n")
