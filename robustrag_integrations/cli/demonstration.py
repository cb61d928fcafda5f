"""Computes the demonstration: every defence under every attack. Prints and prepares nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from robustrag_integrations._util.normalise import plain_words
from robustrag_integrations.answers.answer import GroupReport, RobustAnswer
from robustrag_integrations.attacks import inject, planted_texts
from robustrag_integrations.cli.output import UsageError
from robustrag_integrations.defenses.base import Defense
from robustrag_integrations.defenses.registry import METHODS
from robustrag_integrations.defenses.settings_file import SavedSettings
from robustrag_integrations.defenses.vanilla import VANILLA
from robustrag_integrations.evaluation.data.questions import EvalQuestion
from robustrag_integrations.grouping.passages import Passage
from robustrag_integrations.models.base import DecodingModel, TextModel

PLANTED = "planted"  # the id of the attacker's passages


@dataclass(frozen=True)
class Planting:
    """An attack of the demo: texts planted at the top of the retrieved passages.

    Attributes:
        name: for the table.
        planted: the attacker's passages; none at all for the clean run.
        target: the answer the attacker wants; None for texts that the user typed.
        gist: the planted text in short, for people.
    """

    name: str
    planted: tuple[str, ...] = ()
    target: str | None = None
    gist: str = ""

    def on(self, passages: Sequence[Passage]) -> list[Passage]:
        """Put the planted texts first, each a source of its own; as many of the last passages make way."""
        texts = enumerate(self.planted, 1)
        return inject(passages, [Passage(text, id=PLANTED, source=f"{PLANTED}-{n}.example") for n, text in texts])


@dataclass(frozen=True)
class Outcome:
    """One defence under one attack.

    Attributes:
        attack: the attack's name.
        defense: the defence's name.
        answer: what was answered.
        correct: True if the right answer is in it; None when that is not known.
        hijacked: True if the attacker's answer is in it.
    """

    attack: str
    defense: str
    answer: RobustAnswer
    correct: bool | None
    hijacked: bool

    @property
    def differing(self) -> tuple[GroupReport, ...]:
        """The groups with another answer, planted ones first."""
        lost = [g for g in self.answer.groups if g.status == "differs"]
        return tuple(sorted(lost, key=lambda g: PLANTED not in g.passage_ids))

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome in JSON's types."""
        return {
            "attack": self.attack,
            "defense": self.defense,
            "text": self.answer.text,
            "correct": self.correct,
            "hijacked": self.hijacked,
            "radius": self.answer.radius,
            "abstained": self.answer.abstained,
            "differs": [{"passages": list(g.passage_ids), "margin": g.margin} for g in self.differing],
            "margin_unit": self.answer.margin_unit,
            "warnings": list(self.answer.warnings),
        }


def plantings_on(case: EvalQuestion, passages: Sequence[Passage], typed: Sequence[str] = ()) -> list[Planting]:
    """Return the attacks: none, prompt injection, and poisoning with a forged sentence or with the user's texts."""
    named = {"prompt injection": "pia"}
    if case.answers and not typed:
        named["poisoning"] = "poison"
    found = [Planting("none")]
    for name, attack in named.items():
        texts = planted_texts(attack, case, passages)
        gist = planted_texts(attack, case, passages, repeat=1)
        found.append(Planting(name, texts, case.incorrect, gist[0]))
    if typed:
        found.append(Planting("your text", tuple(typed), None, " / ".join(typed)))
    return found


def defenses_of(model: TextModel, *, choices: bool, saved: SavedSettings | None = None) -> dict[str, Defense]:
    """Return vanilla RAG and the defences that this model and question allow.

    Args:
        model: what is asked.
        choices: True if the question has options.
        saved: a settings file, for the defence that it is about.

    Raises:
        UsageError: that defence is not among them.
    """
    made = {VANILLA.name: VANILLA.build(model)}
    for method in METHODS.values():
        fits = not method.needs_probabilities or isinstance(model, DecodingModel)
        if fits and (choices or "short_answer" in method.tasks):
            made[method.name] = method.build(model)
    if saved is not None and saved.aggregation not in made:
        raise UsageError(f"--settings {saved.path}: this model and question do not allow {saved.aggregation}")
    if saved is not None:
        made[saved.aggregation] = saved.method.build(model, settings=replace(saved, top_k=None))
    return made


def demonstrate(
    case: EvalQuestion,
    passages: Sequence[Passage],
    attacks: Sequence[Planting],
    defenses: Mapping[str, Defense],
    on_run: Callable[[str], None] = lambda message: None,
) -> list[Outcome]:
    """Answer the question with every defence under every attack; the first attack is the clean run."""
    outcomes: list[Outcome] = []
    clean: dict[str, RobustAnswer] = {}
    for attack in attacks:
        attacked = attack.on(passages)
        for name, defense in defenses.items():
            on_run(f"attack: {attack.name}, defence: {name}")
            votes = name in METHODS and METHODS[name].takes_choices
            answer = defense.answer(case.question, attacked, choices=case.choices if votes else None)
            before = clean.setdefault(name, answer)
            correct = says(answer.text, case.answers[0]) if case.answers else None
            outcomes.append(Outcome(attack.name, name, answer, correct, _hijacked(attack, answer, before)))
    return outcomes


def _hijacked(attack: Planting, answer: RobustAnswer, clean: RobustAnswer) -> bool:
    """True if the attacker's answer was given. A text that the user typed has no target: it wins if the answer
    has changed to something that it says."""
    if not attack.planted:
        return False
    if attack.target is not None:
        return says(answer.text, attack.target)
    changed = plain_words(answer.text) != plain_words(clean.text)
    return changed and not answer.abstained and any(says(text, answer.text) for text in attack.planted)


def says(text: str, answer: str) -> bool:
    """True if the text holds the answer's words in sequence; case and punctuation make no difference."""
    wanted = plain_words(answer)
    return bool(wanted) and f" {wanted} " in f" {plain_words(text)} "


def summary(outcomes: Sequence[Outcome]) -> list[str]:
    """Sum up the outcomes under attack in a sentence or two."""
    attacked = [o for o in outcomes if o.attack != "none"]
    return [_who_was_fooled(attacked), *_how_the_defences_did([o for o in attacked if o.defense != "vanilla"])]


def _who_was_fooled(attacked: Sequence[Outcome]) -> str:
    by: dict[str, list[str]] = {o.defense: [] for o in attacked}
    for outcome in attacked:
        if outcome.hijacked:
            by[outcome.defense].append(outcome.attack)
    fooled = [f"{name} ({', '.join(attacks)})" for name, attacks in by.items() if attacks]
    safe = [name for name, attacks in by.items() if not attacks]
    if not fooled:
        return f"No attacker's answer was given: not by {_listed(safe, 'or')}."
    others = f", not by {_listed(safe, 'or')}" if safe else ""
    return f"The attacker's answer was given by {_listed(fooled)}{others}."


def _how_the_defences_did(defended: Sequence[Outcome]) -> list[str]:
    if not defended:
        return []
    smallest = min(o.answer.radius for o in defended)
    known = [o.correct for o in defended if o.correct is not None]
    right = f"{sum(known)} of {len(known)} defended answers under attack were right; the" if known else "The"
    return [f"{right} smallest radius of a defended answer under attack was {smallest}."]


def _listed(names: Sequence[str], word: str = "and") -> str:
    return f" {word} ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
