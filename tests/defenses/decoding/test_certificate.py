"""The certificate of decoding aggregation: its tree, its limits, and local models."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence

from robustrag_integrations import DecodingAggregation
from robustrag_integrations.certification.result import Certification
from robustrag_integrations.models.base import DecodingSession
from tests.helpers.scripted import BARE, ScriptedDecodingModel
from tests.helpers.worlds import graded

PASSAGES = [f"p{i}" for i in range(8)]


def peaked(text: str, prefix: tuple[int, ...]) -> Sequence[float]:
    """Two tokens that only a wide attacker could swap; the no-retrieval row prefers another one."""
    if len(prefix) == 3:
        return [1.0, 0, 0, 0]
    return [0, 0.7, 0.25, 0.05] if text else [0, 0, 0, 1.0]


def test_the_tree_branches_into_top_and_no_retrieval_tokens() -> None:
    defense = DecodingAggregation(ScriptedDecodingModel(peaked), prompts=BARE, eta=2.5, slack=0.0, max_new_tokens=4)
    found = defense.certify("q", PASSAGES, "a", metric=graded)
    assert {r.text for r in found.responses} == {"".join(t) for t in itertools.product("ac", repeat=3)}


def test_one_walk_serves_all_corruption_sizes() -> None:
    defense = DecodingAggregation(ScriptedDecodingModel(peaked), prompts=BARE, eta=2.5, slack=0.0, max_new_tokens=4)
    together = defense.certify("q", PASSAGES, "a", corruption_size=[1, 2], metric=graded)
    alone = [defense.certify("q", PASSAGES, "a", corruption_size=s, metric=graded) for s in (1, 2)]
    assert [c.tau for c in together] == [c.tau for c in alone]
    assert [{r.text for r in c.responses} for c in together] == [{r.text for r in c.responses} for c in alone]
    assert together[-1].model_calls == max(c.model_calls for c in alone)


def test_a_tree_over_the_limit_gives_up_the_largest_attacker_first() -> None:
    model = ScriptedDecodingModel(peaked)
    defense = DecodingAggregation(model, prompts=BARE, eta=2.5, slack=0.0, max_new_tokens=4)
    limited = defense.certify("q", PASSAGES, "a", metric=graded, max_model_calls=6)
    assert (limited.tau, limited.certified) == (0, False)
    both = defense.certify("q", PASSAGES, "a", corruption_size=[1, 2], metric=graded, max_model_calls=6)
    assert not both[-1].certified


class NoFork(ScriptedDecodingModel):
    """A model whose sessions cannot be copied."""


class Forking(ScriptedDecodingModel):
    """A model whose sessions can."""

    def open_session(self, prompts, no_retrieval, max_new_tokens) -> DecodingSession:
        session = super().open_session(prompts, no_retrieval, max_new_tokens)
        return _with_fork(session)


def _with_fork(session: DecodingSession) -> DecodingSession:
    session.fork = lambda: _with_fork(copy.copy(session))  # type: ignore[method-assign]
    return session


def test_sessions_that_cannot_be_copied_are_replayed_with_the_same_result() -> None:
    results: list[Certification] = []
    for model in (NoFork(peaked), Forking(peaked)):
        defense = DecodingAggregation(model, prompts=BARE, eta=2.5, slack=0.0, max_new_tokens=4)
        results.append(defense.certify("q", PASSAGES, "a", metric=graded))
        opened = model.sessions
    assert opened == 1
    assert results[0].responses == results[1].responses


def test_a_forked_local_session_gives_the_same_bits(local) -> None:
    from robustrag_integrations.text.prompts import Prompt

    prompts = [Prompt(f"text {i} ends", (5, 6)) for i in range(3)]
    session = local.open_session(prompts, Prompt("text"), 4)
    twin = session.fork()
    straight = [session.append(t) for t in (7, 9)]
    twin.append(11)
    again = local.open_session(prompts, Prompt("text"), 4).fork()
    forked = [again.append(t) for t in (7, 9)]
    for a, b in zip(straight, forked, strict=True):
        assert (a.sources == b.sources).all()
        assert (a.no_retrieval == b.no_retrieval).all()


def test_what_a_local_model_can_be_made_to_say_is_in_r(local) -> None:
    passages = [f"Fact {i}: paris" for i in range(6)]
    defense = DecodingAggregation(local, eta=3.0, max_new_tokens=3, stop=["zzz"])
    found = defense.certify("Where?", passages, "paris", metric=graded, max_model_calls=100)
    assert found.numerics["dtype"] == "float32"
    assert found.certified
    possible = {r.text for r in found.responses}
    for evil in ("london london", "", "Fact 9: paris", "x" * 300):
        for rank in (0, 3, 5):
            listed = [*passages[:rank], evil, *passages[rank:5]]
            text = defense.answer("Where?", listed).text
            assert found.unbounded or text in possible
    assert found.tau > 0 or found.unbounded
