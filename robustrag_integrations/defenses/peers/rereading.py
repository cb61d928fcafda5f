"""What the baselines share: isolated answers first, and in the end one question over the raw passages that they kept.

That second reading is why none of them has a radius: a passage that was kept may say whatever it likes to the model.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from typing import Any

from robustrag_integrations.abstention import is_abstention
from robustrag_integrations.answer import RobustAnswer
from robustrag_integrations.defenses.base import PlanInput
from robustrag_integrations.defenses.peers.settings import PeerSettings
from robustrag_integrations.defenses.vanilla import ask_once, in_one_prompt
from robustrag_integrations.defenses.voting.options import parse_option
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.models.base import Response
from robustrag_integrations.plans.asking import (
    Quorum,
    Reading,
    ask_groups,
    read_response,
    report,
    truncation_warnings,
)
from robustrag_integrations.plans.requests import Emit, Plan, Reply, Request
from robustrag_integrations.prompts import ABSTENTION, NO_INFORMATION, PromptTemplate, format_choices
from robustrag_integrations.replies.reading import reply_warnings

NO_GUARANTEE = "this is a baseline without a guarantee: its last step reads raw passages together"
Asking = Generator[Request, Reply, list[Reading[str]]]


def isolated_answers(
    query: str, groups: Sequence[PassageGroup], settings: PeerSettings, choices: Sequence[str] | None
) -> Asking:
    """What each group answers alone, as text; None for an abstention or a failure.

    Raises:
        QuorumError: all groups failed.
    """
    values = {} if choices is None else {"choices": format_choices([*choices, NO_INFORMATION])}
    prompts = [settings.prompts.isolated.render(context=g.text, query=query, **values) for g in groups]

    def said(text: str) -> str | None:
        if choices is None:
            return None if is_abstention(text) else text.strip() or None
        chosen = parse_option(text, choices)
        return None if chosen is None else choices[chosen]

    def read(response: Response) -> Reading[str]:
        return read_response(response, said, settings.cut_replies, by_line=choices is not None)

    return (yield from ask_groups(groups, prompts, Quorum(0), read))


def reread(
    inputs: PlanInput,
    settings: PeerSettings,
    choices: Sequence[str] | None,
    kept: Collection[int],
    *,
    defense: str,
    readings: Sequence[Reading[str]] | None = None,
    template: PromptTemplate | None = None,
    groups: Sequence[PassageGroup] | None = None,
    calls: int = 0,
    warnings: Sequence[str] = (),
    evidence: Mapping[str, Any] | None = None,
) -> Plan:
    """Answer from the raw passages of the groups that were kept, in one prompt; an abstention where there is none.

    Args:
        inputs: the question and its groups.
        settings: the baseline's.
        choices: the options of a multiple-choice question.
        kept: the places of the groups that are read.
        defense: the baseline's name.
        readings: what the groups said alone, where they were asked.
        template: what is asked; None for the prompt of vanilla RAG.
        groups: what stands in the prompt; None for the groups that were kept.
        calls: how often the model was asked before.
        warnings: what the baseline says besides.
        evidence: what decided.
    """
    together = in_one_prompt([inputs.groups[i] for i in sorted(kept)] if groups is None else groups)
    text, choice, said = ABSTENTION, None, Response(None)
    if together.is_empty:
        yield Emit(text)
    else:
        calls += 1
        values = {"context": together.text, "query": inputs.query}
        text, choice, said = yield from ask_once(
            template or settings.prompts.isolated, values, choices, settings.cut_replies
        )
    responses = [said, *(reading.response for reading in readings or ())]
    return RobustAnswer(
        text=text,
        radius=0,
        abstained=is_abstention(text),
        query=inputs.query,
        defense=defense,
        groups=tuple(
            _report(group, readings[i] if readings else None, i in kept) for i, group in enumerate(inputs.groups)
        ),
        choice=choice,
        warnings=(
            *inputs.caveats,
            NO_GUARANTEE,
            *warnings,
            *truncation_warnings([said.truncated]),
            *filter(None, [said.note]),
            *reply_warnings(responses[1:]),
        ),
        settings=settings.as_dict(),
        evidence={"kept": sorted(kept), **(evidence or {})},
        model_calls=calls,
        reasoning_chars=sum(response.reasoning_chars for response in responses),
    )


def _report(group: PassageGroup, reading: Reading[str] | None, was_kept: bool) -> Any:
    if was_kept:
        return report(group, reading.response if reading else None, status="supports")
    if reading is not None and reading.found is None:
        return report(group, reading.response, copy_of=reading.copy_of)
    return report(group, reading.response if reading else None, status="left_out")
