"""Decoding sessions that several settings share: for the last prompts, every distribution is computed once.

gamma and eta decide what is made of the numbers, never the numbers. Where settings go on with the same tokens, one
model session serves them all; where they part, it is opened anew for the other tokens.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from robustrag_integrations.models.base import DecodingModel, DecodingSession, DecodingTree, Distributions
from robustrag_integrations.prompts import Prompt


class SharedSessions:
    """Sessions of a model; what it said about the last prompts is kept in memory, about others it is not.

    Args:
        model: deterministic.
    """

    def __init__(self, model: DecodingModel) -> None:
        self._model = model
        self._last: tuple[Any, _Said] | None = None

    def open(
        self, prompts: Sequence[Prompt], no_retrieval: Prompt, max_new_tokens: int
    ) -> tuple[DecodingSession, bool]:
        """A session, and whether the model had read these prompts already."""
        key = ([(p.text, p.context) for p in prompts], no_retrieval.text, no_retrieval.context, max_new_tokens)
        known = self._last
        if known is not None and known[0] == key:
            return _SharedSession(known[1]), True
        self._last = None  # the numbers of other prompts make room first
        said = _Said(lambda: self._model.open_session(prompts, no_retrieval, max_new_tokens))
        self._last = (key, said)
        return _SharedSession(said), False


class _Said:
    """What the model said after each sequence of tokens."""

    def __init__(self, open_session: Callable[[], DecodingSession]) -> None:
        self._open, self._lock = open_session, threading.RLock()
        first = open_session()
        self._live: DecodingSession | None = first
        self._at: tuple[int, ...] = ()
        self._after: dict[tuple[int, ...], Distributions] = {}
        self._sharper: dict[tuple[int, ...], Distributions | None] = {}
        self.opening = first.opening

    def after(self, tokens: tuple[int, ...]) -> Distributions:
        """The distributions after these tokens."""
        with self._lock:
            if tokens not in self._after:
                self._advance(tokens)
            return self._after[tokens]

    def sharper(self, tokens: tuple[int, ...]) -> Distributions | None:
        """The same with a longer list, if there is one."""
        with self._lock:
            if tokens not in self._sharper:
                self._sharper[tokens] = self._advance(tokens).sharpen()
            return self._sharper[tokens]

    def copy(self, tokens: tuple[int, ...]) -> DecodingSession | None:
        """The model's own copy of its session after these tokens."""
        with self._lock:
            return self._advance(tokens).fork()

    def taken(self, tokens: tuple[int, ...]) -> DecodingSession:
        """The model's own session after these tokens, which is not shared any more."""
        with self._lock:
            live, self._live = self._advance(tokens), None
            return live

    def _advance(self, tokens: tuple[int, ...]) -> DecodingSession:
        """The model's session after these tokens: further on, or opened anew where it has gone elsewhere."""
        live, at = self._live, self._at
        self._live = None  # it is lost if the model fails
        if live is None or tokens[: len(at)] != at:
            live, at = self._open(), ()
        for place in range(len(at), len(tokens)):
            self._after[tokens[: place + 1]] = live.append(tokens[place])
        self._live, self._at = live, tokens
        return live


class _SharedSession(DecodingSession):
    """One answer's way through what the model said."""

    def __init__(self, said: _Said) -> None:
        self._said = said
        self._tokens: tuple[int, ...] = ()
        self.opening = said.opening

    def append(self, token: int) -> Distributions:
        """The distributions after one token more."""
        self._tokens = (*self._tokens, token)
        return self._said.after(self._tokens)

    def sharpen(self) -> Distributions | None:
        """The last distributions with a longer list."""
        return self._said.sharper(self._tokens)

    def fork(self) -> DecodingSession | None:
        """The model's own copy."""
        return self._said.copy(self._tokens)

    def tree(self) -> DecodingTree | None:
        """The model's own tree."""
        return self._said.taken(self._tokens).tree()
