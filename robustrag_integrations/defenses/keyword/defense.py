"""Secure keyword aggregation (paper, section III-B, Algorithm 1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from robustrag_integrations.abstention import is_abstention
from robustrag_integrations.answer import GroupReport, RobustAnswer
from robustrag_integrations.checks import check_at_least_one
from robustrag_integrations.defenses.base import TextDefense
from robustrag_integrations.defenses.keyword.counting import (
    KeywordTally,
    KeywordThreshold,
    keyword_radius,
    tally_keywords,
)
from robustrag_integrations.defenses.keyword.counting import votes_missing as _votes_missing
from robustrag_integrations.keywords import KeywordExtractor, SpacyKeywordExtractor, extractor_fingerprint
from robustrag_integrations.models.base import Response, TextModel
from robustrag_integrations.passages import GroupBy, PassageGroup, grouping_warnings
from robustrag_integrations.plans.asking import Quorum, ask_final, ask_groups, report, truncation_warnings
from robustrag_integrations.plans.requests import Emit, Plan
from robustrag_integrations.prompts import ABSTENTION, Prompt, PromptSet, Task, prompts_for

if TYPE_CHECKING:
    from robustrag_integrations.certification.certify import CertificationRun
    from robustrag_integrations.certification.findings import Question
    from robustrag_integrations.metrics import Metric

KeywordTask = Literal["short_answer", "long_form"]
_DRAFTS = 4  # isolated answers that are tried as the final one
_DRAFT_LENGTH = 200  # characters


@dataclass(frozen=True)
class KeywordSettings:
    """Everything that decides a keyword aggregation apart from the model.

    Attributes:
        threshold: alpha and beta.
        extractor: a response to its keywords.
        task: `short_answer` or `long_form`.
        prompts: what the model is asked.
        min_words: keywords of fewer words do not count; 1 keeps all.
        quorum: how many groups must have been asked with success.
    """

    threshold: KeywordThreshold
    extractor: KeywordExtractor
    task: KeywordTask
    prompts: PromptSet
    min_words: int
    quorum: Quorum

    @classmethod
    def of(
        cls,
        *,
        alpha: float | Fraction = 0.3,
        beta: int = 3,
        extractor: KeywordExtractor | None = None,
        task: Task = "short_answer",
        prompts: PromptSet | None = None,
        min_words: int | None = None,
        quorum: float = 0.5,
    ) -> KeywordSettings:
        """From user arguments; see `KeywordAggregation` for their meaning.

        Raises:
            ValueError, TypeError: an argument makes no sense; the message names it and the fix.
        """
        if task not in ("short_answer", "long_form"):
            raise ValueError(
                f"task={task!r}: keyword aggregation does 'short_answer' and 'long_form'; "
                "use MajorityVoting for multiple choice"
            )
        if extractor is not None and not callable(extractor):
            raise TypeError(f"extractor must be a function from text to a set of str, got {type(extractor).__name__}")
        words = min_words if min_words is not None else (2 if task == "long_form" else 1)
        check_at_least_one(min_words=words)
        chosen = prompts or prompts_for(task)
        if chosen.keyword is None:
            raise ValueError("these prompts have no keyword prompt; give PromptSet(keyword=...)")
        return cls(
            KeywordThreshold.of(alpha, beta),
            extractor if extractor is not None else SpacyKeywordExtractor(),
            task,
            chosen,
            words,
            Quorum(quorum),
        )

    def isolated_prompts(self, query: str, groups: Sequence[PassageGroup]) -> list[Prompt]:
        """One prompt per group; for long form a request for short phrases."""
        template = self.prompts.phrases if self.task == "long_form" and self.prompts.phrases else self.prompts.isolated
        return [template.render(context=g.text, query=query) for g in groups]

    def final_prompt(self, query: str, retained: Sequence[str]) -> Prompt:
        """The second prompt: the query and the retained keywords in sorted order, nothing else."""
        assert self.prompts.keyword is not None  # noqa: S101 - checked in `of`
        return self.prompts.keyword.render(keywords=", ".join(sorted(retained)), query=query)

    def keywords_of(self, response: Response) -> frozenset[str] | None:
        """A response's keywords; None when it abstains or has failed."""
        if response.text is None or is_abstention(response.text):
            return None
        found = self.extractor(response.text)
        if isinstance(found, str) or not all(isinstance(w, str) for w in found):
            raise TypeError(f"the extractor must return a set of str, got {type(found).__name__}")
        return frozenset(w for w in found if len(w.split()) >= self.min_words)

    def as_dict(self) -> dict[str, Any]:
        """The settings, JSON-safe, as answers and certificates name them."""
        return {
            "alpha": str(self.threshold.alpha),
            "beta": self.threshold.beta,
            "task": self.task,
            "min_words": self.min_words,
            "quorum": self.quorum.share,
            "extractor": extractor_fingerprint(self.extractor),
        }


def keyword_plan(
    query: str,
    groups: Sequence[PassageGroup],
    settings: KeywordSettings,
    *,
    group_by: GroupBy | None = None,
    model_warnings: Sequence[str] = (),
) -> Plan:
    """Algorithm 1: ask every group alone, keep the keywords that enough of them share, ask again with those alone."""
    responses = yield from ask_groups(groups, settings.isolated_prompts(query, groups), settings.quorum)
    keyword_sets = [settings.keywords_of(r) for r in responses]
    tally = tally_keywords(keyword_sets, settings.threshold)
    radius = keyword_radius(tally, settings.threshold, len(groups))
    if tally.retained:
        prompt = replace(settings.final_prompt(query, tally.retained), drafts=_drafts(responses, settings.task))
        text, _ = yield from ask_final(prompt)
    else:
        text = ABSTENTION
        yield Emit(text)
    return RobustAnswer(
        text=text,
        radius=max(0, min(radius, settings.quorum.radius(responses))),
        abstained=is_abstention(text),
        query=query,
        defense="keyword",
        groups=_reports(groups, responses, keyword_sets, tally, text),
        warnings=(
            *model_warnings,
            *grouping_warnings(groups, group_by),
            *_threshold_warnings(tally),
            *truncation_warnings([r.truncated for r in responses]),
        ),
        settings=settings.as_dict(),
        evidence=_evidence(tally),
        model_calls=len(groups) + bool(tally.retained),
    )


