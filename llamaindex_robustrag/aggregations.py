"""Which of the core's plans a synthesizer runs, and with which settings."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from llamaindex_robustrag.grouping import GroupedNodes
from robustrag_integrations.defenses.base import check_query
from robustrag_integrations.defenses.decoding.plan import decoding_plan
from robustrag_integrations.defenses.decoding.settings import DecodingSettings
from robustrag_integrations.defenses.keyword.plan import keyword_plan
from robustrag_integrations.defenses.keyword.settings import KeywordSettings
from robustrag_integrations.defenses.voting.options import check_choices
from robustrag_integrations.defenses.voting.plan import voting_plan
from robustrag_integrations.defenses.voting.settings import VotingSettings
from robustrag_integrations.models.base import TokenCodec
from robustrag_integrations.plans.requests import Plan

AggregationSettings = KeywordSettings | DecodingSettings | VotingSettings
Aggregation = Literal["keyword", "decoding", "voting"] | AggregationSettings

_KINDS: dict[str, type[KeywordSettings] | type[DecodingSettings] | type[VotingSettings]] = {
    "keyword": KeywordSettings,
    "decoding": DecodingSettings,
    "voting": VotingSettings,
}


def settings_of(aggregation: Aggregation, given: Mapping[str, Any]) -> AggregationSettings:
    """The core's settings for an aggregation.

    Args:
        aggregation: `"keyword"`, `"decoding"` or `"voting"`, or finished settings.
        given: the arguments of `KeywordSettings.of`, `DecodingSettings.of` or `VotingSettings.of`.

    Raises:
        ValueError, TypeError: an unknown aggregation or argument, or one that makes no sense.
    """
    if isinstance(aggregation, AggregationSettings):
        if given:
            raise TypeError(f"{', '.join(sorted(given))}: put these into the settings passed as aggregation=")
        return aggregation
    kind = _KINDS.get(aggregation)
    if kind is None:
        raise ValueError(f"aggregation={aggregation!r} is unknown; use one of {', '.join(map(repr, _KINDS))}")
    known = inspect.signature(kind.of).parameters
    if unknown := sorted(set(given) - set(known)):
        raise TypeError(f"unknown arguments {', '.join(unknown)}; {aggregation} aggregation takes {', '.join(known)}")
    return kind.of(**given)


def plan_for(
    settings: AggregationSettings,
    query: str,
    grouped: GroupedNodes,
    *,
    choices: Sequence[str] | None,
    codec: TokenCodec | None,
    warnings: Sequence[str],
) -> Plan:
    """The plan that answers the query; `warnings`, and those about the groups, come first among the answer's own.

    Raises:
        ValueError, TypeError: an empty query, or choices missing or out of place.
    """
    check_query(query)
    groups, by = grouped.groups, grouped.by
    warnings = (*warnings, *grouped.warnings)
    if isinstance(settings, VotingSettings):
        return _warning(voting_plan(query, groups, check_choices(choices), settings, group_by=by), warnings)
    if choices is not None:
        raise ValueError("choices are for aggregation='voting'; leave them out, or vote")
    if isinstance(settings, KeywordSettings):
        return _warning(keyword_plan(query, groups, settings, group_by=by), warnings)
    assert codec is not None  # noqa: S101 - a synthesizer that decodes has a local model
    return _warning(decoding_plan(query, groups, settings, codec, group_by=by), warnings)


def _warning(plan: Plan, warnings: Sequence[str]) -> Plan:
    answer = yield from plan
    return replace(answer, warnings=(*warnings, *answer.warnings))
