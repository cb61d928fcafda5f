"""`answer.determinism`: what holds of an answer, given what is known of its model and what its method states."""

from __future__ import annotations

from typing import Any

import pytest

from robustrag_integrations import DecodingAggregation, KeywordAggregation, MajorityVoting
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.answers.determinism import Repeats
from robustrag_integrations.grouping.passages import Passage
from tests.helpers.scripted import BARE, BARE_CHOICES, ScriptedDecodingModel, ScriptedModel

PASSAGES = [Passage(text, origin=f"{i}.txt") for i, text in enumerate([f"p{i}" for i in range(7)])]
SAMPLES, GREEDY, SERVER = (
    Repeats("samples", "temperature 1"),
    Repeats("deterministic", "greedy"),
    Repeats("unknown", "it runs on a server"),
)


def voted(repeats: Repeats, **settings: Any) -> RobustAnswer:
    model = ScriptedModel(lambda text: "A")
    model.__class__ = type("Known", (ScriptedModel,), {"repeats": repeats})
    return MajorityVoting(model, prompts=BARE_CHOICES, **settings).answer("q", PASSAGES, choices=["yes", "no"])


def kept(repeats: Repeats, **settings: Any) -> RobustAnswer:
    model = type("Known", (ScriptedModel,), {"repeats": repeats})(lambda text: "paris", lambda prompt: "paris")
    return KeywordAggregation(model, prompts=BARE, **settings).answer("q", PASSAGES)


def decoded(repeats: Repeats, **settings: Any) -> RobustAnswer:
    kind = type("Known", (ScriptedDecodingModel,), {"repeats": repeats})
    model = kind(lambda text, prefix: [1.0, 0.0, 0.0] if prefix else [0.1, 0.9, 0.0])
    return DecodingAggregation(model, prompts=BARE, **settings).answer("q", PASSAGES)


@pytest.mark.parametrize(
    ("answer", "scope", "words"),
    [
        (voted, "this_run", "any 3 of 7 sources cannot change the option that won this run"),
        (kept, "final_prompt", "cannot change the keywords that this run kept, given the other replies; the final"),
        (decoded, "this_run", "cannot change the answer of this run, given the probabilities of the other sources;"),
    ],
)
@pytest.mark.parametrize("repeats", [SAMPLES, SERVER, Repeats()], ids=["samples", "server", "unsaid"])
def test_each_method_says_what_its_radius_fixes_in_a_run_that_was_drawn(
    answer: Any, scope: str, words: str, repeats: Repeats
) -> None:
    found = answer(repeats)
    assert found.radius > 0
    assert (found.determinism.model, found.determinism.scope) == (repeats.model, scope)
    assert words in found.determinism.promise
    assert found.determinism.why == (repeats.why or "not declared whether the model samples")


@pytest.mark.parametrize("answer", [voted, kept, decoded])
def test_of_a_deterministic_model_the_radius_is_about_every_run_and_nothing_is_warned_of(answer: Any) -> None:
    found = answer(GREEDY)
    assert found.determinism.scope == "every_run"
    assert found.warnings == ()
    assert "Holds:" not in found.explain()
    assert "Model:    deterministic (greedy)" in found.explain()


@pytest.mark.parametrize("answer", [voted, kept, decoded])
@pytest.mark.parametrize("repeats", [SAMPLES, SERVER], ids=["samples", "server"])
def test_sampling_is_warned_of_until_it_is_accepted_and_the_attribute_stays(answer: Any, repeats: Repeats) -> None:
    warned, accepted = answer(repeats), answer(repeats, accept_sampling=True)
    [warning] = warned.warnings
    assert repeats.why in warning
    assert "another run may give another answer" in warning
    assert accepted.warnings == ()
    assert accepted.determinism.promise == warned.determinism.promise
    assert f"Holds:    {accepted.determinism.promise}" in accepted.explain()


def test_a_smallest_radius_is_part_of_the_promise() -> None:
    answer = voted(SAMPLES, min_radius=2)
    assert answer.determinism.promise.endswith("an abstention may take its place (min_radius=2)")
    withheld = voted(SAMPLES, min_radius=5)
    assert withheld.abstained
    assert withheld.determinism.scope == "nothing"


async def test_it_is_the_same_in_every_way_of_asking_and_what_a_call_reveals_counts() -> None:
    class Learns(ScriptedModel):
        """A model of which it is known only after the first call that it samples."""

        @property
        def repeats(self) -> Repeats:
            return SAMPLES if self.asked else Repeats()

    def defense() -> MajorityVoting:
        return MajorityVoting(Learns(lambda text: "A"), prompts=BARE_CHOICES)

    options = ["yes", "no"]
    found = [defense().answer("q", PASSAGES, choices=options), await defense().aanswer("q", PASSAGES, choices=options)]
    with defense().stream("q", PASSAGES, choices=options) as stream:
        list(stream)
        found.append(stream.answer)
    async with defense().astream("q", PASSAGES, choices=options) as astream:
        [piece async for piece in astream]
        found.append(astream.answer)
    assert {a.determinism for a in found} == {found[0].determinism}
    assert found[0].determinism.model == "samples"
