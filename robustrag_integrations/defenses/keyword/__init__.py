"""Secure keyword aggregation (paper, sections III-B and IV-B): settings, threshold, plan, certificate, front door."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Literal

from robustrag_integrations._util.settings import Setting
from robustrag_integrations.defenses.registry import Method, register
from robustrag_integrations.defenses.shared_options import (
    AbstentionOptions,
    CutReplyOptions,
    DisagreementOptions,
    QuorumOptions,
)
from robustrag_integrations.keywords.words import KeywordExtractor

Final = Literal["always", "never"]


class KeywordOptions(AbstentionOptions, DisagreementOptions, QuorumOptions, CutReplyOptions, total=False):
    """The settings of keyword aggregation."""

    alpha: Annotated[
        float | Fraction | None,
        Setting(
            None,
            "share of the answering groups that keeps a keyword, with weights of their votes: at least "
            "min(alpha * n, beta) of n; 0.2 as in the paper, for long form 0.5",
            least=0,
            most=1,
            threshold=True,
        ),
    ]
    beta: Annotated[
        int | None,
        Setting(
            None,
            "number of groups that keeps a keyword in any case; 3 as in the paper, and none for long form and with "
            "weights, where a few groups could always reach it",
            least=1,
            threshold=True,
        ),
    ]
    final: Annotated[
        Final | None,
        Setting(
            "always",
            "when the model words the kept keywords: always, as in the paper, so that its reply is the answer; never: "
            "the kept keywords are the answer",
        ),
    ]
    min_words: Annotated[
        int | None,
        Setting(
            None,
            "keywords of fewer words do not count; 1, for long form 2 (the paper's text says more than two words, its "
            "results come from dropping single words)",
            least=1,
        ),
    ]
    extractor: Annotated[
        KeywordExtractor | Literal["words", "spacy"] | None,
        Setting(
            "words",
            "what finds a reply's keywords: words, its plain content words and phrases; spacy, the paper's; in Python "
            "also a function from a reply to its keywords, or to None where it abstains",
        ),
    ]


KEYWORD = register(
    Method(
        name="keyword",
        summary="keep the keywords that enough groups share, answer from those alone; any model",
        tasks=("short_answer", "long_form"),
        needs="text",
        defense="robustrag_integrations.defenses.keyword.defense:KeywordAggregation",
        options=KeywordOptions,
        prompts=("keyword", "phrases"),
    )
)
