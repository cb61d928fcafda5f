"""Small worlds in which every kind of attack can be tried against the real inference code.

A world is a defence on a few passages with a scripted model; `brute_force` attacks it.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from robustrag_integrations._util.errors import ModelError
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.certification.certify import CertificationRun, text_run
from robustrag_integrations.certification.findings import Question
from robustrag_integrations.certification.metrics import Metric, contains_answer
from robustrag_integrations.certification.result import Certification
from robustrag_integrations.defenses.consensus.defense import consensus_certification_plan, consensus_plan
from robustrag_integrations.defenses.consensus.lists import list_certification_plan, list_plan
from robustrag_integrations.defenses.consensus.settings import ConsensusSettings
from robustrag_integrations.defenses.decoding.certificate import decoding_run
from robustrag_integrations.defenses.decoding.plan import DecodingSettings, decoding_plan
from robustrag_integrations.defenses.keyword.defense import KeywordSettings, keyword_certification_plan, keyword_plan
from robustrag_integrations.defenses.voting.defense import VotingSettings, voting_certification_plan, voting_plan
from robustrag_integrations.grouping.passages import Passage, Source
from robustrag_integrations.models.base import Distributions, Opening, Response, Role, Until
from robustrag_integrations.plans.asking import PlanInput
from robustrag_integrations.plans.finish import Draft, SpendingBook, finish
from robustrag_integrations.plans.requests import Append, Ask, OpenSession, Reply, Request, Steps
from robustrag_integrations.text.prompts import Prompt
from tests.helpers.scripted import (
    BARE,
    BARE_CHOICES,
    LetterCodec,
    ScriptedDecodingModel,
    ScriptedModel,
    context_of,
    split,
)

SIZES = (1, 2)


def graded(response: str, references: Sequence[str]) -> float:
    """A metric without a zero, so that nothing stops the enumeration: 1 to 4 by the text's letters."""
    return 1.0 + sum(map(ord, response)) % 4


@dataclass
class World:
    """A defence in a scripted setting.

    `draft(sources, said)` runs the method's real plan, `said` being what the corrupted sources say, by their text; None
    when it gives no answer. `answer` adds the radius.
    """

    method: str
    passages: list[Passage]
    attack: str
    limit: int
    passages_per_source: int
    group_by: str | None
    metric: Metric
    references: tuple[str, ...]
    certify: Callable[[], tuple[Certification, ...]]
    draft: Callable[[Sequence[Source], dict[str, object]], Draft | None]
    moves: Sequence[object]

    @property
    def kind(self) -> str:
        """What has one vote: a source, or so many passages."""
        return "source" if self.group_by == "source" else str(self.passages_per_source)

    def answer(self, sources: Sequence[Source]) -> RobustAnswer | None:
        """The whole answer without an attacker; None for none."""
        draft = self.draft(sources, {})
        return None if draft is None else whole(draft, sources)

    def text(self, sources: Sequence[Source], said: dict[str, object]) -> str | None:
        """The text that the inference gives, the abstention where it abstains; None for none."""
        draft = self.draft(sources, said)
        return None if draft is None else shown(draft.answer)

    def score(self, text: str | None) -> float:
        return 0.0 if text is None else float(self.metric(text, self.references))


def _inputs(sources: Sequence[Source]) -> PlanInput:
    return PlanInput("q", tuple(sources))


def shown(answer: RobustAnswer) -> str:
    """What people read: the answer, or the abstention and what it tells."""
    return answer.text


def _setting(rng: random.Random, agreeing: bool) -> dict:
    count = rng.choice([4, 6, 7, 8, 9] if agreeing else [3, 4, 5, 6, 7, 8])
    passages = [Passage(f"p{i}", origin=rng.choice(["s", "t", "u", "v", None])) for i in range(count)]
    by_source = rng.random() < 0.15
    return {
        "passages": passages,
        "attack": rng.choice(["injection", "modification"]),
        "limit": count if rng.random() < 0.7 else count + rng.choice([1, 2, 4]),
        "passages_per_source": 1 if by_source or (agreeing and rng.random() < 0.8) else rng.choice([1, 1, 2, 3]),
        "group_by": "source" if by_source else "passage",
        "metric": rng.choice([graded, graded, contains_answer]),
    }


