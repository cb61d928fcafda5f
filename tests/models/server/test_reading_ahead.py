"""Remote decoding that asks for several tokens at once: the same answers and certificates as token by token."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("openai", reason="needs the extra openai")

from robustrag_integrations.certification.findings import Question
from robustrag_integrations.defenses.decoding.certifier import decoding_run
from robustrag_integrations.defenses.decoding.plan import decoding_plan
from robustrag_integrations.defenses.decoding.settings import DecodingSettings
from robustrag_integrations.defenses.decoding.token_choice import ONE
from robustrag_integrations.errors import ModelError
from robustrag_integrations.grouping.passages import Passage, isolate
from robustrag_integrations.models.server.completions import Continuation, continuation
from robustrag_integrations.models.server.row import Row
from robustrag_integrations.plans.performers import DecodingPerformer
from tests.helpers.scripted import BARE
from tests.helpers.simulated_server import ABSTENTIONS, SimulatedServer, SizedCodec, random_row
from tests.helpers.worlds import Memo, driven, graded

WORLDS = 2400


class World:
    """Distributions per passage and prefix, of which most groups agree on the best token at most places."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(seed)
        self.size = rng.randrange(5, 9)
        self.passages = [f"p{i}" for i in range(rng.randrange(1, 8))]
        self.agreement = rng.choice([0.3, 0.7, 0.9, 0.97])

        def per(kind: str, value: Any) -> Memo:
            """Drawn once per key, whatever is asked for first."""
            return Memo(lambda key: value(random.Random(f"{seed}/{kind}/{key}"), key))

        agreed = per("agreed", lambda rng, key: random_row(rng, self.size))
        self.table = per(
            "own", lambda rng, key: agreed[key[1]] if rng.random() < self.agreement else random_row(rng, self.size)
        )
        self.silent = per("silent", lambda rng, text: text and rng.random() < 0.12)
        self.broken = per("broken", lambda rng, text: text and rng.random() < 0.05)
        self.shorter = per("shorter", lambda rng, key: rng.choice([99, 99, 99, 1, 2, 3]))
        self.strange = per("strange", lambda rng, key: rng.randrange(self.size) if rng.random() < 0.2 else None)
        self.unreliable = rng.random() < 0.3
        self.drift = rng.choice([None, 0.0])
        self.settings = DecodingSettings.of(
            eta=rng.choice([0, 0, 0, 0.5, 1, 2, 3]),
            gamma=rng.choice([0.99, 0.5, 0.2, 1.0]),
            max_new_tokens=rng.choice([1, 2, 4, 8, 14]),
            stop=rng.choice([("\n",), ("\n",), ("bb",)]),
            slack=rng.choice([0.0, 2.0**-10, 0.05]),
            prompts=BARE,
        )
        self.top = rng.choice([None, None, 1, 2, 3])
        self.speculate = rng.choice([2, 3, 5, 12])

    def row(self, text: str, prefix: tuple[int, ...]) -> Sequence[float] | None:
        if self.broken[text]:
            return None
        if self.silent[text]:
            spelled = ABSTENTIONS[len(text) % 2]
            says = spelled[len(prefix)] if prefix == spelled[: len(prefix)] and len(prefix) < len(spelled) else 0
            return tuple(float(token == says) for token in range(self.size))
        return self.table[text, prefix]

    def server(self, speculate: int, **more: Any) -> SimulatedServer:
        more.setdefault("drift", self.drift)
        if self.unreliable:
            more.setdefault("shorter", lambda *key: self.shorter[key])
            more.setdefault("written", lambda *key: self.strange[key])
        return SimulatedServer(self.row, self.size, speculate=speculate, top=self.top, **more)

    def answer(self, server: SimulatedServer) -> Any:
        """The answer, or the error's words."""
        groups = isolate([Passage(text, source=text) for text in self.passages], by="passage")
        try:
            return driven(decoding_plan("q", groups, self.settings, server.codec), DecodingPerformer(server))
        except ModelError as error:
            return str(error)

    def certificates(self, server: SimulatedServer) -> Any:
        passages = [Passage(text, source=text) for text in self.passages]
        question = Question.of("q", passages, ("a",), "metric", (0, 1, 2), max_model_calls=60, group_by="passage")
        try:
            found = decoding_run(question, self.settings, server, graded).run()
        except ModelError as error:
            return str(error)
        return [(c.tau, c.certified, c.warnings, c.model_calls) for c in found]


