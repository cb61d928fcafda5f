"""Secure keyword aggregation: settings, counting, plan, certificate and front door (paper, sections III-B and IV-B)."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Literal

from robustrag_integrations._util.settings import Setting
from robustrag_integrations.defenses.registry import Method, register
from robustrag_integrations.defenses.shared_options import (
    CutReplyOptions,
    KeywordReplyOptions,
    QuorumOptions,
    ShareOptions,
)

Threshold = Literal["relative", "absolute"]
Final = Literal["auto", "always", "never"]
_ABSOLUTE = ("threshold", "absolute")


class KeywordOptions(ShareOptions, KeywordReplyOptions, QuorumOptions, CutReplyOptions, total=False):
    """The settings of keyword aggregation."""

    threshold: Annotated[
        Threshold | None,
        Setting(
            "absolute",
            "what a keyword is held against: the strongest keyword (relative: share and min_support), or the number of "
            "answering groups (absolute, the paper's: at least min(alpha * n, beta) of n); the numbers that are given "
            "say which is meant, and with none of them weights mean relative",
            threshold=True,
            tries=("relative", "absolute"),
        ),
    ]
    alpha: Annotated[
        float | Fraction | None,
        Setting(
            0.5,
            "share of answering groups that must agree",
            least=0,
            most=1,
            threshold=True,
            where=_ABSOLUTE,
            tries=(0.2, 0.3, 0.4, 0.5),
        ),
    ]
    beta: Annotated[
        int | None,
        Setting(
            5,
            "number of groups that is enough in any case",
            least=1,
            threshold=True,
            where=_ABSOLUTE,
            tries=(2, 3, 4, 5),
        ),
    ]
    final: Annotated[
        Final | None,
        Setting(
            "auto",
            "when the model words the kept keywords: auto, where several have to be put together, and with prompts of "
            "your own; a reply that abstains, fails, or with our prompt says words that nobody agreed on, gives way to "
            "the kept words; always, the paper's: what it says is the answer; never: the kept words are the answer",
        ),
    ]
    min_words: Annotated[
        int | None,
        Setting(
            None,
            "keywords of fewer words do not count, unless they are items of a list; 1, for long form 2 (the paper's "
            "text says more than two words, its results come from dropping single words)",
            least=1,
        ),
    ]


KEYWORD = register(
    Method(
        name="keyword",
        summary="keep the keywords that enough groups share, answer from those alone; any model",
        tasks=("short_answer", "long_form", "list"),
        needs="text",
        defense="robustrag_integrations.defenses.keyword.defense:KeywordAggregation",
        options=KeywordOptions,
        prompts=("keyword", "phrases"),
    )
)
