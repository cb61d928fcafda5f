"""The front door of all defences: check the input, isolate, run the plan.

1. `__init__` splits its arguments into vote rules (`VoteRules`) and settings of the method (`settings_type`).
2. `plan` puts the passages into sources (`VoteRules.isolate`); `whole_plan` counts votes, runs the method's own
   `plan_of` and adds what all answers have (`plans/finish.py`): every driver and framework runs it. `trusted_plan`
   reads trusted passages together before it (`defenses/trust.py`).
3. `answer`, `aanswer`, `stream` and `astream` run it with a `Performer`; `certify` runs `certification_run`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from functools import partial
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, overload

from robustrag_integrations._util.checks import check_flag
from robustrag_integrations._util.settings import settings_in
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.answers.determinism import Promise
from robustrag_integrations.certification.certify import CertificationRun, text_run
from robustrag_integrations.certification.findings import Asking, Findings, Question
from robustrag_integrations.certification.metrics import Metric, contains_answer, metric_name, references_of
from robustrag_integrations.certification.result import Certification
from robustrag_integrations.defenses.registry import METHODS, Method, described, rules_and_settings
from robustrag_integrations.defenses.settings import MethodSettings
from robustrag_integrations.defenses.trust import certificate_of_trust, trust_first
from robustrag_integrations.defenses.voting.options import check_choices
from robustrag_integrations.grouping.passages import Passage, Source, as_passages
from robustrag_integrations.grouping.votes import RULES, VOTES, VoteRules
from robustrag_integrations.models.base import TextModel
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
from robustrag_integrations.plans.finish import Draft, answered
from robustrag_integrations.plans.requests import Plan, Retrieve, Steps

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from robustrag_integrations.defenses.options import CertifyOptions

Passages: TypeAlias = Iterable[str | Passage]
Choices: TypeAlias = Sequence[str] | None
References: TypeAlias = str | Sequence[str]
Sizes: TypeAlias = int | Sequence[int]

_OPTIONS = "        options: the settings of the method:"
_SHARED = """\
        accept_sampling: you know that the model may answer otherwise another time: no warning repeats it, while
            `answer.determinism` still says what holds.
        votes: the rules of voting, `VoteRules(...)`; or its fields by name."""


class Defense(ABC):
    """A defence: isolate, ask, aggregate, answer. Subclasses say how with settings, a plan and what performs it.

    Attributes:
        settings_type: a frozen dataclass whose fields are its settings; it names the method.
        promise: the part of a run that the method's radius fixes if its model draws at random; None: nothing.
        isolates: False for a baseline that shows passages together, of whose sources nothing is told.
        decides_early: True if it can prove an answer before all sources have said something.
    """

    __signature__: ClassVar[Signature]
    method: ClassVar[Method]
    settings_type: ClassVar[type[MethodSettings]]
    promise: ClassVar[Promise | None] = None
    isolates: ClassVar[bool] = True
    decides_early: ClassVar[bool] = False
    model: Any
    settings: Any  # of `settings_type`

    def __init_subclass__(cls) -> None:
        """Find the method; name what all methods take, and its settings, in the docstring and the signature."""
        if "settings_type" in vars(cls):
            if "method" not in vars(cls):
                cls.method = cls.settings_type.method
            own = described(settings_in(cls.settings_type), " " * 12)
            cls.__doc__ = (cls.__doc__ or "").replace(_OPTIONS, f"{_SHARED}\n{_OPTIONS}\n{own}")
            cls.__signature__ = _signature(cls)

    def __init__(self, **given: Any) -> None:
        self.accept_sampling = given.pop("accept_sampling", False)
        check_flag(accept_sampling=self.accept_sampling)
        votes = given.pop("votes", None)
        self.method.check_names(given, (*VOTES, "votes", "task", "prompts"))
        self.rules, settings = rules_and_settings(given, votes)
        self.check_rules(self.rules)
        self.settings = self.settings_of(**settings)

    @classmethod
    def settings_of(cls, **given: Any) -> Any:
        """Return the settings, checked, from the user's; None stands for the default."""
        return cls.settings_type(**given)

    @classmethod
    def check_rules(cls, rules: VoteRules) -> None:
        """Raise ValueError if the method cannot count votes by these rules."""
        if rules.stop_when_decided and not cls.decides_early:
            able = " or ".join(m.class_name for m in METHODS.values() if m.load().decides_early)
            raise ValueError(f"{cls.__name__} needs what all sources say, and takes no stop_when_decided; use {able}")

    def plan(self, query: str, passages: Passages, *, trusted: Passages | None = None, choices: Choices = None) -> Plan:
        """The defence as a generator that yields requests and receives replies, for drivers of your own."""
        check_query(query)

        def found() -> PlanInput:
            return self._inputs(query, self.rules.isolate(passages), choices)

        if trusted is None:
            return self.whole_plan(found(), self.settings)
        return self.trusted_plan(self._inputs(query, shelf_of(trusted), choices), self.settings, Retrieve(found))

    def _inputs(self, query: str, sources: tuple[Source, ...], choices: Choices) -> PlanInput:
        return PlanInput(query, sources, choices, self.rules, model=self.model, accept_sampling=self.accept_sampling)

    def answer(
        self, query: str, passages: Passages, *, trusted: Passages | None = None, choices: Choices = None
    ) -> RobustAnswer:
        """Answer a question from retrieved passages.

        Args:
            query: the question; trusted.
            passages: the retrieved passages that anybody may have written, best first; asked one by one. None at all
                gives an abstention. With trusted ones nothing of these is looked at before the trusted ones are silent.
            trusted: passages that only people write whom you trust, best first. They are read together, as in plain
                RAG; if they hold the answer, no other passage changes it. Trust is this argument, and no mark on a
                passage. None: there are no trusted passages; an empty list: the search for some found nothing, which is
                a failure (`when_empty`).
            choices: the options of a multiple-choice question, for defences that vote.

        Raises:
            TypeError, ValueError: bad input, named in the message.
            TrustedError: the trusted passages gave no answer that can be read (`when_trusted_fails`).
            QuorumError: too many sources failed.
            ModelError: the final call failed.
        """
        return run(self.plan(query, passages, trusted=trusted, choices=choices), self._performer())

    async def aanswer(
        self, query: str, passages: Passages, *, trusted: Passages | None = None, choices: Choices = None
    ) -> RobustAnswer:
        """`answer` without blocking the event loop; cancelling it cancels the model calls."""
        plan = self.plan(query, passages, trusted=trusted, choices=choices)
        return await arun(plan, self._performer().aperform)

    def stream(
        self, query: str, passages: Passages, *, trusted: Passages | None = None, choices: Choices = None
    ) -> AnswerStream:
        """Yield the answer in pieces; `.answer` holds the whole. No isolated response is ever shown.

        A trusted answer comes as the model writes it, once it can no longer be the phrase of silence.
        """
        plan = self.plan(query, passages, trusted=trusted, choices=choices)
        return AnswerStream(stream(plan, self._performer()))

    def astream(
        self, query: str, passages: Passages, *, trusted: Passages | None = None, choices: Choices = None
    ) -> AsyncAnswerStream:
        """`stream` for `async for`."""
        plan = self.plan(query, passages, trusted=trusted, choices=choices)
        return AsyncAnswerStream(astream(plan, self._performer()))

    @overload
    def certify(
        self,
        query: str,
        passages: Passages,
        reference: References,
        *,
        corruption_size: int = 1,
        **options: Unpack[CertifyOptions],
    ) -> Certification: ...

    @overload
    def certify(
        self,
        query: str,
        passages: Passages,
        reference: References,
        *,
        corruption_size: Sequence[int],
        **options: Unpack[CertifyOptions],
    ) -> tuple[Certification, ...]: ...

    def certify(
        self,
        query: str,
        passages: Passages,
        reference: References,
        *,
        corruption_size: Sizes = 1,
        **options: Unpack[CertifyOptions],
    ) -> Certification | tuple[Certification, ...]:
        """Certify a question: whatever a bounded attacker writes, its answer scores at least `.tau`.

        Args:
            query: the question; trusted.
            passages: the clean retrieval, best first, before any attack.
            reference: the right answer, or several of which each is right.
            corruption_size: k', how many passages the attacker controls at most. A list of sizes gives one certificate
                each, ascending; they share the model's calls.
            options: `trusted` as in `answer`, of which the attacker controls none; `metric` scores the responses;
                `attack` is `"injection"` or `"modification"`; `choices` are the options of a multiple-choice question;
                `top_k`, number of passages that the retrieval returns when it finds enough, default as many as given;
                `max_model_calls`, beyond which nothing is certified.

        Returns:
            A `Certification`; for a list of sizes a tuple of them.

        Raises:
            TypeError, ValueError: bad input, or a model that samples; named in the message.
        """
        found = self._certification(query, passages, reference, corruption_size, **options).run()
        return found[0] if _is_one(corruption_size) else found

    @overload
    async def acertify(
        self,
        query: str,
        passages: Passages,
        reference: References,
        *,
        corruption_size: int = 1,
        **options: Unpack[CertifyOptions],
    ) -> Certification: ...

    @overload
    async def acertify(
        self,
        query: str,
        passages: Passages,
        reference: References,
        *,
        corruption_size: Sequence[int],
        **options: Unpack[CertifyOptions],
    ) -> tuple[Certification, ...]: ...

    async def acertify(
        self,
        query: str,
        passages: Passages,
        reference: References,
        *,
        corruption_size: Sizes = 1,
        **options: Unpack[CertifyOptions],
    ) -> Certification | tuple[Certification, ...]:
        """`certify` without blocking the event loop."""
        found = await self._certification(query, passages, reference, corruption_size, **options).arun()
        return found[0] if _is_one(corruption_size) else found

    def _certification(
        self,
        query: str,
        passages: Passages,
        reference: References,
        corruption_size: Sizes,
        *,
        trusted: Passages | None = None,
        metric: Metric = contains_answer,
        choices: Choices = None,
        **options: Any,
    ) -> CertificationRun:
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
            passages_per_source=self.rules.passages_per_source,
            group_by=self.rules.by,
            **options,
        )
        found = self.certification_run(question, metric, self._checked_choices(choices, self.settings))
        if trusted is None:
            return found
        shelf = self._trusted_inputs(self._inputs(query, shelf_of(trusted), choices), self.settings)
        plan = certificate_of_trust(shelf, self.settings, question, found.plan)
        count = sum(len(source.passages) for source in shelf.sources)
        return replace(found, plan=plan, settings={**found.settings, "trusted": count})

    @abstractmethod
    def certification_run(self, question: Question, metric: Metric, choices: Choices) -> CertificationRun:
        """Return the run that certifies a checked question; TypeError if there is nothing to certify."""

    @classmethod
    def _checked_choices(cls, choices: Choices, settings: MethodSettings) -> Choices:
        if settings.task == "multiple_choice":
            return check_choices(choices)
        if choices is not None:
            able = " or ".join(f"{m.class_name} (method={m.name!r})" for m in METHODS.values() if m.takes_choices)
            raise ValueError(f"{cls.__name__} does not take choices; use {able} for multiple choice")
        return None

    @classmethod
    def whole_plan(cls, inputs: PlanInput, settings: Any) -> Plan:
        """Return the plan of one question's whole answer; every driver and framework runs it."""
        inputs = cls._with_terms(inputs, settings)
        return answered(inputs, cls.plan_of(inputs, settings))

    @classmethod
    def trusted_plan(cls, inputs: PlanInput, settings: Any, others: Retrieve) -> Plan:
        """Return the plan of a question with trusted passages: the one source of `inputs`, or none."""
        inputs = cls._trusted_inputs(inputs, settings)
        return trust_first(inputs, settings, others, partial(cls.whole_plan, settings=settings))

    @classmethod
    def _trusted_inputs(cls, inputs: PlanInput, settings: Any) -> PlanInput:
        if not cls.isolates:
            raise ValueError(
                f"{cls.__name__} reads all passages together; give it the trusted ones among them, and no trusted="
            )
        if settings.prompts.trusted is None:
            raise ValueError(
                "your PromptSet has no prompt for trusted passages; give it one: PromptSet(..., trusted=PromptTemplate("
                '...)), which asks for an answer of any form, or for "I don\'t know" and nothing else'
            )
        return cls._with_terms(inputs, settings)

    @classmethod
    def _with_terms(cls, inputs: PlanInput, settings: Any) -> PlanInput:
        """Return the input with what its plan has to know of the method."""
        shown = {} if settings.abstention is None else {"abstention": settings.abstention}
        return replace(
            inputs,
            choices=cls._checked_choices(inputs.choices, settings),
            abstention=settings.abstention,
            method=cls.method.name,
            settings={**settings.as_dict(), **shown},
            promise=cls.promise,
            isolates=cls.isolates,
        )

    @staticmethod
    @abstractmethod
    def plan_of(inputs: PlanInput, settings: Any) -> Steps[Draft]:
        """Return the method's own part of the plan: it asks, counts, and drafts the answer."""

    @abstractmethod
    def _performer(self) -> Performer: ...


