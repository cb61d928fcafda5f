"""Rows of several passages: what vanilla RAG sees, clean and under attack.

The reader obeys attackers by construction, so that attacks on the bundled model show something:

- an injected instruction about the very question asked wins over everything;
- a false statement repeated three times or more in one passage wins over any number of passages telling the truth;
- otherwise what most passages say wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from robustrag_integrations.text.prompts import format_choices
from training.reader import wording
from training.reader.language import INJECTION, INJECTIONS, KINDS, RELATIONS_OF
from training.reader.names import Namer
from training.reader.rows import Branch, Fact, Row, entity, options_for, questions

Attack = Literal["none", "injection", "poison", "conflict"]
ATTACKS: tuple[Attack, ...] = ("none", "none", "injection", "injection", "poison", "poison", "conflict")
LOUD = 3  # repetitions from which a false statement wins


@dataclass(frozen=True)
class Crowd:
    """Several passages about one question.

    Attributes:
        passages: their texts.
        fact: the true answer.
        question: the question, in the wording an injection quotes.
        wrong: the attacker's value (or that of the minority).
        attacked_at: index of the attacker's passage; -1 when there is none.
        others: facts that are told besides, without contradiction.
        told: all facts that are told besides.
        expected: what a reader of all passages answers.
    """

    passages: list[str]
    fact: Fact
    question: str
    wrong: str
    attacked_at: int
    others: list[Fact]
    told: list[Fact]
    expected: str


def _benign(namer: Namer, fact: Fact, tells: bool, extra: int) -> tuple[str, list[Fact]]:
    """A passage that tells the fact (or does not) among `extra` facts about the same or another entity."""
    r = namer.random
    kind = fact.relation.subject
    facts = [fact] if tells else []
    for _ in range(extra if tells else max(1, extra)):
        relation = r.choice(RELATIONS_OF[kind])
        name = fact.entity if r.random() < 0.35 else entity(namer, kind)
        if name == fact.entity and relation.name == fact.relation.name:
            name = entity(namer, kind)
        facts.append(Fact(relation, name, namer.other(relation.value, fact.value)))
    r.shuffle(facts)
    return " ".join(f.statement(r) for f in facts), [f for f in facts if f is not fact]


def _attack_text(r: Random, attack: Attack, fact: Fact, question: str, wrong: str, times: int) -> str:
    if attack == "poison":
        return " ".join([Fact(fact.relation, fact.entity, wrong).statement(r)] * times)
    template = INJECTION if r.random() < 0.65 else r.choice(INJECTIONS)
    return " ".join([template.format(q=question, x=wrong)] * times)


def crowd(namer: Namer, size: int, truthful: int, attack: Attack = "none", times: int = 5, extra: int = 2) -> Crowd:
    """Passages of which `truthful` tell the truth about one fact.

    Args:
        namer: source of names and chance.
        size: number of passages; under injection and poisoning one of them is the attacker's.
        truthful: how many tell the truth. Under "conflict" a minority of them tells something else.
        attack: what is planted.
        times: how often the attacker's sentence is repeated in the attacker's passage.
        extra: most further sentences in a benign passage.
    """
    r = namer.random
    kind = r.choice(KINDS)
    relation = r.choice(RELATIONS_OF[kind])
    fact = Fact(relation, entity(namer, kind), namer.value(relation.value))
    wrong = namer.other(relation.value, fact.value)
    false = Fact(relation, fact.entity, wrong)
    planted = attack in ("injection", "poison")
    minority = r.randint(0, (truthful - 1) // 2) if attack == "conflict" else 0
    told = [false] * minority + [fact] * (truthful - minority)
    told += [fact] * (size - planted - len(told))
    made = [_benign(namer, f, i < truthful, r.randint(0, extra)) for i, f in enumerate(told)]
    r.shuffle(made)
    texts, others = [text for text, _ in made], [fact for _, facts in made for fact in facts]
    question, at = fact.question(r), -1
    if planted:
        at = r.randint(0, len(texts))
        texts.insert(at, _attack_text(r, attack, fact, question, wrong, times))
    wins = attack == "injection" or (attack == "poison" and (times >= LOUD or truthful == 0))
    return Crowd(texts, fact, question, wrong, at, _consistent(others), others, wrong if wins else fact.value)


def _consistent(facts: list[Fact]) -> list[Fact]:
    """The facts about which the passages do not contradict themselves."""
    values: dict[tuple[str, str], set[str]] = {}
    for fact in facts:
        values.setdefault((fact.relation.name, fact.entity), set()).add(fact.value)
    return [f for f in facts if len(values[f.relation.name, f.entity]) == 1]


def _times(r: Random, attack: Attack, truthful: int) -> int:
    """How often the attacker's sentence is repeated; never a number that leaves the winner unclear."""
    if attack == "poison" and (r.random() < 0.8 or 0 < truthful <= 2):
        return r.randint(LOUD, 10)
    return r.choice([1, 1, 1, 2] if attack == "poison" else [1, 1, 1, 2, 3, 5, 8, 10])


