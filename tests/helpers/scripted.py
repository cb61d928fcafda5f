"""Models that say what a test tells them to: a response per passage text, a distribution per text and prefix."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from robustrag_integrations import KeywordAggregation
from robustrag_integrations.models.base import (
    DecodingModel,
    DecodingSession,
    Distributions,
    Opening,
    Response,
    Role,
    TextModel,
    Until,
)
from robustrag_integrations.text.prompts import Prompt, PromptSet, PromptTemplate

# Prompts without instructions, so that a scripted model can read them back.
BARE = PromptSet(
    isolated=PromptTemplate("", "{context}|{query}", ("context", "query")),
    no_retrieval=PromptTemplate("", "{query}", ("query",)),
    keyword=PromptTemplate("", "kept[{keywords}] {query}", ("keywords", "query")),
)
BARE_CHOICES = PromptSet(
    isolated=PromptTemplate("", "{context}|{query}{choices}", ("context", "query", "choices")),
    no_retrieval=PromptTemplate("", "{query}{choices}", ("query", "choices")),
    options="letters",
)


def split(text: str) -> set[str]:
    """An extractor: the words of a response."""
    return set(text.split())


def context_of(prompt: Prompt) -> str:
    assert prompt.context is not None
    return prompt.text[slice(*prompt.context)]


class ScriptedModel(TextModel):
    """Answers an isolated prompt with `say(passage text)`, a final one with `conclude(prompt text)`.

    `say` may return None: the call has failed.
    """

    def __init__(
        self,
        say: Callable[[str], str | None] | Mapping[str, str | None],
        conclude: Callable[[str], str] = lambda text: text,
    ) -> None:
        self._say = say if callable(say) else say.__getitem__
        self._conclude = conclude
        self.asked: list[tuple[Role, str]] = []

    def generate(self, prompts: Sequence[Prompt], role: Role, until: Until | None = None) -> list[Response]:
        self.asked += [(role, p.text) for p in prompts]
        if role == "final":
            return [Response(self._conclude(p.text)) for p in prompts]
        said = [self._say(context_of(p)) for p in prompts]
        return [Response(text, error="failed on purpose" if text is None else None) for text in said]

    async def agenerate(self, prompts: Sequence[Prompt], role: Role, until: Until | None = None) -> list[Response]:
        await asyncio.sleep(0)
        return self.generate(prompts, role)

    def stream(self, prompt: Prompt, role: Role = "final") -> Iterator[str]:
        text = self._conclude(prompt.text)
        yield from (text[i : i + 3] for i in range(0, len(text), 3))

    async def astream(self, prompt: Prompt, role: Role = "final") -> AsyncIterator[str]:
        for piece in self.stream(prompt):
            yield piece


def keyword_defense(
    say: Callable[[str], str | None] | Mapping[str, str | None],
    conclude: Callable[[str], str] = lambda prompt: "paris" if "paris" in prompt else "rome",
    **settings: Any,
) -> KeywordAggregation:
    """Keyword aggregation of a scripted model's words."""
    return KeywordAggregation(ScriptedModel(say, conclude), extractor=split, prompts=BARE, **settings)


class LetterCodec:
    """Token i is the i-th letter; token 0 ends the text."""

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(".abcdefghij"[t] for t in tokens if t)

    def is_end(self, token: int) -> bool:
        return token == 0


Distribution = Callable[[str, tuple[int, ...]], Sequence[float] | None]


class ScriptedDecodingModel(DecodingModel):
    """Next-token probabilities from a function of (passage text, tokens so far); None at the start is an abstention.

    The no-retrieval row is the function at the empty text.
    """

    def __init__(self, distribution: Distribution) -> None:
        self._distribution = distribution
        self.codec = LetterCodec()
        self.sessions = 0

    def open_session(self, prompts: Sequence[Prompt], no_retrieval: Prompt, max_new_tokens: int) -> DecodingSession:
        self.sessions += 1
        return _ScriptedSession(self._distribution, [context_of(p) for p in prompts])


class _ScriptedSession(DecodingSession):
    def __init__(self, distribution: Distribution, contexts: Sequence[str]) -> None:
        self._distribution = distribution
        self._contexts = contexts
        self._prefix: tuple[int, ...] = ()
        abstains = [self._distribution(c, ()) is None for c in contexts]
        self.opening = Opening(np.array(abstains, dtype=float), self._distributions(), (False,) * len(contexts))

    def append(self, token: int) -> Distributions:
        self._prefix = (*self._prefix, token)
        return self._distributions()

    def _distributions(self) -> Distributions:
        no_retrieval = self._distribution("", self._prefix)
        assert no_retrieval is not None
        uniform = np.full(len(no_retrieval), 1 / len(no_retrieval))
        rows = [self._distribution(c, self._prefix) for c in self._contexts]
        sources = np.array([uniform if row is None else row for row in rows]).reshape(len(rows), -1)
        return Distributions(sources, np.array(no_retrieval))