def shelf_of(trusted: Passages) -> tuple[Source, ...]:
    """Return trusted passages as one source, which is read together; none where none was found."""
    passages = as_passages(trusted, "trusted")
    return (Source(0, passages, ranks=tuple(range(len(passages)))),) if passages else ()


def _signature(defense: type[Defense]) -> Signature:
    """Return the constructor's signature: its own parameters, the settings and the rules of voting, with defaults."""
    own = [p for p in signature(defense.__init__).parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
    types = {f.name: f.type for f in (*fields(defense.settings_type), *fields(VoteRules))}
    types |= {"votes": "VoteRules | None", "accept_sampling": "bool"}
    defaults = {"task": None, "prompts": None, **{s.name: s.default for s in settings_in(defense.settings_type)}}
    if defense.isolates:
        defaults |= {"votes": None, **{name: RULES[name].default for name in VOTES}, "accept_sampling": False}
    named = (
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=types[name])
        for name, default in defaults.items()
    )
    return Signature([*own[1:], *named])


def _is_one(corruption_size: object) -> bool:
    return isinstance(corruption_size, (int, str, bytes)) or not hasattr(corruption_size, "__iter__")


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

    @classmethod
    def certification_plan(
        cls, question: Question, settings: Any, choices: Choices = None, *, same_batches: bool = False
    ) -> Asking[tuple[Findings, ...]]:
        """Return the plan of the method's certificate; TypeError if it has none."""
        listed = [m.class_name for m in METHODS.values()]
        raise TypeError(
            f"{cls.__name__} cannot be certified: any passage may decide its answer; use "
            f"{', '.join(listed[:-1])} or {listed[-1]}"
        )

    def certification_run(self, question: Question, metric: Metric, choices: Choices) -> CertificationRun:
        """Return the run that certifies a checked question."""
        batches = self.model.shares_batches
        plan = self.certification_plan(question, self.settings, choices, same_batches=batches)
        return text_run(self.method.name, question, plan, self.model, metric, self.settings.as_dict())

    def _performer(self) -> TextPerformer:
        return TextPerformer(self.model)
