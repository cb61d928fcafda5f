"""The invariants that isolation rests on, as properties of the real code."""

from __future__ import annotations

import zlib

import hypothesis.strategies as st
from hypothesis import given, settings

from robustrag_integrations import KeywordAggregation, MajorityVoting, Passage
from robustrag_integrations.defenses.decoding.defense import DecodingAggregation
from tests.helpers.scripted import BARE, BARE_CHOICES, ScriptedDecodingModel, ScriptedModel, split

WORDS = st.sampled_from(["a", "b", "c", "a b", "a c", "I don't know", ""])
RESPONSES = st.lists(WORDS, min_size=1, max_size=9)
HOSTILE = st.text(max_size=60)


def keyword(model: ScriptedModel, **kw: object) -> KeywordAggregation:
    return KeywordAggregation(model, extractor=split, prompts=BARE, **kw)  # type: ignore[arg-type]


def rows(text: str, prefix: tuple[int, ...]):
    """Deterministic, uneven distributions that depend on the text and the prefix alone."""
    weights = [1 + zlib.crc32(f"{text} {prefix} {t}".encode()) % 97 for t in range(5)]
    return [w / sum(weights) for w in weights]


@given(HOSTILE, st.lists(HOSTILE, min_size=1, max_size=5), st.integers(0, 4))
def test_a_sources_prompt_depends_on_the_query_and_that_source_alone(query: str, texts: list[str], place: int) -> None:
    query, place = query.strip() or "q", min(place, len(texts))
    target = "the passage in question {query} %s"

    def prompt_of_target(others: list[str]) -> str:
        asked = [*others[:place], target, *others[place:]]
        model = ScriptedModel(lambda text: "a")
        KeywordAggregation(model, extractor=split).answer(query, asked)
        return [text for role, text in model.asked if role == "isolated"][place]

    assert prompt_of_target(texts) == prompt_of_target(["x"] * len(texts))


@given(RESPONSES, st.randoms())
def test_permuting_the_sources_changes_neither_text_nor_radius(said: list[str], rng) -> None:
    shuffled = list(said)
    rng.shuffle(shuffled)
    for defense in (
        keyword(ScriptedModel(lambda t: t)),
        DecodingAggregation(ScriptedDecodingModel(rows), prompts=BARE, max_new_tokens=3),
    ):
        first, second = defense.answer("q", said), defense.answer("q", shuffled)
        assert (first.text, first.radius) == (second.text, second.radius)


@given(st.lists(st.sampled_from("ABCD"), min_size=1, max_size=9), st.randoms())
def test_permuting_the_sources_changes_no_vote(said: list[str], rng) -> None:
    shuffled = list(said)
    rng.shuffle(shuffled)
    voting = MajorityVoting(ScriptedModel(lambda t: t), prompts=BARE_CHOICES)
    answers = [voting.answer("q", texts, choices=["x", "y", "z"]) for texts in (said, shuffled)]
    assert (answers[0].choice, answers[0].radius) == (answers[1].choice, answers[1].radius)


@given(st.lists(st.sampled_from(["a", "b"]), min_size=3, max_size=8), st.text("abc x", max_size=200))
def test_one_source_moves_every_count_by_at_most_one(said: list[str], flood: str) -> None:
    before = keyword(ScriptedModel(lambda t: t), alpha=0.0).answer("q", said).evidence["counts"]
    after = keyword(ScriptedModel(lambda t: t), alpha=0.0).answer("q", [flood, *said[1:]]).evidence["counts"]
    for word in {*before, *after}:
        assert abs(before.get(word, 0) - after.get(word, 0)) <= 1


@given(RESPONSES)
def test_the_second_prompt_holds_the_query_and_the_retained_keywords_and_nothing_else(said: list[str]) -> None:
    model = ScriptedModel(lambda t: t)
    answer = keyword(model).answer("q", said)
    finals = [text for role, text in model.asked if role == "final"]
    kept = sorted(answer.evidence["retained"])
    assert finals == ([f"kept[{', '.join(kept)}] q"] if kept else [])


@given(RESPONSES, st.integers(0, 8))
@settings(max_examples=150)
def test_a_failed_source_counts_exactly_like_one_that_abstains(said: list[str], place: int) -> None:
    place = min(place, len(said) - 1)
    fails, abstains = list(said), list(said)
    fails[place], abstains[place] = "!", "I don't know"
    model = ScriptedModel(lambda t: None if t == "!" else t)
    defense = keyword(model, quorum=0.0)
    if len(said) == 1:
        return
    first, second = defense.answer("q", fails), defense.answer("q", abstains)
    assert first.text == second.text
    assert first.sources[place].status == "failed"
    assert "failed on purpose" in (first.sources[place].error or "")


@given(st.lists(st.sampled_from(["good", "evil"]), min_size=1, max_size=12))
def test_all_chunks_of_one_source_share_one_vote(authors: list[str]) -> None:
    passages = [Passage(f"text {i}", origin=author) for i, author in enumerate(authors)]
    seen: list[str] = []

    def say(text: str) -> str:
        seen.append(text)
        return "a"

    answer = KeywordAggregation(ScriptedModel(say), extractor=split, prompts=BARE, group_by="source").answer(
        "q", passages
    )
    assert len(answer.sources) == len(seen) == len(set(authors))
    assert sorted(i for g in answer.sources for i in g.passage_ids) == sorted(f"p{i}" for i in range(len(authors)))
