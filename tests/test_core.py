"""The page to read first is what consensus aggregation runs."""

from __future__ import annotations

import random

import pytest

from robustrag_integrations import CallableModel, ConsensusAggregation, Passage, core
from robustrag_integrations.counting import Rule
from robustrag_integrations.replies.keys import key_of
from robustrag_integrations.text.prompts import ABSTENTION
from tests.helpers.scripted import BARE

REPLIES = ["Anna Lind", "anna lind.", "The answer is Anna Lind", "Eve Moor", "eve moor", "not Anna Lind", "5 mg", ""]


def test_it_runs_as_it_stands(capsys: pytest.CaptureFixture[str]) -> None:
    core.main()
    said = capsys.readouterr().out
    assert "2 of 8 pages planted: Anna Lind, whatever any 1 of them say" in said
    assert "beside 9 corrupted pages, anything can be answered" in said


@pytest.mark.parametrize(("agreement", "one_in"), [("plurality", 4), ("majority", 2)])
def test_it_gives_the_answers_radii_and_certificates_of_the_method(agreement: str, one_in: int) -> None:
    rng, agreed = random.Random(agreement), 0
    for _ in range(150):
        usual = rng.choice(REPLIES)
        replies = [rng.choice([usual, usual, *REPLIES]) for _ in range(rng.randint(1, 7))]
        sources = {f"s{place}": f"{place}" for place in range(len(replies))}
        method = ConsensusAggregation(
            CallableModel(lambda prompt, replies=replies: replies[int(prompt[0])], samples=False),  # type: ignore[misc]
            prompts=BARE,
            agreement=agreement,  # type: ignore[arg-type]
            disagreement="abstain",
            quorum=0.0,
            min_support=2,
            group_by="passage",
        )
        passages = [Passage(text, origin=source) for source, text in sources.items()]
        rule = Rule(2, one_in)
        votes = [core.vote(reply) for reply in replies]
        counted = core.count(votes, rule)
        text = None if counted.winner is None else core.commonest(core.wordings(votes, counted.winner))
        answer = method.answer("Who?", passages)
        alone = answer.sole_source is not None
        assert (ABSTENTION if text is None else text) == (ABSTENTION if alone else answer.text), replies
        assert counted.radius() == answer.radius
        agreed += answer.radius > 0
        keys = core.possible(votes, 1, rule)
        found = method.certify("Who?", passages, "x", metric=lambda *_: 1.0, top_k=len(replies) + 1)
        if found.complete:
            shown = {None if r.text == ABSTENTION else key_of(r.text or "") for r in found.responses}
            assert keys is not None
            assert keys | {None} == shown | {None}, replies  # the method counts on an abstention in any case
    assert agreed > 10