def differing(seeds: range) -> list[int]:
    found = []
    for seed in seeds:
        slow, fast = (World(seed) for _ in range(2))
        one, several = slow.server(1), fast.server(fast.speculate)
        expected, answer = slow.answer(one), fast.answer(several)
        if answer != expected or (seed % 5 == 0 and fast.certificates(several) != slow.certificates(one)):
            found.append(seed)
    return found


def test_answers_and_certificates_are_those_of_token_by_token() -> None:
    """Rows abstain, fail, end and tie; lists are short; replies break off, or do not hold the best tokens."""
    assert differing(range(WORLDS)) == []


def test_a_list_behind_other_tokens_than_the_answers_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(reply: Continuation, tokens: Sequence[int]) -> Any:
        return reply.lists[len(tokens)] if len(tokens) < len(reply.lists) else None

    monkeypatch.setattr(Continuation, "after", careless)
    monkeypatch.setattr(Row, "moved", lambda row, prefix: row)
    assert differing(range(60))


@pytest.mark.parametrize("seed", range(4))
def test_no_attack_within_the_radius_changes_the_text_though_lists_of_a_reply_are_a_little_off(seed: int) -> None:
    """As on servers that compute the tokens of a reply in another shape than those of a prompt."""
    checked = same = 0
    for number in range(seed * 1000, seed * 1000 + 150):
        world = World(number)
        noise = world.rng.choice([1e-5, 1e-4, 1e-3])
        sign = Memo(lambda key: random.Random(f"{number}/{key}").choice([-noise, noise]))  # noqa: B023
        moved = {"moved": lambda *key: sign[key], "drift": noise}  # noqa: B023
        answer = world.answer(world.server(world.speculate, **moved))
        slow = world.answer(world.server(1))
        if isinstance(answer, str):
            assert answer == slow
            continue
        if 2 * noise * len(world.passages) <= world.settings.slack / ONE:
            same += 1
            assert answer.text == slow.text
        rng = random.Random(number)
        for _ in range(25 if answer.radius else 0):
            hit = rng.sample(world.passages, answer.radius)
            points = {text: [random_row(rng, world.size) for _ in range(15)] for text in hit}
            points = {text: rng.choice([rows, rows[:1] * 15]) for text, rows in points.items()}

            def attacked(text: str, prefix: tuple[int, ...]) -> Sequence[float] | None:
                return points[text][len(prefix)] if text in points else world.row(text, prefix)  # noqa: B023

            server = world.server(world.speculate, **moved)
            server.rows = attacked
            checked += 1
            assert world.answer(server).text == answer.text
    assert checked > 100
    assert same > 20


def test_answers_of_eight_tokens_take_a_third_of_the_rounds() -> None:
    """Ten groups of which seven know the answer; the others go their own ways, and so does the question alone."""
    ratios = []
    for seed in range(40):
        world = World(seed)
        rng = random.Random(seed)
        answer = [*(rng.randrange(1, 8) for _ in range(8)), 0]
        world.size, world.passages = 8, [f"p{i}" for i in range(10)]
        world.settings = DecodingSettings.of(max_new_tokens=30, stop=("\n",), prompts=BARE)
        world.top, world.unreliable, world.drift, world.speculate = 5, False, 0.0, 12

        def row(text: str, prefix: tuple[int, ...]) -> Sequence[float]:
            draw = random.Random(f"{seed}/{text}/{prefix}")  # noqa: B023
            knows = text in ("p0", "p1", "p2", "p3", "p4", "p5", "p6")
            follows = list(prefix) == answer[: len(prefix)] and len(prefix) < 9  # noqa: B023
            says = answer[len(prefix)] if follows and (knows or draw.random() < 0.5) else draw.randrange(8)  # noqa: B023
            return tuple(0.86 if token == says else 0.02 for token in range(8))

        world.row = row  # type: ignore[method-assign]
        one, several = world.server(1), world.server(12)
        assert world.answer(one) == world.answer(several)
        ratios.append(one.rounds / several.rounds)
    assert statistics.median(ratios) >= 3


# --- replies


def listed(*probabilities: float, names: str = "token_id:{}") -> dict[str, float]:
    return {names.format(token): math.log(p) for token, p in enumerate(probabilities)}