def _question(setting: dict, references: tuple[str, ...]) -> Question:
    return Question(
        "q",
        tuple(setting["passages"]),
        references,
        "metric",
        SIZES,
        attack=setting["attack"],
        passages_per_source=setting["passages_per_source"],
        group_by=setting["group_by"],
        top_k=setting["limit"],
        max_model_calls=5000,
    )


class Memo(dict):
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

    def __init__(self, settings: Any, reading: Callable[..., Any] | None = None) -> None:
        self._settings, self._asked, self._prompts = settings, None, []
        if reading is not None:
            self.reading = lru_cache(maxsize=None)(lambda *about: _remembered(reading(*about)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._settings, name)

    def isolated_prompts(self, query: str, sources: Sequence[Source], *choices: Sequence[str]) -> Sequence[Prompt]:
        if sources != self._asked:
            self._asked, self._prompts = sources, self._settings.isolated_prompts(query, sources, *choices)
        return self._prompts


def _remembered(read: Callable[[Response], Any]) -> Callable[[Response], Any]:
    """Read each response once; equal ones may differ in how sure the model is."""
    known = Memo(lambda same: read(same[2]))
    return lambda response: known[response, response.logprobs, response]


def driven(plan: Steps[Any], perform: Callable[[Request], Reply]) -> Any:
    """A plan's result, run to its end by the smallest driver there is, with no logs and no spans."""
    reply: Reply = None
    while True:
        try:
            request = plan.send(reply)
        except StopIteration as done:
            return done.value
        reply = perform(request)


def whole(draft: Draft, sources: Sequence[Source]) -> RobustAnswer:
    """The answer of a draft, with its radius."""
    return finish(draft, PlanInput("q", tuple(sources)), SpendingBook())


def drafted(plan: Steps[Draft], perform: Callable[[Request], Reply]) -> Draft | None:
    """A method's draft; None where too many sources failed, or the final call."""
    try:
        return driven(plan, perform)
    except ModelError:
        return None


RESPONSES = Memo(lambda text: Response(text, error="failed on purpose" if text is None else None))


def text_performer(evil: dict[str, Any], said: dict[str, Any], final: dict[str, Any]) -> Callable[[Request], Reply]:
    """Replies of the corrupted sources, of the others, and to the last prompt."""

    def perform(request: Request) -> Reply:
        if not isinstance(request, Ask):
            return None
        if request.role == "final":
            return [RESPONSES[final[p.text]] for p in request.prompts]
        texts = [context_of(p) for p in request.prompts]
        return [RESPONSES[evil[t] if t in evil else said[t]] for t in texts]

    return perform


KEYWORD_MOVES = ["a", "b", "a b", "a b c", "c", "x", "a x", "b c x", "b c", "x y", "a b c x", "I don't know", "", None]


def keyword_world(rng: random.Random, *, agreeing: bool = False) -> World:
    """Keyword aggregation; `agreeing`: most sources say the same, and any other set of keywords is another answer."""
    setting = _setting(rng, agreeing)
    replies = ["a"] * (18 if agreeing else 8) + ["a b"] * 4 + ["b", "c", "b c", "I don't know", None, ""]
    said = Memo(lambda _: rng.choice(replies))
    answers = ["right", "right", "right a", "wrong", "", " spaced right ", "I don't know"]
    final = Memo(lambda text: "right" if "a" in text.split("]")[0] and rng.random() < 0.8 else rng.choice(answers))
    if agreeing:
        final = Memo(lambda text: text)
    more: dict[str, Any] = {"extractor": split, "prompts": BARE, "quorum": rng.choice([0.0, 0.3, 0.5, 0.7])}
    more["disagreement"] = "abstain"
    more["final"] = rng.choice(["always", "always", "always", "never"])
    if rng.random() < 0.3:
        settings = KeywordSettings(task="long_form", min_words=1, **more)
    else:
        alpha, beta = rng.choice([0.2, 0.3, 0.4, 0.5, 0.6, 0.7]), rng.choice([2, 3, 4, 9])
        settings = KeywordSettings(alpha=alpha, beta=beta, **more)
    quick: Any = _Quick(settings, settings.reading)
    references = ("right",)

    def certify() -> tuple[Certification, ...]:
        model = ScriptedModel(said.__getitem__, final.__getitem__)
        question = _question(setting, references)
        plan = keyword_certification_plan(question, settings, same_batches=rng.random() < 0.3)
        return text_run("keyword", question, plan, model, setting["metric"], {}).run()

    def draft(sources: Sequence[Source], evil: dict[str, object]) -> Draft | None:
        return drafted(keyword_plan(_inputs(sources), quick), text_performer(evil, said, final))

    return World("keyword", **setting, references=references, certify=certify, draft=draft, moves=KEYWORD_MOVES)


LIST_MOVES: list[object] = [
    "- x",
    "X",
    "x\ny",
    "- x\n- y",
    "y",
    "z",
    "Z",
    "x\nz",
    "y\nz",
    "x\ny\nz",
    "wagon",
    "Wagon\nx",
]
LIST_MOVES += ["I don't know", "", None]


def list_world(rng: random.Random, *, agreeing: bool = False) -> World:
    """Lists; `agreeing`: most sources give the same items."""
    setting = _setting(rng, agreeing)
    many = rng.choice(["wagon", "Wagon\n- x", "x\ny", "- x"])
    replies = (
        [many] * (40 if agreeing else 9) + ["x"] * 2 + ["- x\n- y", "wagon\nx", "Wagon", "y", "I don't know", None, ""]
    )
    said = Memo(lambda _: rng.choice(replies))
    quorum = rng.choice([0.0, 0.3, 0.5, 0.7])
    settings = ConsensusSettings(
        task="list", min_support=rng.choice([1, 2, 2, 3]), prompts=BARE, quorum=quorum, disagreement="abstain"
    )
    quick: Any = _Quick(settings, settings.reading)
    references = ("x",)

    def certify() -> tuple[Certification, ...]:
        question = _question(setting, references)
        plan = list_certification_plan(question, settings, same_batches=rng.random() < 0.3)
        return text_run("list", question, plan, ScriptedModel(said.__getitem__), setting["metric"], {}).run()

    def draft(sources: Sequence[Source], evil: dict[str, object]) -> Draft | None:
        return drafted(list_plan(_inputs(sources), quick), text_performer(evil, said, {}))

    return World("consensus", **setting, references=references, certify=certify, draft=draft, moves=LIST_MOVES)


WORDINGS = ("Xylo", "xylo", "The Xylo", "Xylo.")  # of one key


@dataclass(frozen=True)
class Move:
    """What a source does: its reply, and how sure the model is of it."""

    reply: str | None
    is_sure: bool = True

    @property
    def response(self) -> Response:
        """As the model gives it."""
        logprobs = (-0.01,) if self.is_sure else (-3.0,)
        return Response(self.reply, error="failed on purpose" if self.reply is None else None, logprobs=logprobs)


VERDICTS = ("Yes", "Yes, all may.", "Yes, on Fridays", "No", "No, never.", "no.")
REPLIES = (*WORDINGS, "Yoke", "yoke.", "Zulu", "right", "Xylo Yoke", "not Xylo", "q", "I don't know", "")
CONSENSUS_MOVES = [
    *map(Move, REPLIES),
    *(Move(reply, is_sure=False) for reply in (*WORDINGS, "Yoke", "Zulu")),
    Move(None),
]


class ConsensusModel(ScriptedModel):
    """Makes a scripted move about each passage."""

    def __init__(self, moves: Callable[[str], Move]) -> None:
        super().__init__(lambda text: moves(text).reply)
        self._moves = moves

    def generate(self, prompts: Sequence[Prompt], role: Role, until: Until | None = None) -> list[Response]:
        assert role == "isolated"
        return [self._moves(context_of(prompt)).response for prompt in prompts]


def consensus_world(rng: random.Random, *, agreeing: bool = False) -> World:
    """Consensus over answers in several wordings; `agreeing`: most sources say the same.

    Replaced sources choose their reply, and the confidence in it. In a third of the worlds they begin with verdicts.
    """
    setting = _setting(rng, agreeing)
    many = [rng.choice(WORDINGS)] * 3 + [*WORDINGS]
    replies = many * (7 if agreeing else 5) + ["Yoke", "Yoke", "yoke.", "Zulu", "right", "Xylo Yoke", "q"]
    replies += ["I don't know", "I don't know", None, ""]
    moves = CONSENSUS_MOVES
    if rng.random() < 0.3:
        replies = ["Yes"] * (16 if agreeing else 8) + [*VERDICTS, *VERDICTS, "Zulu", None]
        moves = [*map(Move, (*VERDICTS, "Zulu", None))]
    said = Memo(lambda _: Move(rng.choice(replies), is_sure=rng.random() < 0.8))
    settings = ConsensusSettings(
        min_support=rng.choice([1, 2, 2, 3, 3]),
        agreement=rng.choice(["plurality", "plurality", "majority"]),
        unsure=rng.choice(["count", "count", "abstain"]),
        disagreement=rng.choice(["tell", "abstain", "abstain"]),
        prompts=BARE,
        quorum=rng.choice([0.0, 0.3, 0.5, 0.7]),
    )
    quick: Any = _Quick(settings, settings.reading)
    references = ("Xylo",)

    def certify() -> tuple[Certification, ...]:
        model = ConsensusModel(said.__getitem__)
        question = _question(setting, references)
        plan = consensus_certification_plan(question, settings, same_batches=rng.random() < 0.3)
        return text_run("consensus", question, plan, model, setting["metric"], {}).run()

    def draft(sources: Sequence[Source], evil: dict[str, object]) -> Draft | None:
        def move(prompt: Prompt) -> Move:
            text = context_of(prompt)
            return evil[text] if text in evil else said[text]  # type: ignore[return-value]

        def perform(request: Request) -> Reply:
            if isinstance(request, Ask):
                return [MADE[move(prompt)] for prompt in request.prompts]
            return None

        return drafted(consensus_plan(_inputs(sources), quick), perform)

    return World("consensus", **setting, references=references, certify=certify, draft=draft, moves=moves)


MADE = Memo(lambda move: move.response)


CHOICES = ["right", "left", "up"]
VOTES: list[object] = ["A", "B", "C", "no idea", None]


def voting_world(rng: random.Random, *, agreeing: bool = False) -> World:
    """Majority voting; `agreeing`: most sources vote for the same option."""
    setting = _setting(rng, agreeing)
    said = Memo(lambda _: rng.choice(["A"] * (12 if agreeing else 7) + ["B", "B", "C", "I don't know", None]))
    settings = VotingSettings(
        prompts=BARE_CHOICES,
        quorum=rng.choice([0.0, 0.3, 0.5, 0.7]),
        disagreement=rng.choice(["tell", "abstain", "abstain"]),
    )
    quick: Any = _Quick(settings, settings.reading)
    order = tuple(rng.sample(CHOICES, 3))
    references = ("right",)

    def certify() -> tuple[Certification, ...]:
        question = _question(setting, references)
        plan = voting_certification_plan(question, settings, order, same_batches=rng.random() < 0.3)
        return text_run("voting", question, plan, ScriptedModel(said.__getitem__), setting["metric"], {}).run()

    def draft(sources: Sequence[Source], evil: dict[str, object]) -> Draft | None:
        return drafted(voting_plan(PlanInput("q", tuple(sources), order), quick), text_performer(evil, said, {}))

    return World(
        "voting", **setting, references=references, certify=certify, draft=draft, moves=["A", "B", "C", "no idea", None]
    )


VOCABULARY = 5  # token 0 ends the text
VERTICES = [tuple(float(i == t) for i in range(VOCABULARY)) for t in range(VOCABULARY)]


def _row(rng: random.Random) -> tuple[float, ...]:
    peak = rng.choice([0.1, 0.5, 2.0])
    raw = [rng.gammavariate(peak, 1.0) + 1e-9 for _ in range(VOCABULARY)]
    return tuple(x / sum(raw) for x in raw)


def decoding_world(rng: random.Random, *, agreeing: bool = False) -> World:
    """Secure decoding; `agreeing`: more sources, that mostly have the same next token."""
    setting = _setting(rng, agreeing)
    steps = rng.choice([1, 2, 2, 3])
    agreed = Memo(lambda _: rng.choice([_row(rng), rng.choice(VERTICES), rng.choice(VERTICES)]))
    nothing = Memo(lambda prefix: agreed[prefix] if rng.random() < 0.4 else _row(rng))
    rows = Memo(lambda key: agreed[key[1]] if rng.random() < 0.8 else rng.choice([_row(rng), rng.choice(VERTICES)]))
    silent = Memo(lambda _: rng.random() < 0.1)
    settings = DecodingSettings(
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
    alone = Memo(lambda prefix: np.array(nothing[prefix]))
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

    def draft(sources: Sequence[Source], evil: dict[str, object]) -> Draft | None:
        return drafted(decoding_plan(_inputs(sources), quick, LetterCodec()), performer(evil))

    return World("decoding", **setting, references=references, certify=certify, draft=draft, moves=[*scripts, None])
