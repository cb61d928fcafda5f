"""Majority voting over options: settings, counting, plan, certificate and front door (paper, section III-B)."""

from __future__ import annotations

from robustrag_integrations.defenses.registry import Method, register
from robustrag_integrations.defenses.shared_options import (
    ChoiceOptions,
    CutReplyOptions,
    DisagreementOptions,
    QuorumOptions,
)


class VotingOptions(ChoiceOptions, DisagreementOptions, QuorumOptions, CutReplyOptions, total=False):
    """The settings of majority voting."""


VOTING = register(
    Method(
        name="voting",
        summary="majority vote over the options of a multiple-choice question; any model",
        tasks=("multiple_choice",),
        needs="text",
        defense="robustrag_integrations.defenses.voting.defense:MajorityVoting",
        options=VotingOptions,
    )
)
