"""The arguments of all methods as typed dictionaries, for type checkers and editors.

Each group of settings stands in one dictionary, and what a method takes is put together of these: type checkers allow
no key in two bases. Tests hold them against the settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Literal, TypedDict

from robustrag_integrations.certification.cases import AttackMode
from robustrag_integrations.certification.metrics import Metric
from robustrag_integrations.grouping.passages import GroupBy, Passage
from robustrag_integrations.grouping.votes import Below, VoteRules
from robustrag_integrations.replies.reading import CutReplies
from robustrag_integrations.text.keywords import KeywordExtractor
from robustrag_integrations.text.prompts import Options, PromptSet, Task

MethodName = Literal["consensus", "keyword", "decoding", "voting"]


class VoteOptions(TypedDict, total=False):
    """The fields of `VoteRules` but for `group_by`; None stands for the default."""

    passages_per_source: int | None
    min_sources: int | None
    min_radius: int | None
    below: Below | None
    stop_when_decided: bool | None
    allow_sole_source: bool | None


class SharedOptions(VoteOptions, total=False):
    """What every method takes."""

    task: Task | None
    abstention: str | None
    silence_request: str | None
    when_empty: Literal["fail", "ask_others"] | None
    word_gate: bool | None
    when_trusted_fails: Literal["raise", "abstain"] | None


class _Replies(TypedDict, total=False):
    cut_replies: CutReplies | None


class _Sources(TypedDict, total=False):
    quorum: float | None
    disagreement: Literal["tell", "abstain"] | None


class _Abstaining(TypedDict, total=False):
    abstains: Callable[[str], bool] | Sequence[str] | None


class _Choices(TypedDict, total=False):
    options: Options | None


class _Consensus(TypedDict, total=False):
    min_support: int | None
    agreement: Literal["plurality", "majority"] | None
    unsure: Literal["count", "abstain"] | None
    sure_from: float | None


class _Keyword(TypedDict, total=False):
    alpha: float | Fraction | str | None
    beta: int | None
    final: Literal["always", "never"] | None
    min_words: int | None
    extractor: KeywordExtractor | Literal["words", "spacy"] | None


class _Decoding(TypedDict, total=False):
    gamma: float | None
    eta: float | None
    slack: float | None
    max_new_tokens: int | None
    stop: Sequence[str] | None


class MethodOptions(
    SharedOptions, _Replies, _Sources, _Abstaining, _Choices, _Consensus, _Keyword, _Decoding, total=False
):
    """Task and settings of every method; None stands for the default, and a method says which are its own."""


class _Constructed(TypedDict, total=False):
    prompts: PromptSet | None
    group_by: GroupBy | None
    votes: VoteRules | None
    accept_sampling: bool


class ConsensusOptions(SharedOptions, _Constructed, _Replies, _Sources, _Abstaining, _Consensus, total=False):
    """What `ConsensusAggregation` takes besides its model."""


class KeywordOptions(SharedOptions, _Constructed, _Replies, _Sources, _Abstaining, _Keyword, total=False):
    """What `KeywordAggregation` takes besides its models."""


class VotingOptions(SharedOptions, _Constructed, _Replies, _Sources, _Choices, total=False):
    """What `MajorityVoting` takes besides its model."""


class DecodingOptions(SharedOptions, _Constructed, _Decoding, total=False):
    """What `DecodingAggregation` takes besides its model."""


class VanillaOptions(_Replies, _Choices, total=False):
    """What `VanillaRAG` takes besides its model."""

    task: Task | None
    prompts: PromptSet | None
    abstention: str | None


class CertifyOptions(TypedDict, total=False):
    """What `certify` takes by name."""

    trusted: Iterable[str | Passage] | None
    metric: Metric
    attack: AttackMode
    choices: Sequence[str] | None
    top_k: int | None
    max_model_calls: int
