import itertools
import re

import pytest

from chattts_api.audio.subtitles import ESTIMATE_NOTE, Cue, lines, to_srt, to_webvtt, words


def test_srt():
    cues = [
        Cue(0.0, 1.5, "Hello <b>you</b> & me"),
        Cue(3661.0015, 3662.9996, "你好，世界。", "小明"),
    ]
    assert to_srt(cues) == (
        "1\n00:00:00,000 --> 00:00:01,500\nHello <b>you</b> & me\n\n"
        "2\n01:01:01,002 --> 01:01:03,000\n小明: 你好，世界。\n\n"
    )


def test_webvtt_says_that_times_are_estimates_and_escapes():
    cue = Cue(0.25, 1.0, "a < b --> c & d", "R&B <x>")
    assert to_webvtt([cue]) == (
        f"WEBVTT\n\nNOTE {ESTIMATE_NOTE}\n\n"
        "00:00:00.250 --> 00:00:01.000\n"
        "<v R&amp;B &lt;x&gt;>a &lt; b --&gt; c &amp; d\n\n"
    )


@pytest.mark.parametrize("write", [to_srt, to_webvtt])
def test_no_text_can_break_out_of_its_cue(write):
    text = "one\n\n2\n00:00:09.000 --> 00:00:10.000\nforged"
    out = write([Cue(0, 1, text, "a\n\nb"), Cue(1, 2, "[uv_break]"), Cue(2, 3, " \n")])
    assert out.count("-->") == 1
    assert len(re.findall(r"^\S*\d\d:\d\d:\d\d", out, re.MULTILINE)) == 1


def test_markers_are_not_shown():
    assert "[" not in to_srt([Cue(0, 1, "好[uv_break]的 [laugh] ok[lbreak]")])


def test_words_share_the_time_of_their_segment():
    timed = words(Cue(2.0, 6.0, "你好，big world。"))
    assert [w.text for w in timed] == ["你", "好", "，", "big", "world", "。"]
    assert timed[0].start_s == 2.0
    assert timed[-1].end_s == pytest.approx(6.0)
    for before, after in itertools.pairwise(timed):
        assert before.end_s == after.start_s
        assert before.end_s > before.start_s
    long, short = timed[4], timed[3]
    assert long.end_s - long.start_s > short.end_s - short.start_s


def test_lines_are_short_keep_all_words_and_end_at_sentences():
    text = (
        "今天天气很好，我们去公园玩吧。Then we went home, had a very long and pleasant dinner, "
        "and talked about it. 好的！"
    )
    cut = lines(Cue(0, 20, text, "A"))
    assert "".join(c.text for c in cut).replace(" ", "") == text.replace(" ", "")
    assert any(c.text.endswith("玩吧。") for c in cut)
    assert cut[-1].text == "好的！"
    for cue in cut:
        assert cue.speaker == "A"
        assert sum(2 if ord(c) >= 0x2E80 else 1 for c in cue.text) <= 44
    for before, after in itertools.pairwise(cut):
        assert before.end_s == pytest.approx(after.start_s)


def test_one_endless_word_is_one_line():
    (cue,) = lines(Cue(0, 5, "x" * 300))
    assert cue.end_s == pytest.approx(5)


def test_nothing_to_show_is_no_cue():
    assert lines(Cue(0, 1, "[laugh]")) == []
    assert to_srt([]) == ""
