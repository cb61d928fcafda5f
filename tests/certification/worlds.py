"""Small worlds in which every kind of attack can be tried against the real inference code.

A world is a defence on a few passages with a scripted model. Attacks are made here from scratch (which passages go,
which come, where, and what each corrupted group then says), and know nothing of how certification counts them.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from robustrag_integrations.certification import Certification
from robustrag_integrations.certification.certify import CertificationRun, decoding_run, text_run
from robustrag_integrations.certification.findings import Question
from robustrag_integrations.certification.keyword import keyword_certification_plan
from robustrag_integrations.certification.voting import voting_certification_plan
from robustrag_integrations.defenses.decoding import DecodingSettings, decoding_plan
from robustrag_integrations.defenses.drivers import DecodingPerformer, TextPerformer, run
from robustrag_integrations.defenses.keyword import KeywordSettings, keyword_plan
from robustrag_integrations.defenses.voting import VotingSettings, voting_plan
from robustrag_integrations.errors import ModelError
from robustrag_integrations.metrics import Metric, contains_answer
from robustrag_integrations.passages import Passage, PassageGroup, isolate
from tests.scripted import BARE, BARE_CHOICES, LetterCodec, ScriptedDecodingModel, ScriptedModel

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
class Tally:
    """What came of the attacks."""

    worlds: int = 0
    attacks: int = 0
    violations: list[str] = field(default_factory=list)
    positive: int = 0  # certificates with tau > 0
    bounded: int = 0  # certificates with a finite R, enumerated in full
    reached: int = 0  # of these: an attack scores tau exactly
    open: int = 0  # certificates that say "anything"; these are not attacked

    def report(self, name: str) -> str:
        return (
            f"{name}: {self.worlds} worlds, {self.attacks} attacks, {len(self.violations)} violations; "
            f"tau > 0 in {self.positive} certificates; where R is finite an attack reaches tau in "
            f"{self.reached} of {self.bounded} ({self.reached / max(self.bounded, 1):.1%})"
        )


def retrievals(world: World, size: int, rng: random.Random, count: int) -> Iterator[list[Passage]]:
    """What the attacker's retriever may return: at most `size` passages gone (modification), at most `size` put in."""
    sources = [p.source for p in world.passages] + [f"new{i}" for i in range(size)]
    for _ in range(count):
        left = list(world.passages)
        removed = min(rng.randint(0, size), len(left)) if world.attack == "modification" else 0
        for _ in range(removed):
            left.pop(rng.randrange(len(left)))
        injected = min(rng.choice([size, size, rng.randint(0, size)]), world.limit)
        if (
            len(world.passages) == world.limit
        ):  # the retriever finds enough: nothing goes without something in its place
            injected = max(injected, removed)
        length = min(world.limit, len(left) + injected)
        spots = set(rng.sample(range(length), min(injected, length)))
        benign, evil = iter(left), itertools.count()
        yield [
            Passage(f"{EVIL}{next(evil)}", source=rng.choice(sources)) if i in spots else next(benign)
            for i in range(length)
        ]


def attacks(
    world: World, size: int, rng: random.Random, placements: int, replies: int
) -> Iterator[tuple[Sequence[PassageGroup], dict[str, object]]]:
    """Groups as inference sees them, and what the corrupted ones say."""
    for listed in retrievals(world, size, rng, placements):
        groups = isolate(listed, world.group_size, by=world.group_by)
        hit = [g.text for g in groups if EVIL in g.text]
        if len(world.moves) ** len(hit) <= replies:
            choices: Iterator[tuple[object, ...]] = itertools.product(world.moves, repeat=len(hit))
        else:
            choices = iter([tuple(rng.choice(world.moves) for _ in hit) for _ in range(replies)])
        for said in choices:
            yield groups, dict(zip(hit, said, strict=True))


def explore(world: World, rng: random.Random, tally: Tally, placements: int, replies: int) -> None:
    """Certify a world, then attack it."""
    tally.worlds += 1
    for cert in world.certify():
        tally.open += cert.unbounded
        if cert.tau == 0 and not cert.complete:
            continue  # nothing is promised, so nothing can be broken
        lowest = float("inf")
        texts = {r.text for r in cert.responses}
        for groups, said in attacks(world, cert.corruption_size, rng, placements, replies):
            tally.attacks += 1
            text = world.infer(groups, said)
            score = world.score(text)
            lowest = min(lowest, score)
            if score < cert.tau or (cert.complete and text not in texts):
                shown = [g.text for g in groups]
                tally.violations.append(
                    f"{cert.defense} {world.attack}({cert.corruption_size}): {shown} {said} -> {text!r}"
                )
        tally.positive += cert.tau > 0
        tally.bounded += cert.complete
        tally.reached += cert.complete and lowest == cert.tau


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
    """What the benign groups say, thrown once per text."""

    def __init__(self, throw: Callable[[str], object]) -> None:
        self._throw = throw

    def __missing__(self, key: str) -> object:
        self[key] = self._throw(key)
        return self[key]


KEYWORD_MOVES = ["a", "b", "a b", "a b c", "c", "x", "a x", "b c x", "I don't know", "", None]


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
    references = ("right",)

    def certify() -> tuple[Certification, ...]:
        model = ScriptedModel(said.__getitem__, final.__getitem__)
        question = _question(setting, references)
        plan = keyword_certification_plan(question, settings, same_batches=rng.random() < 0.3)
        return text_run("keyword", question, plan, model, setting["metric"], {}).run()

    def infer(groups: Sequence[PassageGroup], evil: dict[str, object]) -> str | None:
        model = ScriptedModel(lambda text: evil[text] if text in evil else said[text], final.__getitem__)
        try:
            return run(keyword_plan("q", groups, settings), TextPerformer(model)).text
        except ModelError:
            return None

    return World(**setting, references=references, certify=certify, infer=infer, moves=KEYWORD_MOVES)


CHOICES = ["right", "left", "up"]


def voting_world(rng: random.Random) -> World:
    setting = _setting(rng)
    said = _Memo(lambda _: rng.choice(["A"] * 7 + ["B", "B", "C", "I don't know", None]))
    settings = VotingSettings.of(prompts=BARE_CHOICES, quorum=rng.choice([0.0, 0.3, 0.5, 0.7]))
    order = rng.sample(CHOICES, 3)
    references = ("right",)

    def certify() -> tuple[Certification, ...]:
        question = _question(setting, references)
        plan = voting_certification_plan(question, order, settings, same_batches=rng.random() < 0.3)
        return text_run("voting", question, plan, ScriptedModel(said.__getitem__), setting["metric"], {}).run()

    def infer(groups: Sequence[PassageGroup], evil: dict[str, object]) -> str | None:
        model = ScriptedModel(lambda text: evil[text] if text in evil else said[text])
        try:
            return run(voting_plan("q", groups, order, settings), TextPerformer(model)).text
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

    def model(evil: dict[str, object]) -> ScriptedDecodingModel:
        return ScriptedDecodingModel(lambda text, prefix: distribution(text, prefix, evil))

    def certify() -> tuple[Certification, ...]:
        run_: CertificationRun = decoding_run(_question(setting, references), settings, model({}), setting["metric"])
        return run_.run()

    def infer(groups: Sequence[PassageGroup], evil: dict[str, object]) -> str | None:
        return run(decoding_plan("q", groups, settings, LetterCodec()), DecodingPerformer(model(evil))).text

    return World(**setting, references=references, certify=certify, infer=infer, moves=[*scripts, None])
