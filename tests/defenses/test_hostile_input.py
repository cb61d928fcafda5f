"""What fuzzing has found: inputs that once broke something, each with what must happen instead."""

from __future__ import annotations

import pytest

from robustrag_integrations import KeywordAggregation


def test_half_a_surrogate_pair_in_one_passage_does_not_cost_the_answer() -> None:
    pytest.importorskip("torch")
    from robustrag_integrations import DecodingAggregation, LocalModel

    model = LocalModel.bundled()
    truth = [f"The mayor of Velbury is Anna Lind. Note {n}." for n in range(4)]
    for defense in (KeywordAggregation(model), DecodingAggregation(model)):
        planted = defense.answer("Who is the mayor of Velbury?", [*truth, "broken \ud800 half"])
        plain = defense.answer("Who is the mayor of Velbury?", [*truth, "broken \ufffd half"])
        assert planted.text == plain.text
        assert planted.sources[4].status == plain.sources[4].status


def test_lone_surrogates_leave_the_context_where_it_is() -> None:
    pytest.importorskip("transformers")
    from transformers import AutoTokenizer

    from robustrag_integrations.models.local.encoding import PromptEncoder
    from robustrag_integrations.reader import reader_path
    from robustrag_integrations.text.prompts import Prompt

    encoder = PromptEncoder(AutoTokenizer.from_pretrained(str(reader_path())), chat=False)
    halves, whole = "\ud83d\ude00 " * 50, "\ufffd\ufffd " * 50
    for text in (halves, whole):
        assert encoder.encode(Prompt(f"A {text} B", (2, 2 + len(text))), 8).truncated
    same = [encoder.encode(Prompt(f"A {text} B", (2, 2 + len(text))), 8).ids for text in (halves, whole)]
    assert same[0] == same[1]
