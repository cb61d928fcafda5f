"""`robustrag probe`: exit codes, data, files, and what becomes of a finding in `ask` and `eval`."""

from __future__ import annotations

import pytest

from tests.helpers.openai_server import LoopbackServer

QUICK = ("--repeats", 3, "--load", 2)
STEADY, DRIFTING = "python:tests.cli.probed:steady", "python:tests.cli.probed:drifting"


def test_a_model_that_repeats_itself_ends_with_0_and_is_told_that_this_is_no_proof(command) -> None:
    result = command("probe", "--model", STEADY, *QUICK)
    assert result.code == 0
    assert "No difference in 18 replies: with 95% confidence fewer than 18.1%" in result.out
    assert "no proof" in result.out


def test_one_that_does_not_ends_with_4_and_shows_two_replies(command) -> None:
    result = command("probe", "--model", DRIFTING, *QUICK, "--prompt", "Count.")
    assert result.code == 4
    assert "The model does not repeat itself" in result.out
    assert "usual:   reply" in result.out
    assert "\x1b" not in result.out, "replies are hostile"


def test_data_is_data_alone_and_a_server_is_probed_like_a_function(command, server: LoopbackServer) -> None:
    result = command("probe", "--model", "openai:m", "--base-url", server.url, *QUICK, "--json")
    assert result.code == 0
    assert (result.data["schema"], result.data["compared"]) == ("robustrag/repeat-probe/1", 18)
    assert len(server.requests) >= 3 * 3 * 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--repeats", 1), "not a whole number from 2"),
        (("--load", 0), "not a whole number from 1"),
        (("--model", "openai:"), "must be openai:NAME"),
        (("--model", STEADY, "--base-url", "http://x"), "--base-url goes with openai:NAME"),
    ],
)
def test_wrong_usage_is_told_before_any_call_is_made(command, arguments: tuple, message: str) -> None:
    result = command("probe", *arguments)
    assert (result.code, result.out) == (2, "")
    assert message in result.err
