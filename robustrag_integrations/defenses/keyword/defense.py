"""Secure keyword aggregation: the front door (paper, sections III-B and IV-B)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from robustrag_integrations.answers.determinism import Promise
from robustrag_integrations.certification.certify import CertificationRun, text_run
from robustrag_integrations.certification.findings import Question
from robustrag_integrations.defenses.agreement.claims.certificate import claims_certification_plan
from robustrag_integrations.defenses.agreement.claims.plan import claims_plan
from robustrag_integrations.defenses.agreement.claims.settings import ClaimSettings
from robustrag_integrations.defenses.agreement.reader import Ungrounded
from robustrag_integrations.defenses.base import PlanInput, TextDefense, refuse_choices
from robustrag_integrations.defenses.keyword.certificate import keyword_certification_plan
from robustrag_integrations.defenses.keyword.plan import keyword_plan
from robustrag_integrations.defenses.keyword.settings import Final, KeywordSettings, Threshold
from robustrag_integrations.defenses.settings_file import SettingsLike, reads_settings
from robustrag_integrations.keywords import KeywordExtractor
from robustrag_integrations.metrics import Metric
from robustrag_integrations.models.base import TextModel
from robustrag_integrations.models.wrappers import TwoModels
from robustrag_integrations.plans.requests import Plan
from robustrag_integrations.prompts import PromptSet, Task
from robustrag_integrations.replies.reading import CutReplies
from robustrag_integrations.replies.structured import Replies

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from robustrag_integrations.grouping.votes import VoteOptions, VoteRules


class KeywordAggregation(TextDefense):
    """Secure keyword aggregation over any text model.

    Guarantee: replacing the content of any `answer.radius` groups leaves the answer as it is if the model is
    deterministic, and the kept keywords of this run if it samples (`answer.determinism`). Where the model is asked at
    the end, the radius counts the letters that it is shown (`evidence["retained"]`).

    Args:
        model: the model to ask, once per group and once with the retained keywords.
        final_model: asked with the retained keywords in its place; the guarantee needs both to be deterministic.
        threshold: `"relative"`: a keyword is kept if more than `share` of the strongest keyword's groups say so, too;
            `"absolute"`, the paper's: if min(alpha * n, beta) of the n answering groups do. Without it the numbers that
            are given say which one is meant; default absolute, and relative with `weights`.
        share: of the strongest keyword's number of groups, in [0, 1); default 0.5.
        min_support: how many groups must say a keyword at least under a relative threshold; default 2.
        alpha: share of the answering groups that must say a keyword, in [0, 1]; default 0.5.
        beta: number of groups that is enough in any case; default 5.
        final: `"auto"`, the default: the model is asked to word the answer where several kept keys have to be put
            together, and always with prompts of your own; a final reply that abstains, fails, or with our prompt says
            words that nobody agreed on, gives way to the kept words. `"always"`, the paper's: it is asked in any case,
            and what it says is the answer. `"never"`: the kept words are the answer.
        extractor: `"runs"`, the default: whole answers and runs of words (`keywords/runs.py`); `"spacy"`, the paper's;
            or a function from one response to its set of keywords, or to None where it abstains. Keywords of these two
            are shown as they are counted.
        task: `short_answer` (default); `long_form` and `list` are counted claim by claim (`agreement/claims/rule.py`),
            without a final call, and take `min_support`, `quorum`, `abstention`, `cut_replies` and prompts alone. With
            an extractor `long_form` is the paper's: each group is asked for short phrases, and single words do not
            count.
        prompts: your own `PromptSet`; None for the project's. Without a `keyword` prompt in it, the isolated prompt is
            asked at the end, too, with the retained keywords where the passages stood.
        min_words: keywords of fewer words do not count, unless they are items of a list. Default 1, for long form 2
            (the paper's text says "more than two words", its results come from dropping single words; set 3 for that).
        quorum: share of the groups that must have been asked with success, in [0, 1], default 0.5; below it QuorumError
            is raised.
        abstention: a function from one response to whether it abstains, or a list of phrases that abstain besides what
            `is_abstention` recognises; None for `is_abstention`. One that raises over a response costs its group.
        cut_replies: the effect of a reply that was cut at its limit of tokens or by a content filter. `"abstain"`, the
            default: it abstains unless its answer was complete by then, and a final answer that was cut raises
            ModelError. `"count"`: it counts as far as it goes, with a warning.
        replies: `"text"`, the default; `"structured"`: groups are asked for an object with an answer and whether it was
            found, which takes a model or a server that enforces a JSON schema (a probe without passages finds out);
            `"auto"`: for an object where that is so, else for text.
        ungrounded: what becomes of an answer of which no word stands in the passages of any group that gives it: mostly
            an invention of the model. `"abstain"`, the default; `"count"`: it counts, as where passages are in another
            language than the replies. A function as `extractor` always counts.
        prime: ask once without passages before the groups, so that a server that caches prompts has what they begin
            with; True where that is long enough to pay, a number for the least number of characters.
        accept_sampling: you know that the model may answer otherwise another time: no warning repeats it, while
            `answer.determinism` still says what holds.
        settings: a settings file, or what `load_settings` gives, for everything that is not given here.
        rules: the rules of voting: `group_by`, `group_size`, `copies`, `weights`, `min_groups`,
            `min_radius`, `below`; see `VoteRules`.

    Examples:
        >>> defense = KeywordAggregation(CallableModel(my_llm))
        >>> answer = defense.answer("Who won?", passages)
        >>> answer.text, answer.radius
    """

    begins_at_once = True
    takes_weights = True
    settings_type = KeywordSettings
    settings: KeywordSettings | ClaimSettings
    promise = Promise(
        "the keywords that this run kept",
        "the final call is asked with these alone and draws on its own, so that its words may differ by chance, not by "
        "the attacker's choice",
        scope="final_prompt",
    )

    @reads_settings
    def __init__(
        self,
        model: TextModel,
        *,
        final_model: TextModel | None = None,
        threshold: Threshold | None = None,
        share: float | Fraction | None = None,
        min_support: int | None = None,
        alpha: float | Fraction | None = None,
        beta: int | None = None,
        extractor: KeywordExtractor | Literal["runs", "spacy"] | None = None,
        task: Task | None = None,
        prompts: PromptSet | None = None,
        min_words: int | None = None,
        quorum: float | None = None,
        abstention: Callable[[str], bool] | Sequence[str] | None = None,
        cut_replies: CutReplies | None = None,
        replies: Replies | None = None,
        ungrounded: Ungrounded | None = None,
        final: Final | None = None,
        accept_sampling: bool = False,
        prime: bool | int = False,
        settings: SettingsLike | None = None,
        **rules: Unpack[VoteOptions],
    ) -> None:
        model = model if final_model is None else TwoModels(model, final_model)
        super().__init__(model, accept_sampling=accept_sampling, prime=prime, **rules)
        self.settings = KeywordSettings.of(
            threshold=threshold,
            share=share,
            min_support=min_support,
            alpha=alpha,
            beta=beta,
            extractor=extractor,
            task=task,
            prompts=prompts,
            min_words=min_words,
            quorum=quorum,
            abstention=abstention,
            cut_replies=cut_replies,
            replies=replies,
            ungrounded=ungrounded,
            final=final,
        )

    @classmethod
    def takes(cls, settings: object) -> bool:
        """True if these are settings of this method, for keywords or for claims."""
        return isinstance(settings, (KeywordSettings, ClaimSettings))

    @classmethod
    def settings_under(
        cls, rules: VoteRules, settings: KeywordSettings | ClaimSettings
    ) -> KeywordSettings | ClaimSettings:
        """Return the settings as they are under these rules of voting: with weights a relative threshold."""
        return settings.under(rules) if isinstance(settings, KeywordSettings) else settings

    @staticmethod
    def plan_of(inputs: PlanInput, settings: KeywordSettings | ClaimSettings) -> Plan:
        """Return the plan of Algorithm 1."""
        refuse_choices(inputs.choices, KeywordAggregation)
        if isinstance(settings, ClaimSettings):
            return claims_plan(
                inputs.query,
                inputs.groups,
                settings,
                defense="keyword",
                rules=inputs.rules,
                model_warnings=inputs.caveats,
            )
        return keyword_plan(
            inputs.query, inputs.groups, settings, group_by=inputs.group_by, model_warnings=inputs.caveats
        )

    def certification_run(self, question: Question, metric: Metric, choices: Sequence[str] | None) -> CertificationRun:
        """Return the run of Algorithm 3 on this defence's model and settings."""
        refuse_choices(choices, KeywordAggregation)
        same_batches = self.model.shares_batches
        if isinstance(self.settings, ClaimSettings):
            plan = claims_certification_plan(question, self.settings, same_batches=same_batches)
        else:
            plan = keyword_certification_plan(question, self.settings, same_batches=same_batches)
        return text_run("keyword", question, plan, self.model, metric, self.settings.as_dict())
