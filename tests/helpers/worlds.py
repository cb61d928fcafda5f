"""Small worlds in which every kind of attack can be tried against the real inference code.

A world is a defence on a few passages with a scripted model. Attacks are made here from scratch (which passages go,
which come, where, and what each corrupted group then says), and know nothing of how certification counts them.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from robustrag_integrations.certification import Certification
from robustrag_integrations.certification.certify import CertificationRun, text_run
from robustrag_integrations.certification.findings import Question
from robustrag_integrations.defenses.decoding.certifier import decoding_run
from robustrag_integrations.defenses.decoding.plan import decoding_plan
from robustrag_integrations.defenses.decoding.settings import DecodingSettings
from robustrag_integrations.defenses.keyword.certificate import keyword_certification_plan
from robustrag_integrations.defenses.keyword.plan import keyword_plan
from robustrag_integrations.defenses.keyword.settings import KeywordSettings
from robustrag_integrations.defenses.voting.certificate import voting_certification_plan
from robustrag_integrations.defenses.voting.plan import voting_plan
from robustrag_integrations.defenses.voting.settings import VotingSettings
from robustrag_integrations.errors import ModelError
from robustrag_integrations.metrics import Metric, contains_answer
from robustrag_integrations.models.base import Distributions, Opening, Response
from robustrag_integrations.passages import Passage, PassageGroup, isolate
from robustrag_integrations.plans.requests import Append, Ask, OpenSession, Plan, Reply, Request
from robustrag_integrations.prompts import Prompt
from tests.helpers.scripted import BARE, BARE_CHOICES, LetterCodec, ScriptedDecodingModel, ScriptedModel, context_of

EVIL = "EVIL"
SIZES = (1, 2)


def split(text: str) -> set[str]:
    return set(text.split())


def graded(response: str, references: Sequence[str]) -> float:
    """A metric without a zero, so that nothing stops the enumeration: 1 to 4 by the text's letters."""
    return 1.0 + sum(map(ord, response)) % 4


@dataclass
class World:
    """A defence in a scripted setting.

    `infer(groups, said)` runs the real inference, `said` being what each corrupted group says; None for no answer.
    """

    passages: list[Passage]
    attack: str
    limit: int
    group_size: int
    group_by: str | None
    metric: Metric
    references: tuple[str, ...]
    certify: Callable[[], tuple[Certification, ...]]
    infer: Callable[[Sequence[PassageGroup], dict[str, object]], str | None]
    moves: list[object]
    slack: float = 0.0

    def score(self, text: str | None) -> float:
        return 0.0 if text is None else float(self.metric(text, self.references))


@dataclass
class Count:
    """What came of attacks on certificates of one kind."""

    attacks: int = 0
    certificates: int = 0
    positive: int = 0  # certificates with tau > 0
    bounded: int = 0  # certificates with a finite R, enumerated in full
    reached: int = 0  # of these: an attack scores tau exactly
    open: int = 0  # certificates that say "anything"; these are not attacked

    def __add__(self, other: Count) -> Count:
        return Count(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))

    @property
    def tightness(self) -> str:
        """Where the list of responses is finite, how often an attack scores tau."""
        return f"{self.reached} of {self.bounded} ({self.reached / max(self.bounded, 1):.1%})"


Cell = tuple[str, str, str, int]  # defence, attacker, group size, corruption size


@dataclass
class Tally:
    """What came of the attacks, by kind of certificate."""

    worlds: int = 0
    violations: list[str] = field(default_factory=list)
    cells: dict[Cell, Count] = field(default_factory=dict)

    @property
    def total(self) -> Count:
        """All kinds together."""
        return sum(self.cells.values(), Count())

    def report(self, name: str) -> str:
        return (
            f"{name}: {self.worlds} worlds, {self.total.attacks} attacks, {len(self.violations)} violations; "
            f"tau > 0 in {self.total.positive} certificates; where R is finite an attack reaches tau in "
            f"{self.total.tightness}"
        )


