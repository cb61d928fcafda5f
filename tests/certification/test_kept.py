"""A certificate that takes an answer's replies is the one that asks again, and takes no others."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import pytest

from examples.results.obedient_model import ObedientModel
from robustrag_integrations import (
    CallableModel,
    ConsensusAggregation,
    KeywordAggregation,
    LocalModel,
    MajorityVoting,
    VanillaRAG,
)
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.certification.result import Certification
from robustrag_integrations.evaluation.run.cache import MeteredModel
from robustrag_integrations.grouping.passages import Passage
from robustrag_integrations.models.base import Response, Role, Scores
from robustrag_integrations.prompts import Prompt
from tests.helpers.scripted import BARE, BARE_CHOICES, ScriptedModel, keyword_defense, split
from tests.helpers.worlds import ConsensusModel, Move

SAID = ("paris", "paris seine", "rome", "I don't know", "lyon paris", "rome tiber")
CHOICES = ["lyon", "paris", "rome"]
SIZES = [0, 1, 2, 3]


def said(text: str) -> str:
    return SAID[int(text.split()[-1])]


def world(dice: random.Random) -> list[Passage]:
    """Passages that say this or that, some of one origin, some alike."""
    return [
        Passage(
            f"text {dice.randrange(9)} {dice.choice([0, 0, 0, 1, 2, 3, 4, 5])}", source=dice.choice(["a", "b", None])
        )
        for _ in range(dice.randrange(1, 8))
    ]


def text_defenses(**rules: Any) -> list[tuple[Any, list[str] | None]]:
    model = lambda: ScriptedModel(said, lambda prompt: "paris" if "paris" in prompt else "rome")  # noqa: E731
    return [
        (KeywordAggregation(model(), extractor=split, prompts=BARE, alpha=0.3, beta=3, **rules), None),
        (ConsensusAggregation(model(), prompts=BARE, **rules), None),
        (MajorityVoting(model(), prompts=BARE_CHOICES, **rules), CHOICES),
    ]


@pytest.mark.parametrize("rules", [{"group_by": "passage"}, {"group_by": "origin"}, {"group_size": 2}], ids=str)
@pytest.mark.parametrize("attack", ["injection", "modification"])
def test_the_certificate_is_the_one_that_asks_again(rules: dict[str, Any], attack: str) -> None:
    dice = random.Random(f"{rules}/{attack}")
    for _ in range(15):
        passages, room = world(dice), dice.randrange(3)
        for defense, choices in text_defenses(**rules):
            options: dict[str, Any] = {"corruption_size": SIZES, "attack": attack, "choices": choices}
            options["top_k"] = len(passages) + room
            again = defense.certify("q", passages, "paris", **options)
            answer = defense.answer("q", passages, choices=choices, keep=True)
            defense.model.asked.clear()
            assert defense.certify("q", passages, "paris", answer=answer, **options) == again
            read = {text for role, text in defense.model.asked if role == "isolated"}
            known = {prompt.text for prompt in answer.kept.replies}
            assert not read & known


def test_what_was_asked_for_the_answer_is_not_asked_again() -> None:
    passages = [f"text {i} {kind}" for i, kind in enumerate([0, 0, 0, 0, 0, 2])]
    for defense, choices in text_defenses(group_by="passage"):
        answer = defense.answer("q", passages, choices=choices, keep=True)
        asked = len(defense.model.asked)
        found = defense.certify("q", passages, "paris", choices=choices, answer=answer)
        assert found.tau == 1
        assert len(defense.model.asked) == asked
        assert found.model_calls == defense.certify("q", passages, "paris", choices=choices).model_calls > 0


@pytest.mark.parametrize("runoff", ["auto", "never"])
def test_a_certificate_covers_a_runoff_and_asks_for_no_score(runoff: Literal["auto", "never"]) -> None:
    said = ["Xylo", "Xylo", "Yoke", "Yoke", "I don't know", "I don't know"]

    class Model(ConsensusModel):
        scored = 0

        def score(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> list[Scores | None]:
            self.scored += 1
            return super().score(prompts, texts)

    model = Model(lambda text: Move(said[int(text)], favours="xylo"))
    defense = ConsensusAggregation(model, prompts=BARE, group_by="passage", runoff=runoff)
    passages = [str(place) for place in range(len(said))]
    answer = defense.answer("q", passages, keep=True)
    assert (answer.for_prompt().text, model.scored) == (("Xylo", 1) if runoff == "auto" else ("I don't know", 0))
    model.scored = 0
    found = defense.certify("q", passages, "Xylo", corruption_size=[0, 1], answer=answer)
    assert found == defense.certify("q", passages, "Xylo", corruption_size=[0, 1])
    assert found == asyncio.run(defense.acertify("q", passages, "Xylo", corruption_size=[0, 1], answer=answer))
    assert model.scored == 0
    options = {"Xylo", "Yoke"} if runoff == "auto" else set()
    assert {response.text for response in found[0].responses} == {"I don't know", *options}


def test_answers_of_other_doors_can_be_used_as_well() -> None:
    passages = [f"text {i} 0" for i in range(4)]
    defense = text_defenses(group_by="passage")[0][0]
    again = defense.certify("q", passages, "paris")

    async def both() -> Certification:
        answer = await defense.aanswer("q", passages, keep=True)
        return await defense.acertify("q", passages, "paris", answer=answer)

    stream = defense.stream("q", passages, keep=True)
    assert "".join(stream) == "paris"
    asked = len(defense.model.asked)
    assert asyncio.run(both()) == again
    assert len(defense.model.asked) == asked + 5  # those of the second answer
    assert defense.certify("q", passages, "paris", answer=stream.answer) == again


def test_an_answer_that_was_made_otherwise_is_refused() -> None:
    passages = ["text 0 0", "text 1 0", "text 2 2"]
    defense, _ = text_defenses(group_by="passage")[0]
    answer = defense.answer("q", passages, keep=True)
    other = KeywordAggregation(defense.model, extractor=split, prompts=BARE, alpha=0.4, beta=3, group_by="passage")
    pairs = KeywordAggregation(defense.model, extractor=split, prompts=BARE, alpha=0.3, beta=3, group_size=2)
    pairs.settings = defense.settings

    def refused(why: str, by: Any = defense, query: str = "q", texts: Sequence[str] = passages, **more: Any) -> None:
        with pytest.raises(ValueError, match=why):
            by.certify(query, texts, "paris", **{"answer": answer, **more})

    refused("another question: 'q'", query="p")
    refused("other passages", texts=["text 0 0", "text 1 1", "text 2 2"])
    refused("other passages", texts=passages[:2])
    refused("another model gave it", by=text_defenses(group_by="passage")[0][0])
    refused("another method or other settings", by=other)
    refused("other settings", by=pairs)
    refused("keeps nothing to certify with: ask with answer", answer=defense.answer("q", passages))
    refused("keeps nothing", answer=RobustAnswer.from_dict(answer.to_dict()))
    with pytest.raises(TypeError, match="answer must be a RobustAnswer, got str"):
        defense.certify("q", passages, "paris", answer="paris")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="must be True or False"):
        defense.answer("q", passages, keep="yes")
    vanilla = VanillaRAG(defense.model, prompts=BARE)
    with pytest.raises(TypeError, match="cannot be certified"):
        vanilla.certify("q", passages, "paris", answer=vanilla.answer("q", passages, keep=True))
    voting, choices = text_defenses(group_by="passage")[2]
    voted = voting.answer("q", passages, choices=choices, keep=True)
    with pytest.raises(ValueError, match="other choices"):
        voting.certify("q", passages, "paris", choices=["paris", "rome"], answer=voted)


def test_a_model_that_changed_since_is_refused() -> None:
    class Changing(ScriptedModel):
        state = 1

    model = Changing(said, lambda prompt: "paris")
    defense = KeywordAggregation(model, extractor=split, prompts=BARE)
    answer = defense.answer("q", ["text 0"], keep=True)
    model.state = 2
    with pytest.raises(ValueError, match="the model has changed since"):
        defense.certify("q", ["text 0"], "paris", answer=answer)


def test_failures_and_groups_that_were_not_waited_for_are_asked_again() -> None:
    down = True
    defense = keyword_defense(lambda text: None if down and text == "b" else "paris", alpha=0.4, group_by="passage")
    answer = defense.answer("q", ["a", "b", "c", "d"], keep=True)
    assert [g.status for g in answer.groups][1] == "failed"
    down = False
    found = defense.certify("q", ["a", "b", "c", "d"], "paris", answer=answer)
    assert found.tau == 1
    assert not any("failed" in warning for warning in found.warnings)

    model = ScriptedModel(said, lambda prompt: prompt)
    early = MajorityVoting(model, prompts=BARE_CHOICES, group_by="passage", stop_when_decided=True, wave_size=1)
    texts = [f"text {i} 0" for i in range(6)]
    answer = early.answer("q", texts, choices=CHOICES, keep=True)
    heard = len(model.asked)
    assert heard < 6
    found = early.certify("q", texts, "paris", choices=CHOICES, answer=answer)
    assert found == early.certify("q", texts, "paris", choices=CHOICES)
    assert len(model.asked) == heard + (5 - heard) + 5


def test_replies_to_equal_prompts_that_differ_are_not_used() -> None:
    replies = itertools.cycle(["paris", "rome", "paris"])

    class Wavering(ScriptedModel):
        def generate(self, prompts: Sequence[Prompt], role: Role) -> list[Response]:
            self.asked += [(role, p.text) for p in prompts]
            return [Response(next(replies)) for _ in prompts]

    model = Wavering(said)
    defense = KeywordAggregation(model, extractor=split, prompts=BARE, group_by="passage")
    answer = defense.answer("q", ["same", "same", "other"], keep=True)
    model.asked.clear()
    defense.certify("q", ["same", "same", "other"], "paris", corruption_size=0, answer=answer)
    assert [text for role, text in model.asked if role == "isolated"] == ["same|q", "same|q"]


def test_a_model_that_samples_is_refused_whatever_was_kept() -> None:
    from robustrag_integrations import CallableModel

    defense = KeywordAggregation(CallableModel(lambda prompt: "paris", samples=True))
    answer = defense.answer("q", ["a"], keep=True)
    with pytest.raises(ValueError, match="no certificate would hold"):
        defense.certify("q", ["a"], "paris", answer=answer)


def test_what_is_kept_is_no_part_of_the_report() -> None:
    defense = text_defenses()[0][0]
    plain, kept = (defense.answer("q", ["text 0"], keep=keep) for keep in (False, True))
    assert plain.kept is None
    assert kept.kept is not None
    assert kept == plain
    assert kept.to_dict() == plain.to_dict()
    assert "kept" not in kept.to_dict()
    assert RobustAnswer.from_dict({**plain.to_dict(), "kept": {"asked": 1}}).kept is None


@pytest.mark.parametrize("method", [KeywordAggregation, MajorityVoting])
def test_the_bundled_reader_is_asked_once_and_certifies_the_same(method: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = LocalModel.bundled()
    texts = [f"The mayor of Brezar is {name}." for name in ["Anna Lind"] * 4 + ["Karl Gross", "Ole Berg"]]
    defense = method(model, group_by="passage")
    choices = ["Anna Lind", "Karl Gross", "Ole Berg"] if method is MajorityVoting else None
    question = "Who is the mayor of Brezar?"
    again = defense.certify(question, texts, "Anna Lind", corruption_size=[1, 2], choices=choices)
    answer = defense.answer(question, texts, choices=choices, keep=True)
    read: list[int] = []

    def counted(name: str) -> None:
        real = getattr(model, name)
        monkeypatch.setattr(model, name, lambda prompts, *rest: read.append(len(prompts)) or real(prompts, *rest))

    counted("generate")
    counted("open_session")
    found = defense.certify(question, texts, "Anna Lind", corruption_size=[1, 2], choices=choices, answer=answer)
    for one, other in zip(found, again, strict=True):
        assert replace(one, numerics={}) == replace(other, numerics={})
        assert one.numerics.keys() == other.numerics.keys()
    assert sum(read) == 0


def changed(model: LocalModel) -> None:
    """Other weights, by a way that torch does not count."""
    for weight in model._model.parameters():
        weight.data += 0.1


@pytest.mark.parametrize("wrap", ["alone", "two models", "reader of two", "obedient", "metered"])
def test_replies_of_other_weights_are_refused(wrap: str) -> None:
    model = LocalModel.bundled(max_context_tokens=64)
    other = LocalModel.bundled(max_context_tokens=64)
    asked = {"obedient": ObedientModel(model), "metered": MeteredModel(model, "f", None)}.get(wrap, model)
    final = {"two models": other, "reader of two": other}.get(wrap)
    defense = KeywordAggregation(asked, final_model=final, group_by="passage")
    passages = [f"The capital of Velmora is Tarsk. {i}" for i in range(3)]
    answer = defense.answer("What is the capital of Velmora?", passages, keep=True)
    defense.certify("What is the capital of Velmora?", passages, "Tarsk", answer=answer)
    changed(other if wrap == "two models" else model)
    with pytest.raises(ValueError, match="the model has changed since"):
        defense.certify("What is the capital of Velmora?", passages, "Tarsk", answer=answer)


def test_what_was_said_before_a_model_was_told_to_forget_is_refused() -> None:
    model = LocalModel.bundled(max_context_tokens=64)
    defense = ConsensusAggregation(model, group_by="passage")
    answer = defense.answer("What is the capital of Velmora?", ["Tarsk is its capital."] * 3, keep=True)
    model.forget_prefixes()
    with pytest.raises(ValueError, match="the model has changed since"):
        defense.certify("What is the capital of Velmora?", ["Tarsk is its capital."] * 3, "Tarsk", answer=answer)


def test_certificates_say_whether_the_model_repeats_itself_and_what_both_models_compute_with() -> None:
    undeclared = KeywordAggregation(CallableModel(lambda prompt: "Anna Berg"), group_by="passage")
    [said] = [w for w in undeclared.certify("Who?", list("abc"), "Anna Berg").warnings if "repeats itself" in w]
    assert said.endswith("the certificate is about the replies seen")
    declared = KeywordAggregation(CallableModel(lambda prompt: "Anna Berg", samples=False), group_by="passage")
    assert not any("replies seen" in w for w in declared.certify("Who?", list("abc"), "Anna Berg").warnings)

    half = LocalModel.bundled(max_context_tokens=64, dtype="bfloat16")
    two = KeywordAggregation(CallableModel(lambda p: "Tarsk", samples=False), final_model=half, group_by="passage")
    found = two.certify("What is the capital?", ["Tarsk a", "Tarsk b", "Tarsk c"], "Tarsk")
    assert found.numerics["final_model"]["dtype"] == "bfloat16"
    assert any("computed in bfloat16" in warning for warning in found.warnings)