def completion(tops: Any, tokens: Any, text: str = "", *, chat: bool = False) -> dict[str, Any]:
    if chat:
        content = [
            {"id": 99, "top_logprobs": [{"id": int(n[9:]), "logprob": p} for n, p in top.items()]} for top in tops
        ]
        return {"choices": [{"text": text, "logprobs": {"content": content}}]}
    return {"choices": [{"text": text, "logprobs": {"tokens": tokens, "top_logprobs": tops}}]}


A, B, TIED = listed(0.1, 0.8, 0.1), listed(0.1, 0.1, 0.8), listed(0.2, 0.4, 0.4)


@pytest.mark.parametrize(
    ("tops", "tokens", "lists", "known"),
    [
        ([A, B, A], ["token_id:1", "token_id:2", "token_id:1"], 3, (1, 2, 1)),
        ([A] * 9, ["token_id:1"] * 9, 3, (1, 1, 1)),
        ([A, B], ["token_id:1", "token_id:2"], 2, (1, 2)),
        ([A, B, A], ["token_id:1"], 2, (1,)),
        ([A, B, A], ["token_id:0", "token_id:2", "token_id:1"], 3, (0, 2, 1)),
        ([A, B, A], ["token_id:7", "token_id:2", "token_id:1"], 1, ()),
        ([A, B, A], ["token_id:99999999", "token_id:2", "token_id:1"], 1, ()),
        ([A, B, A], None, 1, ()),
        ([A, B, A], [None, 3, []], 1, ()),
        ([A, B, A], {"0": "token_id:1"}, 1, ()),
        ([A, None, A], ["token_id:1"] * 3, 1, (1,)),
        ([A, {**B, "token_id:2": math.nan}, A], ["token_id:1"] * 3, 1, (1,)),
        ([A, {**B, "token_id:2": 0.0}, A], ["token_id:1"] * 3, 1, (1,)),
        ([A, {"token_id:1": -0.1}, A], ["token_id:1"] * 3, 1, (1,)),
    ],
)
def test_a_reply_is_read_as_far_as_it_is_known_what_was_written(
    tops: Any, tokens: Any, lists: int, known: tuple[int, ...]
) -> None:
    found = continuation(completion(tops, tokens), 3, 3, SizedCodec(3), greedy=True)
    assert (len(found.lists), found.tokens) == (lists, known)


@pytest.mark.parametrize("broken", [[], None, [None], [{}], [{"token_id:1": math.inf}], [[A]], "A"])
def test_a_reply_without_a_first_list_is_refused(broken: Any) -> None:
    with pytest.raises(ModelError):
        continuation(completion(broken, ["token_id:1"]), 3, 3, SizedCodec(3), greedy=True)


@pytest.mark.parametrize(
    ("tops", "text", "greedy", "known"),
    [
        ([A, B, A], "aba", True, (1, 2, 1)),
        ([A, B, A], "aba", False, ()),
        ([A, TIED, A], "aba", True, (1,)),
        ([A, B, listed(0.8, 0.1, 0.1)], "ab", True, (1, 2, 0)),
    ],
    ids=["clear", "drawn", "a tie", "the end"],
)
def test_where_tokens_are_not_named_they_are_the_clear_leaders_that_spell_the_text(
    tops: Any, text: str, greedy: bool, known: tuple[int, ...]
) -> None:
    found = continuation(completion(tops, None, text, chat=True), 3, 3, SizedCodec(3), greedy=greedy)
    assert found.tokens == known
    assert len(found.lists) == max(1, min(3, len(known) + (len(known) < 3)))


def test_where_the_leaders_do_not_spell_the_text_the_reply_is_not_read() -> None:
    with pytest.raises(ModelError, match="text that it wrote"):
        continuation(completion([A, B, A], None, "abb", chat=True), 3, 3, SizedCodec(3), greedy=True)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("lowest", [-(10**400), -1e308, -math.inf], ids=["whole", "real", "infinite"])
def test_log_probabilities_beyond_all_numbers_are_no_probability(lowest: float) -> None:
    top = {"token_id:0": math.log(0.7), "token_id:1": math.log(0.3), "token_id:2": lowest}
    reply = {"choices": [{"text": "a", "logprobs": {"tokens": ["token_id:0"], "top_logprobs": [top]}}]}
    found = continuation(reply, 3, 2, SizedCodec(8), greedy=True).lists[0]
    assert found.listed[2] == 0
    assert found.unlisted < 1e-4
