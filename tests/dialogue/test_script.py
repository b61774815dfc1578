"""Scripts: lines and tables to turns."""

import pytest

from chattts_api.dialogue.script import Turn, parse_script, roles_of, script_of_rows
from chattts_api.errors import ContentTooLargeError, EmptyInputError, InvalidRequestError


def test_lines_name_their_speaker_in_either_colon_and_go_on_without_a_name() -> None:
    script = "小明：你好吗？\n\nAnna: Fine, thank you.\nAnd you?\n[pause 1.5s]\n小明: 我很好。"
    assert parse_script(script) == (
        Turn("小明", "你好吗？"),
        Turn("Anna", "Fine, thank you.\nAnd you?", 1.5),
        Turn("小明", "我很好。"),
    )


@pytest.mark.parametrize(
    "line",
    ["See http://example.com now", "12:30 is the time", "他说了，真的：是的", "Stop. Now: go"],
)
def test_a_line_that_names_nobody_is_the_narrators(line: str) -> None:
    assert parse_script(line) == (Turn("", line),)


def test_a_name_alone_on_its_line_speaks_the_lines_after_it() -> None:
    assert parse_script("Anna:\nHello.\nBob:\n") == (Turn("Anna", "Hello."),)


def test_tables_give_turns_and_pauses() -> None:
    rows = [
        ["Anna", "Hello", 0.2],
        ["Bob", " Hi ", ""],
        ["", "", ""],
        ["Bob", None],
        ["X", "y", 99],
    ]
    assert script_of_rows(rows) == (
        Turn("Anna", "Hello", 0.2),
        Turn("Bob", "Hi"),
        Turn("X", "y"),
    )


def test_roles_come_in_order_of_their_first_turn() -> None:
    assert roles_of(parse_script("b: x\na: y\nb: z")) == ("b", "a")


@pytest.mark.parametrize(
    ("script", "error"),
    [
        (" \n ", EmptyInputError),
        ("a:\nb:", EmptyInputError),
        ("a: x\n" * 501, InvalidRequestError),
        (
            "".join(f"r{chr(97 + i % 26)}{chr(97 + i // 26)}: x\n" for i in range(33)),
            InvalidRequestError,
        ),
        ("x" * 50_001, ContentTooLargeError),
    ],
)
def test_what_no_dialogue_holds_is_refused(script: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        parse_script(script)
