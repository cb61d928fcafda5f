"""Secure decoding aggregation: settings, token choice, plan, certificate and front door (paper, III-C and IV-C)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypedDict

from robustrag_integrations._util.settings import Setting
from robustrag_integrations.defenses.registry import Method, register


class DecodingOptions(TypedDict, total=False):
    """The settings of decoding aggregation."""

    gamma: Annotated[
        float | None,
        Setting(
            0.99,
            'probability of abstaining, of the whole "I don\'t know", from which a group is left out',
            least=0,
            most=1,
            threshold=True,
        ),
    ]
    eta: Annotated[
        float | None,
        Setting(
            0.0,
            "lead of the best token, between sums of probabilities, up to which the token without retrieval is taken; "
            "above 0 for long answers",
            least=0,
            below=1000,
            threshold=True,
        ),
    ]
    max_new_tokens: Annotated[int | None, Setting(None, "longest answer, T_max; 30, for long form 500", least=1)]
    stop: Annotated[
        Sequence[str] | None, Setting(None, "strings that end the answer; a line break, for long form an empty line")
    ]
    slack: Annotated[
        float | None,
        Setting(
            2.0**-10,
            "margin of every comparison of the radius, for float noise between runs",
            least=0,
            below=1000,
        ),
    ]


DECODING = register(
    Method(
        name="decoding",
        summary="decode from the sum of all groups' next-token probabilities; a model that gives them",
        tasks=("short_answer", "long_form"),
        needs="probabilities",
        defense="robustrag_integrations.defenses.decoding.defense:DecodingAggregation",
        options=DecodingOptions,
        prompts=("no_retrieval",),
    )
)
