"""Requests of a decoding certificate's plan: the states of a tree of prefixes."""

from __future__ import annotations

from dataclasses import dataclass

from robustrag_integrations.prompts import Prompt


@dataclass(frozen=True)
class OpenTrees:
    """A request to start a decoding session over each list of prompts; the reply is one `Opening` each, in order."""

    sessions: tuple[tuple[Prompt, ...], ...]
    no_retrieval: Prompt
    max_new_tokens: int


@dataclass(frozen=True)
class Branch:
    """A step down the tree of prefixes.

    Attributes:
        session: the place of a session of `OpenTrees`.
        prefix: all tokens of the answer so far, the new one last.
        only_child: True if nothing else will branch off the prefix before this token, so that its state can be used up.
    """

    session: int
    prefix: tuple[int, ...]
    only_child: bool


@dataclass(frozen=True)
class Grow:
    """A request to score these prefixes; the reply is one `Distributions` each, in order.

    States of prefixes shorter than the parents of these are not needed any more, the roots excepted.

    Attributes:
        branches: the prefixes.
        exact: True if only the numbers of inference will do: those given before had too much noise.
    """

    branches: tuple[Branch, ...]
    exact: bool = False