def _drafts(responses: Sequence[Response], task: KeywordTask) -> tuple[str, ...]:
    """The most frequent short isolated answers: the final one is likely to read like one of them."""
    if task != "short_answer":
        return ()
    said = Counter(text for r in responses if (text := (r.text or "").strip()) and not is_abstention(text))
    return tuple(text for text, _ in said.most_common(_DRAFTS) if len(text) <= _DRAFT_LENGTH)


def _reports(
    groups: Sequence[PassageGroup],
    responses: Sequence[Response],
    keyword_sets: Sequence[frozenset[str] | None],
    tally: KeywordTally,
    text: str,
) -> tuple[GroupReport, ...]:
    """Who supported: a group that said a retained keyword found in the answer (any retained one if none is)."""
    said = text.casefold()
    decisive = frozenset(w for w in tally.retained if w.casefold() in said) or frozenset(tally.retained)
    reports = []
    for group, response, keywords in zip(groups, responses, keyword_sets, strict=True):
        if keywords is None:
            reports.append(report(group, response))
            continue
        supports = bool(keywords & decisive)
        margin = None if supports else float(_votes_missing(keywords, tally))
        status = "supports" if supports else "outvoted"
        reports.append(report(group, response, status=status, keywords=tuple(sorted(keywords)), margin=margin))
    return tuple(reports)


def _threshold_warnings(tally: KeywordTally) -> list[str]:
    if tally.answering and tally.mu <= 1:
        return [
            f"with {tally.answering} answering groups the threshold is {float(tally.mu):g}: one group alone decides "
            "what is kept; raise alpha or retrieve more passages"
        ]
    return []


_EVIDENCE_KEYWORDS = 200


def _evidence(tally: KeywordTally) -> dict[str, Any]:
    """Counts of the most frequent keywords; a hostile response may hold tens of thousands that nobody shares."""
    ranked = sorted(tally.counts.items(), key=lambda item: (-item[1], item[0]))
    shown = dict(ranked[: max(_EVIDENCE_KEYWORDS, len(tally.retained))])
    return {
        "counts": shown,
        "distinct_keywords": len(ranked),
        "threshold": float(tally.mu),
        "retained": list(tally.retained),
        "answering": tally.answering,
    }


class KeywordAggregation(TextDefense):
    """Secure keyword aggregation over any text model.

    Guarantee: replacing the content of any `answer.radius` groups leaves the answer as it is, provided that the model
    is deterministic.

    Args:
        model: what is asked, once per group and once with the retained keywords.
        alpha: share of the answering groups that must say a keyword, in [0, 1].
        beta: number of groups that is enough in any case; the threshold is min(alpha * n, beta).
        extractor: any function from one response to its set of keywords; None for the shipped pipeline.
        task: `short_answer` or `long_form` (each group is asked for short phrases; single words do not count).
        prompts: your own `PromptSet`; None for the project's.
        min_words: keywords of fewer words do not count. Default 1, for long form 2 (the paper's text says "more than
            two words", its results come from dropping single words; set 3 for the former).
        quorum: share of the groups that must have been asked with success, in [0, 1]; below it QuorumError is raised.
        group_size: omega, adjacent passages per group.
        group_by: `"source"` or a function from Passage to a key, in place of `group_size`.

    Example:
        >>> defense = KeywordAggregation(CallableModel(my_llm), alpha=0.3, beta=3)
        >>> answer = defense.answer("Who won?", passages)
        >>> answer.text, answer.radius
    """

    def __init__(
        self,
        model: TextModel,
        *,
        alpha: float | Fraction = 0.3,
        beta: int = 3,
        extractor: KeywordExtractor | None = None,
        task: Task = "short_answer",
        prompts: PromptSet | None = None,
        min_words: int | None = None,
        quorum: float = 0.5,
        group_size: int = 1,
        group_by: GroupBy | None = None,
    ) -> None:
        super().__init__(model, group_size=group_size, group_by=group_by)
        self.settings = KeywordSettings.of(
            alpha=alpha,
            beta=beta,
            extractor=extractor,
            task=task,
            prompts=prompts,
            min_words=min_words,
            quorum=quorum,
        )

    def _plan(self, query: str, groups: Sequence[PassageGroup], choices: Sequence[str] | None) -> Plan:
        self._refuse_choices(choices)
        return keyword_plan(query, groups, self.settings, group_by=self.group_by, model_warnings=self.model.warnings)

    def certification_run(self, question: Question, metric: Metric, choices: Sequence[str] | None) -> CertificationRun:
        """Algorithm 3 on this defence's model and settings."""
        from robustrag_integrations.certification.certify import text_run
        from robustrag_integrations.defenses.keyword.certificate import keyword_certification_plan

        self._refuse_choices(choices)
        plan = keyword_certification_plan(question, self.settings, same_batches=self.model.shares_batches)
        return text_run("keyword", question, plan, self.model, metric, self.settings.as_dict())
