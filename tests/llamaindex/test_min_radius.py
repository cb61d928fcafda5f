"""`min_radius` in LlamaIndex: below it, an abstention; nothing is shown before the radius is known."""

from __future__ import annotations

from typing import Any

import pytest

from llamaindex_robustrag import RobustRAGSynthesizer, VoteRules
from tests.llamaindex.fakes import QUESTION, FactReader, nodes_of, truthful
from tests.llamaindex.test_citations import in_every_way


def radius(llm: FactReader) -> int:
    response = RobustRAGSynthesizer(llm=llm).synthesize(QUESTION, nodes_of(truthful()))
    found: int = response.metadata["robustrag"]["radius"]
    assert found > 0
    return found


async def test_too_small_a_radius_gives_an_abstention_in_every_way_of_asking(llm: FactReader) -> None:
    least = radius(llm) + 1
    for pieces, response in await in_every_way(llm, nodes_of(truthful()), votes=VoteRules(min_radius=least)):
        report = response.metadata["robustrag"]
        assert (pieces, report["text"], report["abstained"]) == (["I don't know"], "I don't know", True)
        assert (report["radius"], report["evidence"]["radius"]) == (0, least - 1)
        assert f"below min_radius={least}" in report["warnings"][-1]


async def test_enough_radius_gives_the_answer_in_one_piece(llm: FactReader) -> None:
    least = radius(llm)
    for pieces, response in await in_every_way(llm, nodes_of(truthful()), votes=VoteRules(min_radius=least)):
        assert (pieces, response.metadata["robustrag"]["radius"]) == (["Paris"], least)


@pytest.mark.parametrize("least", [-1, 0.5, True, "2"])
def test_it_is_checked_when_the_synthesizer_is_made(llm: FactReader, least: Any) -> None:
    with pytest.raises(ValueError, match=r"min_radius=.* must be a whole number of at least 0"):
        RobustRAGSynthesizer(llm=llm, votes=VoteRules(min_radius=least))


def test_it_may_be_given_by_itself(llm: FactReader) -> None:
    for given in ({"min_radius": 9}, {"votes": VoteRules(min_radius=9)}):
        response = RobustRAGSynthesizer(llm=llm, **given).synthesize(QUESTION, nodes_of(truthful()))
        assert response.metadata["robustrag"]["abstained"]
