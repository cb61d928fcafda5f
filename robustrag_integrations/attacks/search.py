"""An attacker who knows everything and searches.

The canned attacks write one text and hope. This one sees the clean retrieval, the defence and every answer it gives,
tries many texts and places, keeps what works best and varies it. It never sees a certificate: it is what certificates
and radii are put to the test with. That it finds nothing proves nothing; that it finds something below tau, or changes
an answer within its radius, would prove the certificate wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random

from robustrag_integrations._util.checks import check_at_least
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.attacks.strategies import Crafted, crafted_texts, obeys
from robustrag_integrations.certification.cases import AttackMode, check_attack
from robustrag_integrations.defenses.base import Defense
from robustrag_integrations.errors import RobustRAGError
from robustrag_integrations.grouping.passages import Passage, as_passages
from robustrag_integrations.metrics import GuardedMetric, Metric, contains_answer, references_of
from robustrag_integrations.prompts import ABSTENTION


@dataclass(frozen=True)
class AdaptiveAttack:
    """The best attack that the search found.

    Attributes:
        score: the lowest score reached, or for a substitution 0 if the answer changed and 1 if not.
        text: the answer then; None when the defence gave none at all.
        passages: the retrieval that leads to it.
        clean: the answer without an attack.
        tries: number of retrievals that were put to the defence.
        tried: number of corrupted passages of each strategy that were put to the defence.
        obeyed: in how many tries a corrupted group said just what the attacker had made its passage for.
    """

    score: float
    text: str | None
    passages: tuple[Passage, ...]
    clean: RobustAnswer
    tries: int
    tried: Mapping[str, int] = field(default_factory=dict)
    obeyed: int = 0


def adaptive(
    defense: Defense,
    query: str,
    passages: Iterable[str | Passage],
    reference: str | Sequence[str],
    *,
    target: str,
    corruption_size: int = 1,
    attack: AttackMode = "injection",
    metric: Metric = contains_answer,
    choices: Sequence[str] | None = None,
    top_k: int | None = None,
    tries: int = 100,
    seed: int = 0,
) -> AdaptiveAttack:
    """Search for corrupted passages that bring the answer's score down.

    Args:
        defense: the target of the attack; every try is one of its answers.
        query: the question.
        passages: the clean retrieval, best first.
        reference: the right answer, or several.
        target: the attacker's answer.
        corruption_size: k', how many passages the attacker controls.
        attack: `injection` or `modification`.
        metric: the score to bring down; an answer that it fails on scores 0, as in certificates.
        choices: the options of a multiple-choice question.
        top_k: number of passages that the retrieval returns when it finds enough; None: as many as given.
        tries: number of retrievals to try.
        seed: the seed of the search.

    Raises:
        TypeError, ValueError: an invalid argument.
    """
    items, references = as_passages(passages), references_of(reference)
    limit = check_attack(len(items), corruption_size, attack, top_k)
    random = Random(seed)
    clean = defense.answer(query, items, choices=choices)
    guarded = GuardedMetric(metric)

    # Where no passage has a source, groups are of one passage, whatever the defence groups by.
    labels = [p.source for p in items]

    def place(made: Sequence[Crafted]) -> _Placed:
        texts = [m.text for m in made][:limit]
        kept = list(items)
        if attack == "modification":
            for _ in range(min(len(texts), len(kept))):
                kept.pop(random.randrange(len(kept)))
        listed = kept[: max(limit - len(texts), 0)]
        for i, text in enumerate(texts):
            source = random.choice(labels + [f"attacker {i}"] * any(labels)) if labels else None
            listed.insert(random.randint(0, len(listed)), Passage(text, id=f"planted{i}", source=source))
        return _Placed(listed, frozenset(f"planted{i}" for i in range(len(texts))))

    def worth(answer: RobustAnswer | None) -> float:
        return 0.0 if answer is None else guarded(_given(answer), references)

    texts = crafted_texts(query, items, clean, references[0], target, choices)
    ask = partial(_answer, defense, query, choices)
    return _search(ask, texts, corruption_size, place, worth, tries, random, clean)


def adaptive_substitution(
    defense: Defense,
    query: str,
    passages: Iterable[str | Passage],
    *,
    groups: int,
    target: str,
    choices: Sequence[str] | None = None,
    tries: int = 100,
    seed: int = 0,
) -> AdaptiveAttack:
    """Search for other contents of `groups` observed groups that change the answer's text (attacker: substitution(r)).

    Raises:
        TypeError, ValueError: an invalid argument.
    """
    items = as_passages(passages)
    random = Random(seed)
    clean = defense.answer(query, items, choices=choices)
    ids = {p.id: rank for rank, p in enumerate(items)}
    members = [[ids[name] for name in report.passage_ids] for report in clean.groups]
    if not 0 <= groups <= len(members):
        raise ValueError(f"groups={groups!r} must be from 0 to {len(members)}, the groups of this answer")

    def place(made: Sequence[Crafted]) -> _Placed:
        listed = list(items)
        hit = random.sample(members, groups)
        for crafted, ranks in zip(made, hit, strict=True):
            for rank in ranks:
                listed[rank] = Passage(crafted.text, id=items[rank].id, source=items[rank].source)
        return _Placed(listed, frozenset(str(items[rank].id) for ranks in hit for rank in ranks))

    def worth(answer: RobustAnswer | None) -> float:
        return float(answer is not None and _given(answer) == _given(clean))

    texts = crafted_texts(query, items, clean, clean.text, target, choices)
    ask = partial(_answer, defense, query, choices)
    return _search(ask, texts, groups, place, worth, tries, random, clean)


@dataclass(frozen=True)
class _Placed:
    """A retrieval with corrupted passages in it, and the ids of these."""

    listed: list[Passage]
    ids: frozenset[str]


def _search(
    answer: Callable[[Sequence[Passage]], RobustAnswer | None],
    texts: Sequence[Crafted],
    count: int,
    place: Callable[[Sequence[Crafted]], _Placed],
    worth: Callable[[RobustAnswer | None], float],
    tries: int,
    random: Random,
    clean: RobustAnswer,
) -> AdaptiveAttack:
    """Try each text in all places at once, then vary the best: one of its texts, or its places.

    Texts that the model has obeyed are drawn more often from then on.
    """
    check_at_least(1, tries=tries)
    best_texts: list[Crafted] = []
    best: tuple[float, float] = (float("inf"), 0.0)
    found = AdaptiveAttack(worth(clean), clean.text, (), clean, 0)
    tried: Counter[str] = Counter()
    liked: list[Crafted] = []
    for number in range(tries):
        if number < len(texts):
            plan = [texts[number]] * count
        else:
            plan = list(best_texts)
            for _ in range(random.choice([0, 1, 1, 2]) if plan else 0):
                plan[random.randrange(len(plan))] = random.choice([*texts, *liked])
        tried.update(made.strategy for made in plan)
        placed = place(plan)
        given = answer(placed.listed)
        liked += _obeyed(given, plan, placed.ids)
        value = (worth(given), 0.0 if given is None else float(given.radius))
        if value <= best:  # equal ones replace each other, so that the search does not stand still
            best, best_texts = value, plan
        if value[0] < found.score:
            text = None if given is None else given.text
            found = AdaptiveAttack(value[0], text, tuple(placed.listed), clean, 0)
        if found.score == 0:
            break
    return replace(found, tries=number + 1, tried=dict(tried), obeyed=len(liked))


def _answer(
    defense: Defense, query: str, choices: Sequence[str] | None, listed: Sequence[Passage]
) -> RobustAnswer | None:
    try:
        return defense.answer(query, listed, choices=choices)
    except RobustRAGError:
        return None


def _given(answer: RobustAnswer) -> str:
    """Return what an answer counts as: an abstention is one, whatever its text tells."""
    return ABSTENTION if answer.abstained else answer.text


def _obeyed(answer: RobustAnswer | None, plan: Sequence[Crafted], ids: frozenset[str]) -> list[Crafted]:
    """Return the first text that a corrupted group obeyed, if there is one."""
    if answer is None:
        return []
    said = [report.response for report in answer.groups if not ids.isdisjoint(report.passage_ids)]
    done = [made for made in plan if made.wanted and any(obeys(response, made.wanted) for response in said)]
    return done[:1]
