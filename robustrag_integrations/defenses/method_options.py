"""The settings of all methods that ship, as one type of keyword arguments; the method decides which of them apply."""

from __future__ import annotations

from collections.abc import Mapping

from robustrag_integrations.defenses.consensus import ConsensusOptions
from robustrag_integrations.defenses.decoding import DecodingOptions
from robustrag_integrations.defenses.keyword import KeywordOptions
from robustrag_integrations.defenses.shared_options import ChoiceOptions
from robustrag_integrations.grouping.votes import Weights
from robustrag_integrations.prompts import Task


class MethodOptions(KeywordOptions, ConsensusOptions, DecodingOptions, ChoiceOptions, total=False):
    """What frameworks take for their `aggregation`; consensus and voting take a part of the same settings.

    The usual rules of voting are among them; `votes=VoteRules(...)` takes all.
    """

    task: Task | None
    group_size: int
    weights: Weights | None
    min_radius: int | Mapping[str, int]
