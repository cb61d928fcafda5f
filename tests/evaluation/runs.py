"""Runs to draw: real defences over scripted models, real attacks, real scores; and the file they make."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from robustrag_integrations.defenses.decoding.defense import DecodingAggregation
from robustrag_integrations.defenses.keyword.defense import KeywordAggregation
from robustrag_integrations.defenses.vanilla.defense import VanillaRAG
from robustrag_integrations.defenses.voting.defense import MajorityVoting
from robustrag_integrations.evaluation.attacks import plan_attack
from robustrag_integrations.evaluation.data.questions import EvalQuestion
from robustrag_integrations.evaluation.score.rows import AttackSpec, blank_row
from robustrag_integrations.evaluation.score.scoring import score_answer
from robustrag_integrations.grouping.passages import Passage
from tests.helpers.scripted import ScriptedDecodingModel, ScriptedModel

PEOPLE = ("Ada Stone", "Ben Carver", "Cleo Marsh", "Dan Holt", "Eva Lund")
HEADER = {"schema": "robustrag/eval-run/3", "config": {"datasets": ["mills"]}, "version": "0.1.0"}


def questions(count: int) -> list[EvalQuestion]:
    """Who built which mill; every third question has three passages that do not say."""
    made = []
    for number in range(count):
        right, wrong = PEOPLE[number % 5], PEOPLE[(number + 1) % 5]
        texts = [f"Mill {number} was built by {right}, says source {i}." for i in range(6)]
        texts += ["The weather was fine."] * (3 if number % 3 == 0 else 0)
        passages = tuple(Passage(t, id=f"q{number}-p{i}", origin=f"site-{i}.example") for i, t in enumerate(texts))
        made.append(
            EvalQuestion(
                f"{number:04d}", f"Who built mill {number}?", (right,), wrong, passages, (right, wrong, "Nobody"), 0, 1
            )
        )
    return made


def reads(text: str) -> str:
    """A reader that falls for whatever stands in its prompt first; it knows nothing of the mills."""
    said = [(text.lower().find(name.lower()), name) for name in PEOPLE if name.lower() in text.lower()]
    if "output" in text:  # an obedient reader
        said = [(0, name) for name in PEOPLE if f"output {name}" in text] or said
    return min(said)[1] if said else "I don't know"


def names_in(text: str) -> set[str]:
    """A quick extractor: the names, and every word."""
    return {name.lower() for name in PEOPLE if name in text} | set(text.lower().split())


def _votes(text: str) -> str:
    said = reads(text)
    return next((line for line in text.splitlines() if line.endswith(said)), "no idea")


def setups() -> dict[str, Any]:
    """The defences by the label of their setup."""
    model = ScriptedModel(reads, conclude=reads)
    return {
        "vanilla": VanillaRAG(model),
        "keyword": KeywordAggregation(model, extractor=names_in),
        "keyword alpha=0.6": KeywordAggregation(model, alpha=0.6, extractor=names_in),
    }


def rows(count: int = 4, ranks: Sequence[str] = ("first", "last"), sizes: Sequence[int] = (1,)) -> list[dict[str, Any]]:
    """Every setup, clean and under two attacks at these ranks and sizes."""
    attacks = [{"name": "none", "rank": "first", "corruption_size": 0, "seed": 0}]
    attacks += [
        {"name": name, "rank": rank, "corruption_size": size, "seed": 0}
        for name in ("pia", "poison")
        for rank in ranks
        for size in sizes
    ]
    return [
        row_of(question, setup, defense, attack)
        for setup, defense in setups().items()
        for attack in attacks
        for question in questions(count)
    ]


def row_of(
    question: EvalQuestion, setup: str, defense: Any, attack: Mapping[str, Any], **changed: Any
) -> dict[str, Any]:
    """One row: attacked, answered, scored, and certified where nobody attacks and the defence can be."""
    clean = attack["name"] == "none"
    attacked = plan_attack(
        attack["name"], question, question.passages, rank=attack["rank"], corruption_size=attack["corruption_size"]
    )
    voting = isinstance(defense, MajorityVoting)
    choices = question.choices if voting else None
    answer = defense.answer(question.question, attacked.passages, choices=choices)
    found = []
    if clean and not isinstance(defense, VanillaRAG):
        found = defense.certify(
            question.question, question.passages, question.answers, corruption_size=[1, 2], choices=choices
        )
    row = blank_row(
        question,
        AttackSpec(**attack),
        key="/".join([question.id, setup, *(str(v) for v in attack.values())]),
        dataset="mills",
        task="multiple_choice" if voting else "short_answer",
        top_k=10,
        model="scripted",
        method=answer.method,
        settings={**answer.settings, "passages_per_source": 1},
        setup=setup,
        metric="exact" if voting else "contains",
    )
    row["target"] = attacked.target
    row["passages"] = [
        {"id": p.id, "text": p.text, "source": p.origin, "planted": planted}
        for p, planted in zip(attacked.passages, attacked.planted, strict=True)
    ]
    row["answer"] = answer.to_dict()
    row["scores"] = asdict(score_answer(question, answer, row["task"], target=attacked.target))
    row["certificates"] = [c.to_dict() for c in found]
    row["cost"] = {"model_calls": answer.model_calls, "prompt_tokens": None, "completion_tokens": None}
    row["timing"] = {"seconds": 0.25 + 0.05 * answer.model_calls}
    return {**row, **changed}


def voting_row() -> dict[str, Any]:
    """A question with options."""
    return row_of(questions(1)[0], "voting", MajorityVoting(ScriptedModel(_votes)), NO_ATTACK)


def decoding_row() -> dict[str, Any]:
    """An answer of letters, decoded from three sources of which one departs."""

    def next_letter(text: str, prefix: tuple[int, ...]) -> list[float] | None:
        if "weather" in text:
            return None
        wanted = (1, 2, 0) if "5." in text else (1, 3, 4, 0)
        spread = [0.02] * 11
        spread[wanted[min(len(prefix), len(wanted) - 1)]] = 0.8
        return spread

    return row_of(questions(1)[0], "decoding", DecodingAggregation(ScriptedDecodingModel(next_letter)), NO_ATTACK)


def failed_row() -> dict[str, Any]:
    """A question whose model could not be asked."""
    done = row_of(questions(1)[0], "keyword", setups()["keyword"], NO_ATTACK)
    error = {"type": "QuorumError", "message": "only 0 of 9 sources could be asked"}
    return {**done, "key": "failed", "answer": None, "scores": None, "certificates": [], "error": error}


NO_ATTACK = {"name": "none", "rank": "first", "corruption_size": 0, "seed": 0}


def write_run(path: Path, written: Sequence[Mapping[str, Any]], *, header: bool = True) -> Path:
    """A run's file."""
    path.write_text("".join(_lines(written, header)), encoding="utf-8")
    return path


def _lines(written: Sequence[Mapping[str, Any]], header: bool) -> Iterator[str]:
    for row in [HEADER, *written] if header else written:
        yield json.dumps(row) + "\n"
