"""The front door of all defences: check the input, isolate, run the plan.

1. `__init__` splits its arguments into vote rules (`VoteRules`) and settings of the method (`settings_type`).
2. `plan` puts the passages into groups (`VoteRules.isolate`); `whole_plan` counts votes, runs the method's own
   `plan_of` and adds what all answers have (`plans/finish.py`): every driver and framework runs it.
3. `answer`, `aanswer`, `stream` and `astream` run it with a `Performer`; `certify` runs `certification_run`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, overload

from robustrag_integrations._util.checks import check_flag, refuse_unknown
from robustrag_integrations._util.settings import settings_in
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.answers.determinism import Promise, Repeats
from robustrag_integrations.certification.cases import AttackMode
from robustrag_integrations.certification.certify import CertificationRun
from robustrag_integrations.certification.findings import Question
from robustrag_integrations.certification.result import Certification
from robustrag_integrations.defenses.registry import METHODS, Method, described, methods_that
from robustrag_integrations.defenses.settings import MethodSettings
from robustrag_integrations.defenses.settings_file import Arguments, SettingsLike, load_settings
from robustrag_integrations.grouping.passages import GroupBy, Passage, PassageGroup, as_passages
from robustrag_integrations.grouping.votes import VOTES, VoteRules
from robustrag_integrations.metrics import Metric, contains_answer, metric_name, references_of
from robustrag_integrations.models.base import Model, TextModel, repeats_of
from robustrag_integrations.plans.asking import PlanInput, check_query
from robustrag_integrations.plans.drivers import (
    AnswerStream,
    AsyncAnswerStream,
    Performer,
    TextPerformer,
    arun,
    astream,
    run,
    stream,
)
from robustrag_integrations.plans.finish import Draft, MethodTerms, answered
from robustrag_integrations.plans.records import Circumstances, KeptReplies
from robustrag_integrations.plans.requests import Plan, Steps

if TYPE_CHECKING:
    from typing_extensions import TypedDict, Unpack

    class CertifyOptions(TypedDict, total=False):
        """The keyword arguments of `Defense.certify` besides the corruption size."""

        metric: Metric
        attack: AttackMode
        choices: Sequence[str] | None
        top_k: int | None
        max_model_calls: int
        sample: int
        seed: int
        answer: RobustAnswer | None


_OPTIONS = re.compile(r"^( *)options: the settings of the method:$", re.MULTILINE)


def refuse_choices(choices: Sequence[str] | None, defense: type[Defense]) -> None:
    """Raise ValueError if a defence that does not answer multiple-choice questions was given options."""
    if choices is not None:
        voting = " or ".join(f"{m.class_name} (aggregation={m.name!r})" for m in METHODS.values() if m.takes_choices)
        raise ValueError(f"{defense.__name__} does not take choices; use {voting} for multiple choice")


class Defense(ABC):
    """A defence: isolate, ask, aggregate, answer. Subclasses say how with settings, a plan and what performs it.

    Attributes:
        settings_type: a frozen dataclass whose fields are its settings.
        method: its entry of the registry, the one of its settings if it names none.
        promise: the part of a run that the method's radius fixes if its model draws at random; None: nothing.
        isolates: False for a baseline that shows passages together, of whose groups nothing is told.
        takes_weights: True if groups may have more votes than one.
        decides_early: True if it can prove an answer before all groups have said something.
        rules: the rules of voting.
    """

    method: ClassVar[Method]
    settings_type: ClassVar[type[MethodSettings]]
    promise: ClassVar[Promise | None] = None
    isolates: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = False
    decides_early: ClassVar[bool] = False
    settings: Any  # of `settings_type`

    def __init_subclass__(cls) -> None:
        """Find the method, and name its settings in the class's docstring."""
        if "settings_type" in vars(cls):
            if "method" not in vars(cls):
                cls.method = cls.settings_type.method
            cls.__doc__ = _OPTIONS.sub(
                lambda found: f"{found[0]}\n{described(settings_in(cls.settings_type), found[1] + '    ')}",
                cls.__doc__ or "",
            )

    def __init__(self, **given: Any) -> None:
        accept_sampling = given.pop("accept_sampling", False)
        check_flag(accept_sampling=accept_sampling)
        saved = given.pop("settings", None)
        known = [*VOTES, "task", "prompts", *(s.name for s in settings_in(self.settings_type))]
        refuse_unknown(given, known, type(self).__name__)
        chosen = Arguments.of(given, aggregation=self.method.name, settings=saved)
        self.rules = chosen.rules
        self.check_rules(self.rules)
        self.settings = self.settings_of(**chosen.options)
        self.accept_sampling = accept_sampling

    @classmethod
    def settings_of(cls, **given: Any) -> Any:
        """Return the settings, checked, from the user's; None stands for the default.

        Raises:
            ValueError, TypeError: an invalid one; the message names it and the fix.
        """
        return cls.settings_type(**given)

    @classmethod
    def takes(cls, settings: object) -> bool:
        """True if these are settings of this method."""
        return isinstance(settings, cls.settings_type)

    @classmethod
    def check_rules(cls, rules: VoteRules) -> None:
        """Raise ValueError if the method cannot count votes by these rules."""
        rules.check_complete()
        if rules.weights is not None and not cls.takes_weights:
            able = " or ".join(m.class_name for m in methods_that("takes_weights"))
            raise ValueError(f"{cls.__name__} does not take weights; use {able}")
        if rules.stop_when_decided and not cls.decides_early:
            able = " or ".join(f"{m.class_name} (aggregation={m.name!r})" for m in methods_that("decides_early"))
            raise ValueError(f"{cls.__name__} needs what all groups say; stop_when_decided is for {able}")

    @classmethod
    def settings_under(cls, rules: VoteRules, settings: Any) -> Any:
        """Return the settings as they are under these rules of voting."""
        return settings

    @property
    def group_by(self) -> GroupBy:
        """The criterion by which passages are grouped."""
        return self.rules.by

    @property
    def group_size(self) -> int:
        """The number of adjacent passages in a group."""
        return self.rules.group_size

    def plan(
        self,
        query: str,
        passages: Iterable[str | Passage],
        *,
        choices: Sequence[str] | None = None,
        keep: bool = False,
    ) -> Plan:
        """The defence as a generator that yields requests and receives replies, for drivers of your own.

        Raises:
            TypeError, ValueError: the query or a passage is not text, or the query is empty.
        """
        check_query(query)
        check_flag(keep=keep)
        items = tuple(passages) if keep else passages
        inputs = self._inputs(query, self.rules.isolate(items), choices)
        if keep:
            inputs = replace(inputs, kept=KeptReplies(self._circumstances(query, as_passages(items), choices)))
        return self.whole_plan(inputs, self.settings)

    def answer(
        self,
        query: str,
        passages: Iterable[str | Passage],
        *,
        choices: Sequence[str] | None = None,
        keep: bool = False,
    ) -> RobustAnswer:
        """Answer a question from retrieved passages.

        Args:
            query: the question; trusted.
            passages: the retrieved passages, best first; not trusted. None at all gives an abstention.
            choices: the options of a multiple-choice question, for defences that vote.
            keep: keep what the model says, so that `certify(answer=...)` need not ask it again. It stays in memory as
                long as the answer does; for decoding, a probability per group, token of the answer and of the
                vocabulary.

        Raises:
            TypeError, ValueError: bad input, named in the message.
            QuorumError: too many groups failed.
            ModelError: the final call failed.
        """
        return run(self.plan(query, passages, choices=choices, keep=keep), self._performer())

    async def aanswer(
        self,
        query: str,
        passages: Iterable[str | Passage],
        *,
        choices: Sequence[str] | None = None,
        keep: bool = False,
    ) -> RobustAnswer:
        """`answer` without blocking the event loop; cancelling it cancels the model calls."""
        return await arun(self.plan(query, passages, choices=choices, keep=keep), self._performer().aperform)

    def stream(
        self,
        query: str,
        passages: Iterable[str | Passage],
        *,
        choices: Sequence[str] | None = None,
        keep: bool = False,
    ) -> AnswerStream:
        """Yield the aggregated answer in pieces; `.answer` holds the whole after the last piece.

        The pieces add up to the answer's text. No isolated response is ever shown.
        """
        return AnswerStream(stream(self.plan(query, passages, choices=choices, keep=keep), self._performer()))

    def astream(
        self,
        query: str,
        passages: Iterable[str | Passage],
        *,
        choices: Sequence[str] | None = None,
        keep: bool = False,
    ) -> AsyncAnswerStream:
        """`stream` for `async for`."""
        return AsyncAnswerStream(astream(self.plan(query, passages, choices=choices, keep=keep), self._performer()))

    @overload
    def certify(
        self,
        query: str,
        passages: Iterable[str | Passage],
        reference: str | Sequence[str],
        *,
        corruption_size: int = 1,
        **options: Unpack[CertifyOptions],
    ) -> Certification: ...

    @overload
    def certify(
        self,
        query: str,
        passages: Iterable[str | Passage],
        reference: str | Sequence[str],
        *,
        corruption_size: Sequence[int],
        **options: Unpack[CertifyOptions],
    ) -> tuple[Certification, ...]: ...

    def certify(
        self,
        query: str,
        passages: Iterable[str | Passage],
        reference: str | Sequence[str],
        *,
        corruption_size: int | Sequence[int] = 1,
        **options: Unpack[CertifyOptions],
    ) -> Certification | tuple[Certification, ...]:
        """Certify a question: whatever a bounded attacker writes, its answer scores at least `.tau`.

        Args:
            query: the question; trusted.
            passages: the clean retrieval, best first, before any attack.
            reference: the right answer, or several of which each is right.
            corruption_size: k', how many passages the attacker controls at most. A list of sizes gives one certificate
                each, ascending; they share the model's calls.
            metric: scores the responses.
            attack: `"injection"` or `"modification"`.
            choices: the options of a multiple-choice question, for defences that vote.
            top_k: number of passages that the retrieval returns when it finds enough; default as many as given.
            max_model_calls: the limit of model calls; beyond it nothing is certified.
            sample: number of responses to sample for an estimate where tau cannot be proven.
            seed: the seed of the sampling.
            answer: this defence's answer to the same question from the same passages, asked for with `keep=True`. What
                the model said for it is not asked again. The certificate is the same, and `model_calls` and
                `max_model_calls` count those replies, too.

        Raises:
            TypeError, ValueError: bad input, an answer that is not to be used here, or a model that samples; named in
                the message.
        """
        certified = self._certification(query, passages, reference, corruption_size, **options)
        found = certified.run()
        return found[0] if _is_one(corruption_size) else found

    @overload
    async def acertify(
        self,
        query: str,
        passages: Iterable[str | Passage],
        reference: str | Sequence[str],
        *,
        corruption_size: int = 1,
        **options: Unpack[CertifyOptions],
    ) -> Certification: ...

    @overload
    async def acertify(
        self,
        query: str,
        passages: Iterable[str | Passage],
        reference: str | Sequence[str],
        *,
        corruption_size: Sequence[int],
        **options: Unpack[CertifyOptions],
    ) -> tuple[Certification, ...]: ...

    async def acertify(
        self,
        query: str,
        passages: Iterable[str | Passage],
        reference: str | Sequence[str],
        *,
        corruption_size: int | Sequence[int] = 1,
        **options: Unpack[CertifyOptions],
    ) -> Certification | tuple[Certification, ...]:
        """`certify` without blocking the event loop."""
        certified = self._certification(query, passages, reference, corruption_size, **options)
        found = await certified.arun()
        return found[0] if _is_one(corruption_size) else found

    def _circumstances(self, query: str, passages: tuple[Passage, ...], choices: Sequence[str] | None) -> Circumstances:
        model = getattr(self, "model", None)
        return Circumstances(
            query,
            passages,
            None if choices is None else tuple(choices),
            self.settings,
            (self.group_by, self.group_size),
            model,
            model.state if isinstance(model, Model) else None,
        )

    def _with_kept(self, question: Question, answer: RobustAnswer | None, choices: Sequence[str] | None) -> Question:
        """Return the question with the replies that an answer to it kept.

        Raises:
            TypeError: not an answer.
            ValueError: it keeps nothing, or was made otherwise.
        """
        if answer is None:
            return question
        if not isinstance(answer, RobustAnswer):
            raise TypeError(f"answer must be a RobustAnswer, got {type(answer).__name__}")
        kept = answer.kept
        if not isinstance(kept, KeptReplies):
            raise ValueError(
                "the answer keeps nothing to certify with: ask with answer(..., keep=True), or leave answer= out; one "
                "that was read from a report, or that a framework made, keeps nothing"
            )
        if why := kept.circumstances.difference(self._circumstances(question.query, question.passages, choices)):
            raise ValueError(f"the answer cannot be used for this certificate: {why}; leave answer= out to ask again")
        return replace(question, kept=kept)

    def certification_run(self, question: Question, metric: Metric, choices: Sequence[str] | None) -> CertificationRun:
        """Return the run that certifies a checked question; `certify` is the front door.

        Raises:
            TypeError: there is nothing to certify about this defence.
        """
        listed = [m.class_name for m in METHODS.values()]
        raise TypeError(
            f"{type(self).__name__} cannot be certified: any passage may decide its answer; use "
            f"{', '.join(listed[:-1])} or {listed[-1]}"
        )

    def _certification(
        self,
        query: str,
        passages: Iterable[str | Passage],
        reference: str | Sequence[str],
        corruption_size: int | Sequence[int],
        *,
        metric: Metric = contains_answer,
        choices: Sequence[str] | None = None,
        answer: RobustAnswer | None = None,
        **options: Any,
    ) -> CertificationRun:
        """Return the certification of a checked question."""
        check_query(query)
        self.rules.check_certifiable()
        if not callable(metric):
            raise TypeError(f"metric must be a function of (response, references), got {type(metric).__name__}")
        sizes: Any = (corruption_size,) if _is_one(corruption_size) else corruption_size
        question = Question(
            query,
            as_passages(passages),
            tuple(references_of(reference)),
            metric_name(metric),
            tuple(sizes),
            group_size=self.group_size,
            group_by=self.group_by,
            **options,
        )
        return self.certification_run(self._with_kept(question, answer, choices), metric, choices)

    def _inputs(self, query: str, groups: tuple[PassageGroup, ...], choices: Sequence[str] | None) -> PlanInput:
        model = getattr(self, "model", None)
        return PlanInput(
            query,
            groups,
            choices,
            self.rules,
            model_caveats=lambda: getattr(model, "warnings", ()),
            repeats=Repeats if model is None else partial(repeats_of, model),
            accept_sampling=self.accept_sampling,
        )

    @classmethod
    def whole_plan(cls, inputs: PlanInput, settings: Any) -> Plan:
        """Return the plan of one question's whole answer; every driver and framework runs it.

        Args:
            inputs: the question and its groups.
            settings: of `settings_type`.

        Raises:
            TypeError, ValueError: choices that are missing or invalid, or that the method does not take.
        """
        cls.check_rules(inputs.rules)
        settings = cls.settings_under(inputs.rules, settings)
        groups, notes = inputs.rules.counted(inputs.groups)
        if notes or groups != inputs.groups:
            inputs = replace(inputs, groups=groups, caveats=(*inputs.caveats, *notes))
        terms = MethodTerms(cls.method.name, settings.as_dict, cls.promise, cls.isolates)
        return answered(inputs, cls.plan_of(inputs, settings), terms)

    @staticmethod
    @abstractmethod
    def plan_of(inputs: PlanInput, settings: Any) -> Steps[Draft]:
        """Return the method's own part of the plan: it asks, counts, and drafts the answer.

        Args:
            inputs: the question and its groups.
            settings: of `settings_type`.
        """

    @abstractmethod
    def _performer(self) -> Performer: ...


