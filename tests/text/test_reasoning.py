"""Reasoning in the text of a reply: every way of marking it, by itself and as a stream, fuzzed."""

from __future__ import annotations

import random
import re
import time
from itertools import pairwise
from pathlib import Path

import pytest

from robustrag_integrations.replies.streams import Shown
from robustrag_integrations.text.answer_text import answer_text
from robustrag_integrations.text.reasoning import parts_of
from tests.helpers.tables import listed

SECRET = "zsecret"
BLOCKS, HONEST, TOKENS = listed(Path(__file__).with_name("reasoning.txt"), "blocks", "honest", "tokens")
TAG = re.compile(
    r"<\s{0,4}[|/]?\s{0,4}(think(ing)?|reasoning|(start|end)_thinking)\b|\[[\s/]{0,2}(think|reasoning)\](?!\()"
    r"|◁/?think|<\|channel|<channel\|",
    re.IGNORECASE,
)


def streamed(text: str, cuts: list[int], *, whole: bool) -> str | None:
    """What is shown, without white space at its ends; None where that is retracted."""
    reply = Shown(whole=whole)
    edges = [0, *cuts, len(text)]
    said = "".join([*(reply.take(text[a:b]) for a, b in pairwise(edges)), reply.rest()])
    return None if reply.retracted else said


@pytest.mark.parametrize("block", BLOCKS)
def test_reasoning_of_every_kind_is_told_from_the_answer(block: str) -> None:
    parts = parts_of(f"{block} Karl Gross")
    assert (parts.answer.strip(), parts.unfinished) == ("Karl Gross", False)
    assert parts.reasoning_chars == len(block) + len(" Karl Gross") - len(parts.answer)


def test_harmony_with_its_special_tokens_left_out_is_read() -> None:
    assert parts_of("analysisThe user asks who.assistantfinalKarl Gross").answer == "Karl Gross"
    assert parts_of("analysisThe user asks").unfinished


@pytest.mark.parametrize("text", HONEST)
def test_what_merely_looks_a_little_like_it_stays(text: str) -> None:
    assert parts_of(text).answer == text
    assert not parts_of(text).unfinished
    assert streamed(text, list(range(1, len(text))), whole=False) == text


@pytest.mark.parametrize("block", [b for b in BLOCKS if not b.startswith(SECRET) and SECRET in b])
def test_reasoning_that_is_cut_anywhere_is_unfinished(block: str) -> None:
    """Wherever a reply breaks off within its reasoning, no part of it is an answer."""
    for end in range(block.index(SECRET), block.rindex(SECRET)):
        parts = parts_of(block[:end])
        assert parts.unfinished or parts.answer.strip() in ("", "<", "<t"), block[:end]
        assert SECRET[:3] not in parts.answer


@pytest.mark.parametrize("text", ["Karl Gross <think>", "Karl <thi", "Karl </thinki", "Karl ◁/th", "a <|channel|>fin"])
def test_a_reply_that_ends_in_a_mark_is_unfinished(text: str) -> None:
    assert parts_of(text).unfinished


def test_a_mark_that_json_escapes_is_read_once_it_is_unescaped() -> None:
    reply = f'{{"answer": "\\u003cthink\\u003e{SECRET}\\u003c/think\\u003e Karl Gross"}}'
    assert answer_text(reply).strip() == "Karl Gross"


@pytest.mark.parametrize("block", BLOCKS)
def test_a_stream_in_any_two_pieces_shows_the_answer_alone(block: str) -> None:
    for text in (f"{block} Karl Gross", f"Karl Gross {block} the miller"):
        wanted = parts_of(text).answer.strip()
        for cut in range(len(text) + 1):
            assert streamed(text, [cut], whole=True) == wanted
            if (said := streamed(text, [cut], whole=False)) is None:
                assert "</" in block or "[/" in block or "final" in block  # what was shown was closed as reasoning
            else:
                assert said == wanted


def test_a_stream_that_closes_what_it_never_opened_retracts_what_it_has_shown() -> None:
    reply = Shown()
    assert reply.take("Let me see. ") == "Let me see."
    assert reply.take("</think> Karl Gross") == ""
    assert (reply.rest(), reply.retracted) == ("", True)


def test_a_hundred_thousand_fuzzed_replies_show_no_mark() -> None:
    chance = random.Random(16)
    for _ in range(100_000):
        text = "".join(chance.choice(TOKENS) for _ in range(chance.randint(1, 8)))
        parts = parts_of(text)
        assert not TAG.search(parts.answer), (text, parts)
        cuts = sorted(chance.randint(0, len(text)) for _ in range(chance.randint(0, 4)))
        assert streamed(text, cuts, whole=True) == parts.answer.strip()
        said = streamed(text, cuts, whole=False)
        assert parts.reasoning_chars if said is None else said == parts.answer.strip(), text


@pytest.mark.parametrize(
    "text",
    ["<" * 200_000, "<think>" * 40_000, "</think>" * 40_000, "<think " * 40_000, "[ " * 100_000,
     "<|channel|>" * 20_000, "analysis" * 30_000, " " * 200_000, "<|channel|>a" + "b" * 200_000],
)  # fmt: skip
def test_hostile_replies_take_linear_time(text: str) -> None:
    began = time.process_time()
    parts_of(text)
    reply = Shown()
    for i in range(0, len(text), 4):
        reply.take(text[i : i + 4])
    assert time.process_time() - began < 4