def retrievals(world: World, size: int, rng: random.Random, count: int) -> Iterator[list[Passage]]:
    """What the attacker's retriever may return: at most `size` passages gone (modification), at most `size` put in.

    Up to `count` different ones, drawn at random.
    """
    seen: set[tuple[tuple[str, str | None], ...]] = set()
    for _ in range(4 * count):
        listed = _retrieval(world, size, rng)
        key = tuple((p.text, p.source if world.group_by else None) for p in listed)
        if key not in seen:
            seen.add(key)
            yield listed
        if len(seen) == count:
            return


def _retrieval(world: World, size: int, rng: random.Random) -> list[Passage]:
    sources = [p.source for p in world.passages] + [f"new{i}" for i in range(size)]
    left = list(world.passages)
    removed = min(rng.randint(0, size), len(left)) if world.attack == "modification" else 0
    for _ in range(removed):
        left.pop(rng.randrange(len(left)))
    injected = min(rng.choice([size, size, rng.randint(0, size)]), world.limit)
    if len(world.passages) == world.limit:  # the retriever finds enough: nothing goes without something in its place
        injected = max(injected, removed)
    length = min(world.limit, len(left) + injected)
    spots = set(rng.sample(range(length), min(injected, length)))
    benign, evil = iter(left), itertools.count()
    return [
        Passage(f"{EVIL}{next(evil)}", source=rng.choice(sources)) if i in spots else next(benign)
        for i in range(length)
    ]


def attacks(
    world: World, size: int, rng: random.Random, placements: int, replies: int
) -> Iterator[tuple[Sequence[PassageGroup], dict[str, object]]]:
    """Groups as inference sees them, and what the corrupted ones say: everything, or `replies` random choices."""
    for listed in retrievals(world, size, rng, placements):
        groups = isolate(listed, world.group_size, by=world.group_by)
        hit = [g.text for g in groups if EVIL in g.text]
        if len(world.moves) ** len(hit) <= replies:
            choices: Iterator[tuple[object, ...]] = itertools.product(world.moves, repeat=len(hit))
        else:
            choices = iter({tuple(rng.choices(world.moves, k=len(hit))): None for _ in range(replies)})
        for said in choices:
            yield groups, dict(zip(hit, said, strict=True))


def explore(world: World, rng: random.Random, tally: Tally, placements: int, replies: int) -> None:
    """Certify a world, then attack it."""
    tally.worlds += 1
    for cert in world.certify():
        cell = (cert.defense, world.attack, world.group_by or str(world.group_size), cert.corruption_size)
        count = tally.cells.setdefault(cell, Count())
        count.certificates += 1
        count.open += cert.unbounded
        if cert.tau == 0 and not cert.complete:
            continue  # nothing is promised, so nothing can be broken
        lowest = float("inf")
        texts = {r.text for r in cert.responses}
        scores = _Memo(world.score)
        for groups, said in attacks(world, cert.corruption_size, rng, placements, replies):
            count.attacks += 1
            text = world.infer(groups, said)
            score = scores[text]
            lowest = min(lowest, score)
            if score < cert.tau or (cert.complete and text not in texts):
                shown = [g.text for g in groups]
                tally.violations.append(
                    f"{cert.defense} {world.attack}({cert.corruption_size}): {shown} {said} -> {text!r}"
                )
        count.positive += cert.tau > 0
        count.bounded += cert.complete
        count.reached += cert.complete and lowest == cert.tau


def _setting(rng: random.Random) -> dict:
    count = rng.choice([3, 4, 5, 6, 7, 8])
    passages = [Passage(f"p{i}", source=rng.choice(["s", "t", "u", "v", None])) for i in range(count)]
    by_source = rng.random() < 0.15
    return {
        "passages": passages,
        "attack": rng.choice(["injection", "modification"]),
        "limit": count if rng.random() < 0.7 else count + rng.choice([1, 2, 4]),
        "group_size": 1 if by_source else rng.choice([1, 1, 2, 3]),
        "group_by": "source" if by_source else None,
        "metric": rng.choice([graded, graded, contains_answer]),
    }


def _question(setting: dict, references: tuple[str, ...]) -> Question:
    return Question.of(
        "q",
        setting["passages"],
        references,
        "metric",
        SIZES,
        attack=setting["attack"],
        group_size=setting["group_size"],
        group_by=setting["group_by"],
        top_k=setting["limit"],
        max_model_calls=5000,
    )


