"""Consensus aggregation: the front door."""

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
from robustrag_integrations.defenses.consensus.certificate import consensus_certification_plan
from robustrag_integrations.defenses.consensus.plan import consensus_plan
from robustrag_integrations.defenses.consensus.settings import ConsensusSettings
from robustrag_integrations.defenses.settings_file import SettingsLike, reads_settings
from robustrag_integrations.keywords import KeywordExtractor
from robustrag_integrations.metrics import Metric
from robustrag_integrations.models.base import TextModel
from robustrag_integrations.plans.requests import Plan
from robustrag_integrations.prompts import PromptSet, Task
from robustrag_integrations.replies.reading import CutReplies
from robustrag_integrations.replies.structured import Replies

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from robustrag_integrations.grouping.votes import VoteOptions


class ConsensusAggregation(TextDefense):
    """Short answers from one round of calls: what most of the strongest support says, in the groups' own words.

    Whole answers and runs of words of the replies are counted (`counting.py`). The strongest, and those that more than
    `share` of its groups say with it, make the answer, each as most groups write it. There is no second call and no
    threshold to guess: a plurality falls when as many lie as agree.

    Guarantee: replacing the content of any `answer.radius` groups leaves the same answer up to case, spacing and the
    punctuation at its ends, and of any `answer.radius_verbatim` groups the same letters; those of this run, if the
    model samples (`answer.determinism`).

    Args:
        model: the model to ask, once per group.
        share: a keyword is in the answer if more than this share of the strongest keyword's groups say it, too; in
            [0.5, 1), default 0.5.
        min_support: how many groups must say the strongest keyword; below, the answer is an abstention; default 2.
        extractor: `"runs"`, the default: whole answers and runs of words (`keywords/runs.py`); `"spacy"`, the paper's;
            or a function from one response to its set of keywords, or to None where it abstains.
        task: `short_answer` (default); `long_form` and `list` are counted claim by claim (`agreement/claims/rule.py`),
            each that `min_support` groups make.
        prompts: your own `PromptSet`; None for the project's.
        quorum: share of the groups that must have been asked with success, in [0, 1]; default 0.5.
        abstention: a function from a response to whether it abstains, or phrases that do, besides what
            `is_abstention` recognises; None for `is_abstention`. One that raises over a response costs its group.
        cut_replies: the effect of a reply that was cut at its limit of tokens or by a content filter: `"abstain"`
            (default: unless its answer was complete by then) or `"count"` (as far as it goes, with a warning).
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
            `min_radius`, `below`; and whether all are waited for: `stop_when_decided`, `wave_size`; see `VoteRules`.

    Examples:
        >>> answer = ConsensusAggregation(model).answer("Who won?", passages)
        >>> answer.text, answer.radius
    """

    begins_at_once = True
    takes_weights = True
    decides_early = True
    settings_type = ConsensusSettings
    settings: ConsensusSettings | ClaimSettings
    promise = Promise("the answer of this run")

    @reads_settings
    def __init__(
        self,
        model: TextModel,
        *,
        share: float | Fraction | None = None,
        min_support: int | None = None,
        extractor: KeywordExtractor | Literal["runs", "spacy"] | None = None,
        task: Task | None = None,
        prompts: PromptSet | None = None,
        quorum: float | None = None,
        abstention: Callable[[str], bool] | Sequence[str] | None = None,
        cut_replies: CutReplies | None = None,
        replies: Replies | None = None,
        ungrounded: Ungrounded | None = None,
        accept_sampling: bool = False,
        prime: bool | int = False,
        settings: SettingsLike | None = None,
        **rules: Unpack[VoteOptions],
    ) -> None:
        super().__init__(model, accept_sampling=accept_sampling, prime=prime, **rules)
        self.settings = ConsensusSettings.of(
            share=share,
            min_support=min_support,
            extractor=extractor,
            task=task,
            prompts=prompts,
            quorum=quorum,
            abstention=abstention,
            cut_replies=cut_replies,
            replies=replies,
            ungrounded=ungrounded,
        )

    @classmethod
    def takes(cls, settings: object) -> bool:
        """True if these are settings of this method, for keywords or for claims."""
        return isinstance(settings, (ConsensusSettings, ClaimSettings))

    @staticmethod
    def plan_of(inputs: PlanInput, settings: ConsensusSettings | ClaimSettings) -> Plan:
        """Return the plan: one round of calls."""
        refuse_choices(inputs.choices, ConsensusAggregation)
        if isinstance(settings, ClaimSettings):
            return claims_plan(
                inputs.query,
                inputs.groups,
                settings,
                defense="consensus",
                rules=inputs.rules,
                model_warnings=inputs.caveats,
            )
        return consensus_plan(inputs.query, inputs.groups, settings, rules=inputs.rules, model_warnings=inputs.caveats)

    def certification_run(self, question: Question, metric: Metric, choices: Sequence[str] | None) -> CertificationRun:
        """Return the run that certifies a question with this defence's model and settings."""
        refuse_choices(choices, type(self))
        same_batches = self.model.shares_batches
        if isinstance(self.settings, ClaimSettings):
            plan = claims_certification_plan(question, self.settings, same_batches=same_batches)
        else:
            plan = consensus_certification_plan(question, self.settings, same_batches=same_batches)
        return text_run("consensus", question, plan, self.model, metric, self.settings.as_dict())
