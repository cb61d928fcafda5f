"""A server in a few lines: lists of next tokens of small random worlds, one or several at a time."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

from robustrag_integrations.answers.usage import Usage
from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.base import DecodingModel, DecodingSession
from robustrag_integrations.models.server.completions import Continuation
from robustrag_integrations.models.server.session import RemoteSession, Wanted
from robustrag_integrations.models.server.token_lists import TokenList
from robustrag_integrations.prompts import Prompt
from tests.helpers.scripted import LetterCodec, context_of

Rows = Callable[[str, tuple[int, ...]], Sequence[float] | None]
ABSTENTIONS = ((1, 2, 3), (4, 2))  # two ways to spell it


class SizedCodec(LetterCodec):
    """Letters, of a vocabulary of so many tokens."""

    def __init__(self, size: int) -> None:
        self.size = size


class SimulatedServer(DecodingModel):
    """Gives every prompt's lists through a real `RemoteSession`.

    Args:
        rows: the distribution after a passage's text (the question alone: empty) and tokens; None: the request fails.
        size: tokens in the vocabulary.
        speculate: how many tokens a row is asked for at once.
        top: how many tokens a list holds.
        drift: what is known of how far lists drift; None: the session has to find out.
        shorter: what of a reply of several tokens is given: how many lists.
        written: the token that the server writes; None for the most probable one.
        moved: what a probability is off by behind the first token of a reply, from text and tokens.
    """

    def __init__(
        self,
        rows: Rows,
        size: int,
        *,
        speculate: int,
        top: int | None = None,
        drift: float | None = None,
        shorter: Callable[[str, tuple[int, ...]], int] = lambda text, tokens: 99,
        written: Callable[[str, tuple[int, ...]], int | None] = lambda text, tokens: None,
        moved: Callable[[str, tuple[int, ...]], float] = lambda text, tokens: 0.0,
    ) -> None:
        self.codec_ = SizedCodec(size)
        self.speculate, self.top_logprobs, self.abstentions = speculate, top or size, ABSTENTIONS
        self.most_logprobs = size
        self.drift = drift
        self.requests: list[Wanted] = []
        self.rounds = 0
        self.rows, self._shorter, self._written, self._moved = rows, shorter, written, moved
        self._texts: list[str] = []

    @property
    def codec(self) -> Any:
        return self.codec_

    def open_session(self, prompts: Sequence[Prompt], no_retrieval: Prompt, max_new_tokens: int) -> DecodingSession:
        texts = [context_of(prompt) for prompt in prompts] + [""]
        self._texts += [text for text in dict.fromkeys(texts) if text not in self._texts]
        rows = [(100 + self._texts.index(text),) for text in texts]
        return RemoteSession(self, rows, (False,) * len(prompts), max_new_tokens)

    def learn_dialect(self) -> list[str]:
        return []

    def ask(self, wanted: Sequence[Wanted], count: int) -> list[Continuation | ModelError]:
        self.requests += wanted
        self.rounds += 1
        return [self._reply(one, count) for one in wanted]

    def _reply(self, wanted: Wanted, count: int) -> Continuation | ModelError:
        text, tokens = self._texts[wanted.prompt[0] - 100], wanted.prompt[1:]
        allowed = min(wanted.length, max(1, self._shorter(text, tokens)))
        lists: list[TokenList] = []
        said: list[int] = []
        while len(lists) < allowed:
            place = (*tokens, *said)
            row = self.rows(text, place)
            if row is None:
                break
            lists.append(_listed(row, count, self._moved(text, place) if said else 0.0))
            if wanted.length == 1:
                break
            token = self._written(text, place)
            said.append(max(range(len(row)), key=row.__getitem__) if token is None else token)
            if said[-1] == 0:
                break
        if not lists:
            return ModelError("the server is out of order")
        return Continuation(tuple(lists), tuple(said), (Usage(prompt=len(wanted.prompt), completion=len(lists)),))


def _listed(row: Sequence[float], count: int, moved: float) -> TokenList:
    values = [min(1.0, max(0.0, p + (moved if token % 2 else -moved))) for token, p in enumerate(row)]
    order = sorted(range(len(values)), key=lambda token: -values[token])[:count]
    listed = {token: values[token] for token in order}
    left = 0.0 if count >= len(row) else min(min(listed.values()), max(0.0, 1 - math.fsum(listed.values())))
    return TokenList(listed, left)


def random_row(rng: random.Random, size: int) -> tuple[float, ...]:
    """A distribution: one token for sure, a tie, near a tie, or anything; in eighths or not."""
    kind = rng.randrange(5)
    if kind == 0:
        weights = [1.0] + [0.0] * (size - 1)
    elif kind == 1:
        weights = [1.0, 1.0] + [0.0] * (size - 2)
    elif kind == 2:
        weights = [0.5 + rng.choice([-1, 1]) * 10 ** -rng.uniform(2, 6), 0.5] + [0.01] * (size - 2)
    elif kind == 3:
        weights = [1.0] + [float(rng.randrange(5)) for _ in range(size - 1)]
    else:
        weights = [rng.random() ** 3 for _ in range(size)]
    rng.shuffle(weights)
    if rng.random() < 0.8 and weights[0] == max(weights):  # the end of the text comes now and then
        weights.reverse()
    total = sum(weights)
    return tuple(w / total for w in weights)