class _Memo(dict):
    """A function's values, computed (or thrown like dice) once per argument."""

    def __init__(self, value: Callable[[Any], Any]) -> None:
        self._value = value

    def __missing__(self, key: Any) -> Any:
        self[key] = self._value(key)
        return self[key]


class _Quick:
    """A defence's settings, whose steps on one response or one retrieval are computed once for all attacks with it.

    They are the real steps; what is left out is doing them again.
    """

    def __init__(self, settings: Any, **steps: Callable[..., Any]) -> None:
        self._settings, self._asked, self._prompts = settings, None, []
        for name, step in steps.items():
            setattr(self, name, lru_cache(maxsize=None)(step))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._settings, name)

    def isolated_prompts(self, query: str, groups: Sequence[PassageGroup], *choices: Sequence[str]) -> Sequence[Prompt]:
        if groups is not self._asked:
            self._asked, self._prompts = groups, self._settings.isolated_prompts(query, groups, *choices)
        return self._prompts


def driven(plan: Plan, perform: Callable[[Request], Reply]) -> str:
    """The answer's text: a plan run to its end by the smallest driver there is, with nothing to watch and to log."""
    reply: Reply = None
    while True:
        try:
            request = plan.send(reply)
        except StopIteration as done:
            return done.value.text
        reply = perform(request)


RESPONSES = _Memo(lambda text: Response(text, error="failed on purpose" if text is None else None))


def text_performer(evil: dict[str, Any], said: dict[str, Any], final: dict[str, Any]) -> Callable[[Request], Reply]:
    """Replies of the corrupted groups, of the others, and to the last prompt."""

    def perform(request: Request) -> Reply:
        if not isinstance(request, Ask):
            return None
        if request.role == "final":
            return [RESPONSES[final[p.text]] for p in request.prompts]
        texts = [context_of(p) for p in request.prompts]
        return [RESPONSES[evil[t] if t in evil else said[t]] for t in texts]

    return perform


KEYWORD_MOVES = ["a", "b", "a b", "a b c", "c", "x", "a x", "b c x", "b c", "x y", "a b c x", "I don't know", "", None]


def keyword_world(rng: random.Random) -> World:
    setting = _setting(rng)
    said = _Memo(lambda _: rng.choice(["a"] * 8 + ["a b"] * 4 + ["b", "c", "b c", "I don't know", None, ""]))
    answers = ["right", "right", "right a", "wrong", "", " spaced right ", "I don't know"]
    final = _Memo(lambda text: "right" if "a" in text.split("]")[0] and rng.random() < 0.8 else rng.choice(answers))
    settings = KeywordSettings.of(
        alpha=rng.choice([0.2, 0.3, 0.4, 0.5, 0.6, 0.7]),
        beta=rng.choice([2, 3, 4, 9]),
        extractor=split,
        prompts=BARE,
        quorum=rng.choice([0.0, 0.3, 0.5, 0.7]),
    )
    quick: Any = _Quick(settings, keywords_of=settings.keywords_of)
    references = ("right",)

    def certify() -> tuple[Certification, ...]:
        model = ScriptedModel(said.__getitem__, final.__getitem__)
        question = _question(setting, references)
        plan = keyword_certification_plan(question, settings, same_batches=rng.random() < 0.3)
        return text_run("keyword", question, plan, model, setting["metric"], {}).run()

    def infer(groups: Sequence[PassageGroup], evil: dict[str, object]) -> str | None:
        try:
            return driven(keyword_plan("q", groups, quick), text_performer(evil, said, final))
        except ModelError:
            return None

    return World(**setting, references=references, certify=certify, infer=infer, moves=KEYWORD_MOVES)


CHOICES = ["right", "left", "up"]


