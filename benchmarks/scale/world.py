"""Questions, their sources, and a model whose replies take simulated time. Nothing waits: plans run at full speed."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field

from robustrag_integrations.models.base import Response, Role, TextModel, Until, not_asked
from robustrag_integrations.prompts import Prompt
from robustrag_integrations.replies.reply import Piece
from robustrag_integrations.usage import Usage

CHARACTERS = 4  # per token, roughly, in English
API_CACHE = 1024  # tokens below which hosted APIs keep no beginning of a prompt
_SYLLABLES = ("ba", "cor", "den", "fil", "gra", "hol", "in", "ker", "lu", "mar", "no", "pel", "ris", "sto", "ter", "va")
_WORDS = tuple("".join(parts) for parts in itertools.product(_SYLLABLES, _SYLLABLES, _SYLLABLES))
_CITIES = ("Strelsau", "Zenda", "Hentzau", "Tarlen", "Ruritz", "Modenstein", "Altberg", "Corvia")


@dataclass(frozen=True)
class Scene:
    """What is asked, and how replies come.

    Attributes:
        passages: k, each of a source of its own.
        passage_tokens: of each.
        right, silent: shares of the sources that give the right answer, and that say nothing of it; the others are
            wrong, each in its own way.
        reply_tokens: of one short reply.
        sigma: of the log-normal latencies, whose median is 1.
        slow, slowness: this share of the calls takes so many times as long.
    """

    passages: int = 10
    passage_tokens: int = 200
    right: float = 0.70
    silent: float = 0.20
    reply_tokens: int = 8
    sigma: float = 0.3
    slow: float = 0.01
    slowness: float = 20.0

    def question(self, number: int) -> str:
        """Question number so and so."""
        return f"What is the name of the town that keeps the records of the county survey number {number}?"

    def choices(self, number: int) -> tuple[str, str, str]:
        """Its options."""
        at = number % len(_CITIES)
        return _CITIES[at], _CITIES[at - 1], _CITIES[at - 2]

    def texts(self, number: int) -> list[str]:
        """The passages of a question."""
        drawn = random.Random(number)
        return [self._text(drawn, number, rank) for rank in range(self.passages)]

    def _text(self, drawn: random.Random, number: int, rank: int) -> str:
        at, luck = number % len(_CITIES), drawn.random()
        if luck < self.right:
            said = f"SAYS {_CITIES[at]}. "
        elif luck < self.right + self.silent:
            said = "SAYS nothing. "
        else:
            said = f"SAYS {_CITIES[(at + 1 + rank) % len(_CITIES)]}. "
        filler = " ".join(drawn.choices(_WORDS, k=self.passage_tokens))
        return (said + filler)[: self.passage_tokens * CHARACTERS]

    def latency(self, drawn: random.Random) -> float:
        """How long a call takes, where the median call takes 1."""
        usual = math.exp(drawn.gauss(0.0, self.sigma))
        return usual * self.slowness if drawn.random() < self.slow else usual


@dataclass
class Simulated(TextModel):
    """Answers from the passage, counts tokens as a server would, and adds up how long a user would have waited.

    Attributes:
        scene: what is asked.
        cache_from: tokens that a kept beginning needs at least.
        elapsed: simulated time since the question began.
        calls: how many calls went out since then.
        busy: simulated time of all calls since then, those that were cancelled up to then.
        spent: tokens of all calls since then. Cancelled ones count in full, as a server may charge for them.
    """

    scene: Scene
    cache_from: int = API_CACHE
    elapsed: float = 0.0
    calls: int = 0
    busy: float = 0.0
    spent: list[Usage] = field(default_factory=list)
    _drawn: random.Random = field(default_factory=lambda: random.Random(0))
    _kept: list[str] = field(default_factory=list)

    def begin(self, number: int) -> None:
        """A new question. Of the one before, the server keeps the beginnings of its prompts."""
        self.elapsed, self.calls, self.busy, self.spent = 0.0, 0, 0.0, []
        self._drawn = random.Random(number)
        self._kept = self._kept[:1] + self._kept[-1:]

    def generate(self, prompts: Sequence[Prompt], role: Role) -> list[Response]:
        """All at once; the round takes as long as its slowest call."""
        times = [self.scene.latency(self._drawn) for _ in prompts]
        self._took(times, max(times, default=0.0))
        return self._said(prompts)

    def generate_until(self, prompts: Sequence[Prompt], role: Role, until: Until) -> list[Response]:
        """Replies come one after another, until they are enough; then the rest of the wave is cancelled."""
        replies = [not_asked()] * len(prompts)
        for wave in until.waves(len(prompts)):
            asked = list(range(len(prompts))[wave])
            said = self._said([prompts[i] for i in asked])
            times = [self.scene.latency(self._drawn) for _ in asked]
            for i in asked:
                replies[i] = not_asked(cancelled=True)
            for at in sorted(range(len(asked)), key=times.__getitem__):
                replies[asked[at]] = said[at]
                if until.enough(replies):
                    self._took(times, times[at])
                    return replies
            self._took(times, max(times))
        return replies

    def _took(self, times: Sequence[float], seconds: float) -> None:
        self.elapsed += seconds
        self.calls += len(times)
        self.busy += sum(min(t, seconds) for t in times)

    def _said(self, prompts: Sequence[Prompt]) -> list[Response]:
        """The replies; beginnings that an earlier round had are cached, those of this round are not yet."""
        replies = [self._reply(prompt) for prompt in prompts]
        self._kept += [prompt.text for prompt in prompts]
        return replies

    def _reply(self, prompt: Prompt) -> Response:
        text = prompt.text
        kept = max((_shared(text, other) for other in self._kept), default=0) // CHARACTERS
        usage = Usage(
            prompt=-(-len(text) // CHARACTERS),
            cached=kept if kept >= self.cache_from else 0,
            completion=self.scene.reply_tokens,
            reasoning=0,
        )
        self.spent.append(usage)
        return Response(self._answer(text), usage=usage)

    def _answer(self, text: str) -> str:
        _, found, said = text.partition("SAYS ")
        word = said.split(".", 1)[0] if found else next((c for c in _CITIES if c in text), "nothing")
        options = [line for line in text.splitlines() if line[1:3] == ". "]
        if not options:
            return "I don't know" if word == "nothing" else word
        return next((line[0] for line in options if word in line), options[-1][0])

    async def agenerate(self, prompts: Sequence[Prompt], role: Role) -> list[Response]:
        """As `generate`."""
        return self.generate(prompts, role)

    def stream(self, prompt: Prompt) -> Iterator[Piece]:
        """In one piece."""
        yield self.generate([prompt], "final")[0].text or ""

    async def astream(self, prompt: Prompt) -> AsyncIterator[Piece]:
        """In one piece."""
        yield self.generate([prompt], "final")[0].text or ""

    @property
    def deterministic(self) -> bool:
        """The same prompt gives the same text."""
        return True


def _shared(one: str, other: str) -> int:
    """How many characters both texts begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
