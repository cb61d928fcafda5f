"""An option that does not exist is named, whatever else argparse would complain about first."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["eval", "--limt", "5"], "there is no option --limt; did you mean --limit?"),
        (["eval", "--limt=5"], "there is no option --limt; did you mean --limit?"),
        (["eval", "--limit", "5", "--defence", "vanilla"], "there is no option --defence; did you mean --defense?"),
        (["eval", "-limit", "5"], "there is no option -limit; did you mean --limit?"),
        (["eval", "--rnak", "1"], "there is no option --rnak; did you mean --rank?"),
        (["ask", "Who?", "--dcos", "."], "there is no option --dcos; did you mean --docs?"),
        (["report", "--outptu", "x"], "there is no option --outptu; did you mean --output?"),
        (["certify", "demo", "--limt", "1"], "there is no option --limt; did you mean --limit?"),
        (["eval", "--xyzzy", "1"], "there is no option --xyzzy; robustrag eval --help lists them"),
        (["--versoin"], "there is no option --versoin; did you mean --version?"),
    ],
)
def test_a_mistyped_option_is_named_with_the_nearest_one(command, arguments: list[str], said: str) -> None:
    result = command(*arguments)
    assert (result.code, result.out) == (2, "")
    assert said in result.err
    assert "cannot open" not in result.err


def test_beginnings_of_options_numbers_and_what_follows_two_dashes_are_no_typos(command) -> None:
    assert command("eval", "--lim", "5", "--show-config").code == 0
    assert (
        "whole number" in command("eval", "--limit", "-5").err or "expected one" in command("eval", "--limit", "-5").err
    )
    assert "no option" not in command("ask", "--", "--limt").err


def test_a_hostile_option_is_shown_as_text(command) -> None:
    assert "\x1b" not in command("eval", "--\x1b[31mlimit").err
