"""BenignSourceCases against the paper's figures and against trying every position one by one."""

from __future__ import annotations

import itertools

import pytest

from robustrag_integrations.certification.cases import benign_source_cases
from robustrag_integrations.grouping.passages import Passage, isolate

SIX = [f"p{i}" for i in range(1, 7)]


def shown(cases) -> set[tuple[tuple[str, ...], int]]:
    return {(tuple("+".join(p.text for p in g.passages) for g in c.sources), c.corrupted) for c in cases}


def by_position(passages, size, attack, passages_per_source, limit) -> set[tuple[frozenset[str], int]]:
    """Every attack of at most `size` passages, placed position by position and cut up by the real `isolate`."""
    found = set()
    removals = range(size + 1) if attack == "modification" else [0]
    for removed in removals:
        for gone in itertools.combinations(range(len(passages)), min(removed, len(passages))):
            left = [p for i, p in enumerate(passages) if i not in gone]
            for injected in range(min(size, limit) + 1):
                length = min(limit, len(left) + injected)
                if attack == "modification" and len(passages) == limit and length < limit:
                    continue  # where the retrieval finds enough, nothing goes without something in its place
                for spots in itertools.combinations(range(length), injected):
                    benign = iter(left)
                    listed = ["BAD" if i in spots else next(benign) for i in range(length)]
                    sources = isolate(listed, passages_per_source)
                    clean = frozenset(g.text for g in sources if "BAD" not in g.text)
                    found.add((clean, len(sources) - len(clean)))
    return found


def covers(case: tuple[frozenset[str], int], other: tuple[frozenset[str], int]) -> bool:
    return case[0] <= other[0] and case[1] - other[1] >= len(other[0]) - len(case[0])


def test_the_papers_injection_figure() -> None:
    assert shown(benign_source_cases(SIX, 1, passages_per_source=2)) == {
        (("p2+p3", "p4+p5"), 1),
        (("p1+p2", "p4+p5"), 1),
        (("p1+p2", "p3+p4"), 1),
    }


def test_the_papers_modification_figure_has_its_first_removal() -> None:
    found = shown(benign_source_cases(SIX, 1, attack="modification", passages_per_source=2))
    first = {(("p3+p4", "p5+p6"), 1), (("p2+p3", "p5+p6"), 1), (("p2+p3", "p4+p5"), 1)}
    assert first <= found


@pytest.mark.parametrize("attack", ["injection", "modification"])
@pytest.mark.parametrize("passages_per_source", [1, 2, 3])
@pytest.mark.parametrize(("count", "limit"), [(5, 5), (6, 6), (3, 6), (4, 5)])
@pytest.mark.parametrize("size", [0, 1, 2, 3])
def test_every_placement_is_covered_and_every_case_is_a_placement(
    attack, passages_per_source, count, limit, size
) -> None:
    passages = SIX[:count]
    real = by_position(passages, size, attack, passages_per_source, limit)
    cases = {
        (frozenset(g.text for g in c.sources), c.corrupted)
        for c in benign_source_cases(
            passages, size, attack=attack, passages_per_source=passages_per_source, top_k=limit
        )
    }
    assert cases <= real
    for placement in real:
        assert any(covers(case, placement) for case in cases), placement
    for case in cases:
        assert not any(covers(other, case) for other in cases - {case}), case


def test_an_injected_passage_of_a_chosen_source_corrupts_that_source_or_is_a_new_one() -> None:
    passages = [Passage(text, origin=text[0]) for text in ("a1", "a2", "b1", "c")]
    found = shown(benign_source_cases(passages, 1, by="source", top_k=10))
    joined = {(("b1", "c"), 1), (("a1+a2", "c"), 1), (("a1+a2", "b1"), 1)}
    assert found == joined | {(("a1+a2", "b1", "c"), 1)}


def test_nothing_benign_is_left_when_everything_can_be_replaced() -> None:
    assert shown(benign_source_cases(["p1", "p2"], 2)) == {((), 2)}
    assert shown(benign_source_cases(["p1", "p2"], 5)) == {((), 2)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"corruption_size": -1}, "corruption_size=-1"),
        ({"corruption_size": True}, "corruption_size=True"),
        ({"corruption_size": 1, "attack": "magic"}, "attack='magic'"),
        ({"corruption_size": 1, "top_k": 5}, "top_k=5"),
        ({"corruption_size": 1, "passages_per_source": 0}, "passages_per_source=0"),
    ],
)
def test_senseless_arguments_are_refused_by_name(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        benign_source_cases(SIX, **arguments)


def test_too_many_ways_to_attack_are_refused() -> None:
    with pytest.raises(ValueError, match="smaller corruption_size"):
        benign_source_cases([str(i) for i in range(40)], 8, attack="modification", passages_per_source=2)