def _is_one(corruption_size: object) -> bool:
    """True if a single size was given, valid or not, rather than several."""
    return isinstance(corruption_size, (int, str, bytes)) or not hasattr(corruption_size, "__iter__")


def from_settings(model: Any, settings: SettingsLike, **given: Any) -> Defense:
    """Build the defence that a settings file describes, around a model.

    Args:
        model: the model to ask; for decoding one that gives probabilities.
        settings: the file, or what `load_settings` gave.
        given: arguments of the method's class, such as `alpha` or `group_by`; they win over the file.

    Raises:
        SettingsError: the file cannot be used.
        ValueError, TypeError: an invalid argument, or a model that does not give what the method needs.

    Example:
        >>> defense = from_settings(CallableModel(my_llm), "settings.yaml")
        >>> defense.answer("Who won?", passages)
    """
    saved = load_settings(settings)
    made: Defense = METHODS[saved.aggregation].build(model, settings=saved, **given)
    return made


class TextDefense(Defense):
    """A defence that needs only text from the model."""

    def __init__(self, model: TextModel, **given: Any) -> None:
        super().__init__(**given)
        if not isinstance(model, TextModel):
            raise TypeError(
                f"the model must be a CallableModel, a LocalModel or another TextModel, got {type(model).__name__}; "
                "wrap a function from prompt to text as CallableModel(fn)"
            )
        self.model = model

    def _performer(self) -> TextPerformer:
        return TextPerformer(self.model)
