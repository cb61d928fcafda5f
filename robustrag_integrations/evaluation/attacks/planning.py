"""Corruption of a retrieval: planted passages and their ranks, as a certified attacker may choose (paper, section II).

Injection puts passages anywhere; once the list is full, as many of the lowest-ranked benign passages drop out. It is
among the attacks that `certification.cases` enumerates, so a certificate for the same corruption size covers whatever
is planned here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from robustrag_integrations._util.checks import is_whole_number
from robustrag_integrations.certification.cases import check_attack
from robustrag_integrations.evaluation.attacks.families import Goal, Scene, Writer, attack_of
from robustrag_integrations.evaluation.data.questions import EvalQuestion
from robustrag_integrations.grouping.passages import Passage, as_passages, is_named

Rank = str | int  # a name of `RANKS`, or a rank from 1
RANKS = ("first", "middle", "last", "random")


@dataclass(frozen=True)
class AttackedRetrieval:
    """The retrieval that the defence is shown; `planted` marks the attacker's passages.

    `target` is the answer that the attacker wants: an abstention's words for one who wants none, the host of a link for
    the goal `link`, None where it is not known.
    """

    passages: tuple[Passage, ...]
    planted: tuple[bool, ...]
    target: str | None
    goal: Goal = "answer"


def plan_attack(
    name: str | Writer,
    question: EvalQuestion,
    shown: Sequence[str | Passage],
    *,
    rank: Rank = "first",
    corruption_size: int = 1,
    seed: int = 0,
    repeat: int | None = None,
    top_k: int | None = None,
) -> AttackedRetrieval:
    """Corrupt a retrieval. The same arguments always give the same passages.

    Args:
        name: a name of `ATTACKS`, `module:function`, or a function.
        question: the target of the attack.
        shown: the clean retrieval, best first.
        rank: the place of the planted passages: together at the top (`first`), in the `middle`, at the end (`last`), or
            from a rank on (1 is the top; beyond the end means last); `random` draws a place for each of them, by seed
            and question.
        corruption_size: k', how many passages are planted; no more than there is room for.
        seed: of what is drawn at random.
        repeat: number of times the malicious content is repeated in a passage; None for the attack's own number.
        top_k: number of passages that the retrieval returns when it finds enough; None: as many as are shown.

    Raises:
        TypeError, ValueError: an invalid argument, or the question gives the attacker no target.
    """
    attack, items = attack_of(name), as_passages(shown)
    room = check_attack(len(items), corruption_size, "injection", top_k)
    if rank not in RANKS and not is_whole_number(rank, 1):
        raise ValueError(f"rank={rank!r} must be {', '.join(map(repr, RANKS))}, or a whole number from 1, the top")
    target = attack.target(question)
    if attack.write is None or corruption_size == 0:
        return AttackedRetrieval(items, (False,) * len(items), target, attack.goal)
    texts = planted_texts(name, question, items, repeat=repeat, corruption_size=corruption_size, seed=seed)
    count = min(corruption_size, room)
    names = [f"planted{i}" for i in range(count)]  # attackers choose the names of their sources, where there are any
    named = any(map(is_named, items))
    evil = iter([Passage(texts[i % len(texts)], id=n, origin=n if named else None) for i, n in enumerate(names)])
    length = min(room, len(items) + count)
    places = _places(rank, length, count, Random(f"{seed} {question.question}"))
    flags, benign = tuple(i in places for i in range(length)), iter(items)
    return AttackedRetrieval(tuple(next(evil if flag else benign) for flag in flags), flags, target, attack.goal)


def planted_texts(
    name: str | Writer,
    question: EvalQuestion,
    shown: Sequence[str | Passage],
    *,
    repeat: int | None = None,
    corruption_size: int = 1,
    seed: int = 0,
) -> tuple[str, ...]:
    """Return what an attack writes about a question, before it is placed: one text for all passages, or several.

    The arguments are those of `plan_attack`; `none` writes nothing.

    Raises:
        TypeError, ValueError: an invalid argument, or the question gives the attacker no target.
    """
    attack = attack_of(name)
    if attack.write is None:
        raise ValueError(f"attack {attack.name!r} writes nothing about {question.question!r:.80}")
    target = attack.target(question)
    if target is None:
        raise ValueError(
            f"attack {attack.name!r} has no target for {question.question!r:.80}; give the question an incorrect answer"
        )
    known = question.answers, target, question.choices, question.poisoned
    repeat = attack.repeat if repeat is None else repeat
    said = attack.write(Scene(question.question, *known, as_passages(shown), corruption_size, repeat, seed))
    texts = [said] if isinstance(said, str) else list(said) if isinstance(said, Sequence) else []
    if not texts or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"attack {attack.name!r} must return a text or a list of texts, got {said!r:.80}")
    return tuple(texts)


def _places(rank: Rank, length: int, count: int, random: Random) -> frozenset[int]:
    if rank == "random":
        return frozenset(random.sample(range(length), count))
    last = length - count
    start = {"first": 0, "middle": last // 2, "last": last}[rank] if isinstance(rank, str) else min(rank - 1, last)
    return frozenset(range(start, start + count))