def voting_world(rng: random.Random) -> World:
    setting = _setting(rng)
    said = _Memo(lambda _: rng.choice(["A"] * 7 + ["B", "B", "C", "I don't know", None]))
    settings = VotingSettings.of(prompts=BARE_CHOICES, quorum=rng.choice([0.0, 0.3, 0.5, 0.7]))
    quick: Any = _Quick(settings, vote_of=settings.vote_of)
    order = tuple(rng.sample(CHOICES, 3))
    references = ("right",)

    def certify() -> tuple[Certification, ...]:
        question = _question(setting, references)
        plan = voting_certification_plan(question, order, settings, same_batches=rng.random() < 0.3)
        return text_run("voting", question, plan, ScriptedModel(said.__getitem__), setting["metric"], {}).run()

    def infer(groups: Sequence[PassageGroup], evil: dict[str, object]) -> str | None:
        try:
            return driven(voting_plan("q", groups, order, quick), text_performer(evil, said, {}))
        except ModelError:
            return None

    return World(**setting, references=references, certify=certify, infer=infer, moves=["A", "B", "C", "no idea", None])


VOCABULARY = 5  # token 0 ends the text
VERTICES = [tuple(float(i == t) for i in range(VOCABULARY)) for t in range(VOCABULARY)]


def _row(rng: random.Random) -> tuple[float, ...]:
    peak = rng.choice([0.1, 0.5, 2.0])
    raw = [rng.gammavariate(peak, 1.0) + 1e-9 for _ in range(VOCABULARY)]
    return tuple(x / sum(raw) for x in raw)


def decoding_world(rng: random.Random) -> World:
    setting = _setting(rng)
    steps = rng.choice([1, 2, 2, 3])
    agreed = _Memo(lambda _: rng.choice([_row(rng), rng.choice(VERTICES), rng.choice(VERTICES)]))
    nothing = _Memo(lambda prefix: agreed[prefix] if rng.random() < 0.4 else _row(rng))
    rows = _Memo(lambda key: agreed[key[1]] if rng.random() < 0.8 else rng.choice([_row(rng), rng.choice(VERTICES)]))
    silent = _Memo(lambda _: rng.random() < 0.1)
    settings = DecodingSettings.of(
        eta=rng.choice([0, 0, 0, 0.5, 1, 2, 3, 4]),
        max_new_tokens=steps,
        prompts=BARE,
        slack=rng.choice([0.0, 0.0, 2.0**-10]),
        stop=rng.choice([("\n",), ("b",)]),
    )
    points = [*VERTICES, _row(rng)]
    scripts: list[object] = list(itertools.product(points, repeat=steps))
    if len(scripts) > 60:
        scripts = rng.sample(scripts, 60)
    references = (rng.choice(["a", "ab", "c", "aa"]),)

    def distribution(text: str, prefix: tuple[int, ...], evil: dict[str, object]) -> Sequence[float] | None:
        if text == "":
            return nothing[prefix]  # type: ignore[return-value]
        if text in evil:
            script = evil[text]
            if script is None:
                return None if prefix == () else VERTICES[0]
            return script[len(prefix)]  # type: ignore[index]
        if silent[text]:
            return None if prefix == () else VERTICES[0]
        return rows[text, prefix]  # type: ignore[index,return-value]

    quick: Any = _Quick(settings)
    alone = _Memo(lambda prefix: np.array(nothing[prefix]))
    uniform = (1 / VOCABULARY,) * VOCABULARY

    def certify() -> tuple[Certification, ...]:
        model = ScriptedDecodingModel(lambda text, prefix: distribution(text, prefix, {}))
        run_: CertificationRun = decoding_run(_question(setting, references), settings, model, setting["metric"])
        return run_.run()

    def performer(evil: dict[str, object]) -> Callable[[Request], Reply]:
        texts: list[str] = []
        prefix: tuple[int, ...] = ()

        def distributions() -> Distributions:
            known = [distribution(text, prefix, evil) for text in texts]
            return Distributions(np.array([uniform if row is None else row for row in known]), alone[prefix])

        def perform(request: Request) -> Reply:
            nonlocal prefix
            if isinstance(request, OpenSession):
                texts.extend(map(context_of, request.prompts))
                abstention = np.array([float(distribution(text, (), evil) is None) for text in texts])
                return Opening(abstention, distributions(), (False,) * len(texts))
            if isinstance(request, Append):
                prefix = (*prefix, request.token)
                return distributions()
            return None

        return perform

    def infer(groups: Sequence[PassageGroup], evil: dict[str, object]) -> str | None:
        return driven(decoding_plan("q", groups, quick, LetterCodec()), performer(evil))

    return World(**setting, references=references, certify=certify, infer=infer, moves=[*scripts, None])