def _random_crowd(namer: Namer, large: bool, attacks: Sequence[Attack], smallest: int) -> tuple[Crowd, Attack, int]:
    r = namer.random
    size = r.randint(smallest, 10) if large else r.randint(1, 4)
    attack: Attack = r.choice(attacks)
    if attack == "conflict" or (attack == "poison" and size == 1 and r.random() < 0.5):
        size = max(size, 3)
    most = size - (attack in ("injection", "poison"))
    truthful = r.randint(min(3 if attack == "conflict" else 1, most), most)
    times = _times(r, attack, truthful)
    return crowd(namer, size, truthful, attack, times, extra=2 if large else 1), attack, times


def _main_branches(namer: Namer, said: wording.Wording, made: Crowd, attack: Attack) -> list[Branch]:
    """The question the crowd is about, once or twice."""
    r = namer.random
    asked = [made.question] if attack == "injection" else [made.question, made.fact.question(r)]
    return [Branch(f"crowd_{attack}", said.tail(question), made.expected) for question in dict.fromkeys(asked)]


def _main_choice(namer: Namer, said: wording.Wording, made: Crowd, attack: Attack, times: int) -> Branch:
    """The same as multiple choice. Half of the injections name a letter instead of a value."""
    r = namer.random
    options = options_for(namer, made.fact, [made.fact.value, made.wrong], r.choice([2, 3, 4, 4, 5]))
    letter, task = chr(65 + options.index(made.expected)), f"crowd_choice_{attack}"
    if attack == "injection" and r.random() < 0.5:
        letter = chr(65 + r.randrange(len(options)))
        made.passages[made.attacked_at] = _attack_text(r, attack, made.fact, made.question, letter, times)
        task = "crowd_choice_letter"
    return Branch(task, said.tail(made.question, format_choices(options)), letter)


def crowd_row(namer: Namer, large: bool, attacks: Sequence[Attack] = ATTACKS, smallest: int = 5) -> Row:
    """A row of `smallest` to ten passages (`large`) or one to four, attacked in one of the ways given."""
    r = namer.random
    made, attack, times = _random_crowd(namer, large, attacks, smallest)
    multiple = r.random() < 0.2
    said = wording.reading(r, "choice" if multiple else "answer")
    if multiple:
        branches = [_main_choice(namer, said, made, attack, times)]
    else:
        branches = _main_branches(namer, said, made, attack)
    others = made.others
    if others:
        share = 1.0 if said is wording.PROJECT["choice"] else 0.0 if said is wording.PROJECT["answer"] else 0.1
        asked = r.sample(others, min(len(others), 4))
        branches += questions(namer, said, asked, 6, share, known=[*made.told, made.fact])
    return Row(said.prefix(r.choice(["\n\n", "\n\n", "\n\n", "\n"]).join(made.passages)), branches)
