"""The settings of all methods and the rules of votes as keyword arguments, for type checkers and editors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Literal, TypedDict

from robustrag_integrations.grouping.votes import Below, Copies
from robustrag_integrations.replies.reading import CutReplies
from robustrag_integrations.text.keywords import KeywordExtractor
from robustrag_integrations.text.prompts import Options, Task

MethodName = Literal["consensus", "keyword", "decoding", "voting"]


class VoteOptions(TypedDict, total=False):
    """The fields of `VoteRules` but for `group_by`; None stands for the default."""

    passages_per_source: int | None
    copies: Copies | None
    min_sources: int | None
    min_radius: int | None
    below: Below | None
    stop_when_decided: bool | None
    wave_size: int | None
    allow_sole_source: bool | None


class MethodOptions(VoteOptions, total=False):
    """Task and settings of every method; None stands for the default, and a method says which are its own."""

    task: Task | None
    abstention: str | None
    silence_request: str | None
    ask_others: bool | None
    when_empty: Literal["fail", "ask_others"] | None
    word_gate: bool | None
    when_trusted_fails: Literal["raise", "abstain"] | None
    abstains: Callable[[str], bool] | Sequence[str] | None
    quorum: float | None
    disagreement: Literal["tell", "abstain"] | None
    cut_replies: CutReplies | None
    min_support: int | None
    agreement: Literal["plurality", "majority"] | None
    unsure: Literal["count", "abstain"] | None
    sure_from: float | None
    alpha: float | Fraction | str | None
    beta: int | None
    final: Literal["always", "never"] | None
    min_words: int | None
    extractor: KeywordExtractor | Literal["words", "spacy"] | None
    gamma: float | None
    eta: float | None
    slack: float | None
    max_new_tokens: int | None
    stop: Sequence[str] | None
    options: Options | None
