"""Drop passages that were written alike, then let what the model knows stand beside the rest (TrustRAG)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from robustrag_integrations.abstention import is_abstention
from robustrag_integrations.defenses.base import PlanInput
from robustrag_integrations.defenses.peers.alike import written_alike
from robustrag_integrations.defenses.peers.door import Baseline, options_of
from robustrag_integrations.defenses.peers.rereading import reread
from robustrag_integrations.defenses.peers.settings import TrustSettings
from robustrag_integrations.grouping.passages import Passage, PassageGroup
from robustrag_integrations.models.base import TextModel
from robustrag_integrations.plans.asking import ask_final
from robustrag_integrations.plans.requests import Plan
from robustrag_integrations.prompts import NO_INFORMATION, PromptSet, Task, format_choices
from robustrag_integrations.replies.reading import CutReplies


class ClusterFilter(Baseline):
    """TrustRAG, a baseline without a guarantee.

    The passages' embeddings fall into two clusters. Passages that have a near copy in their own cluster, by cosine and
    by ROUGE-L, are dropped: attackers write several passages from one template. Then the model answers from memory;
    unless it abstains, that answer stands beside the passages that are left, in one prompt. A single planted passage
    has no near copy, so only the second step can help against it.

    Args:
        model: what is asked.
        task: `short_answer` (default), `multiple_choice` or `long_form`.
        prompts: your own `PromptSet`; None for the project's.
        cut_replies: what a reply does that was cut: `"abstain"` (default) or `"count"`.
        embed: a function from a list of texts to one vector each, or its name, `module:function`. None counts words
            (`alike.hashed_words`).
    """

    settings_type = TrustSettings
    settings: TrustSettings

    def __init__(
        self,
        model: TextModel,
        *,
        task: Task | None = None,
        prompts: PromptSet | None = None,
        cut_replies: CutReplies | None = None,
        embed: Callable[..., Any] | str | None = None,
    ) -> None:
        super().__init__(model)
        self.settings = TrustSettings.of(task=task, prompts=prompts, cut_replies=cut_replies, embed=embed)

    @staticmethod
    def plan_of(inputs: PlanInput, settings: TrustSettings) -> Plan:
        """The filter, the answer from memory, one reading of both."""
        return _trust_plan(inputs, settings, options_of(inputs, settings, ClusterFilter))


def _trust_plan(inputs: PlanInput, settings: TrustSettings, choices: Sequence[str] | None) -> Plan:
    texts = [group.text for group in inputs.groups]
    alike = written_alike(texts, settings.embed(texts)) if len(texts) > 1 else frozenset()
    kept = [i for i in range(len(texts)) if i not in alike]
    shown = [inputs.groups[i] for i in kept]
    known, calls = None, 0
    if shown and settings.prompts.no_retrieval is not None:
        values = {} if choices is None else {"choices": format_choices([*choices, NO_INFORMATION])}
        prompt = settings.prompts.no_retrieval.render(query=inputs.query, **values)
        known = (yield from ask_final(prompt, settings.cut_replies, shown=False)).text
        calls = 1
        if known and not is_abstention(known):
            shown.append(PassageGroup(len(inputs.groups), (Passage(known, id="what the model knows"),)))
    evidence = {"written_alike": sorted(alike), "from_memory": known}
    return (
        yield from reread(
            inputs, settings, choices, kept, defense="trustrag", groups=shown, calls=calls, evidence=evidence
        )
    )
