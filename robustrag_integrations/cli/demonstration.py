"""Computes the demonstration: every defence under every attack. Prints and prepares nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from robustrag_integrations._util.normalise import plain_words
from robustrag_integrations.answers.answer import GroupReport, RobustAnswer
from robustrag_integrations.attacks import inject, planted_texts
from robustrag_integrations.defenses.base import Defense
from robustrag_integrations.defenses.registry import METHODS
from robustrag_integrations.defenses.vanilla import VANILLA
from robustrag_integrations.evaluation.data.questions import EvalQuestion
from robustrag_integrations.grouping.passages import Passage
from robustrag_integrations.metrics import holds_answer
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
        answer: the answer.
        correct: True if the right answer is given; None when that is not known.
        hijacked: True if the attacker's answer is given. An abstention, which may tell what sources say, gives none.
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


def defenses_of(model: TextModel, *, choices: bool) -> dict[str, Defense]:
    """Return vanilla RAG and the defences that this model and question, which may have options, allow."""
    made: dict[str, Defense] = {VANILLA.name: VANILLA.build(model)}
    for method in METHODS.values():
        fits = not method.needs_probabilities or isinstance(model, DecodingModel)
        if fits and (choices or "short_answer" in method.tasks):
            made[method.name] = method.build(model)
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
            right = not answer.abstained and holds_answer(answer.text, case.answers[:1])
            correct = right if case.answers else None
            outcomes.append(Outcome(attack.name, name, answer, correct, _hijacked(attack, answer, before)))
    return outcomes


def _hijacked(attack: Planting, answer: RobustAnswer, clean: RobustAnswer) -> bool:
    """True if the attacker's answer was given. A text that the user typed has no target: it wins if the answer
    has changed to something that it says."""
    if not attack.planted or answer.abstained:
        return False
    if attack.target is not None:
        return holds_answer(answer.text, [attack.target])
    changed = plain_words(answer.text) != plain_words(clean.text)
    return changed and any(holds_answer(text, [answer.text]) for text in attack.planted)


def summary(outcomes: Sequence[Outcome]) -> list[str]:
    """Sum up the outcomes under attack in a sentence or two."""
    by: dict[str, list[str]] = {o.defense: [] for o in outcomes}
    attacked = [o for o in outcomes if o.attack != "none"]
    for outcome in attacked:
        if outcome.hijacked:
            by[outcome.defense].append(outcome.attack)
    fooled = [f"{name} ({', '.join(attacks)})" for name, attacks in by.items() if attacks]
    safe = _listed([name for name, attacks in by.items() if not attacks], "or")
    said = [f"No attacker's answer was given: not by {safe}."]
    if fooled:
        said = [f"The attacker's answer was given by {_listed(fooled)}{f', not by {safe}' if safe else ''}."]
    if defended := [o for o in attacked if o.defense != VANILLA.name]:
        known = [o.correct for o in defended if o.correct is not None]
        if known:
            said.append(f"{sum(known)} of {len(known)} defended answers under attack were right.")
        smallest = {
            name: min(o.answer.radius for o in defended if o.defense == name) for name in by if name != VANILLA.name
        }
        listed = _listed([f"{name} {radius}" for name, radius in smallest.items()])
        said.append(f"Smallest radius under attack: {listed}; 0 promises nothing.")
    return said


def _listed(names: Sequence[str], word: str = "and") -> str:
    return f" {word} ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
