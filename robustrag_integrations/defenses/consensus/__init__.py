"""Consensus: one round of calls, and an answer made of the commonest key and what most of its groups say with it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Literal

from robustrag_integrations._util.settings import Setting
from robustrag_integrations.defenses.registry import Method, register
from robustrag_integrations.defenses.shared_options import (
    SHARE,
    AbstentionOptions,
    CutReplyOptions,
    QuorumOptions,
    ShareOptions,
)
from robustrag_integrations.keywords.protocol import KeywordExtractor


class ConsensusOptions(ShareOptions, AbstentionOptions, QuorumOptions, CutReplyOptions, total=False):
    """The settings of consensus aggregation."""

    share: Annotated[float | Fraction | None, replace(SHARE, least=0.5)]
    extractor: Annotated[
        KeywordExtractor | Literal["runs", "spacy"] | None,
        Setting("runs", "what finds a reply's keywords: whole answers and runs of words, or the paper's spaCy"),
    ]


CONSENSUS = register(
    Method(
        name="consensus",
        summary="one round: what most of the strongest support says, in the groups' own words; any model",
        tasks=("short_answer", "long_form", "list"),
        needs="text",
        defense="robustrag_integrations.defenses.consensus.defense:ConsensusAggregation",
        options=ConsensusOptions,
    )
)
