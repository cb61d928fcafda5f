"""Consensus: one round of calls; every source's whole answer is one vote, and most votes win."""

from __future__ import annotations

from typing import Annotated, Literal

from robustrag_integrations._util.settings import Setting
from robustrag_integrations.defenses.agreement.rules import Agreement
from robustrag_integrations.defenses.registry import Method, register
from robustrag_integrations.defenses.shared_options import (
    AbstentionOptions,
    CutReplyOptions,
    DisagreementOptions,
    QuorumOptions,
)

Unsure = Literal["count", "abstain"]
Runoff = Literal["auto", "never"]
Wording = Literal["model", "source"]


class ConsensusOptions(AbstentionOptions, DisagreementOptions, QuorumOptions, CutReplyOptions, total=False):
    """The settings of consensus aggregation."""

    min_support: Annotated[
        int | None, Setting(2, "number of sources that must give an answer", least=1, threshold=True)
    ]
    agreement: Annotated[
        Agreement | None,
        Setting(
            "plurality",
            "what wins: the answer of most sources, if more than a quarter of those that answer give it, or only one "
            "of more than half of them (majority), which errs less and abstains more",
            threshold=True,
        ),
    ]
    unsure: Annotated[
        Unsure | None,
        Setting(
            "count",
            "effect of a reply of which the model is unsure: count like any other, or abstain, which suits weak "
            "models; needs log-probabilities",
        ),
    ]
    sure_from: Annotated[
        float | None,
        Setting(0.5, "confidence from which the model is sure of a reply (replies/confidence.py)", least=0, most=1),
    ]
    runoff: Annotated[
        Runoff | None,
        Setting(
            "auto",
            "a tie goes to the answer that more of the other sources find likelier, where the model can tell "
            "(LocalModel, servers with prompt_logprobs)",
        ),
    ]
    wording: Annotated[
        Wording | None,
        Setting(
            "model",
            "with a prompt of your own: one more call with it words the agreed answer, which is shown if it says that "
            "answer and nothing else; source: the answer is shown as a source writes it",
        ),
    ]


CONSENSUS = register(
    Method(
        name="consensus",
        summary="one round: the whole answer that most sources give, in a source's own words; any model",
        tasks=("short_answer", "long_form", "list"),
        needs="text",
        defense="robustrag_integrations.defenses.consensus.defense:ConsensusAggregation",
        options=ConsensusOptions,
        prompts=("choice", "wording"),
    )
)
