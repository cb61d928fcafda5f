"""Secure decoding aggregation (paper, section III-C, Algorithm 2)."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from robustrag_integrations.abstention import is_abstention
from robustrag_integrations.answer import GroupReport, RobustAnswer
from robustrag_integrations.checks import check_at_least_one
from robustrag_integrations.defenses.base import Defense
from robustrag_integrations.defenses.decoding.token_choice import (
    ONE,
    Scores,
    TokenChoice,
    choose_token,
    fixed_point,
    is_decided,
    most_probable,
    step_radius,
)
from robustrag_integrations.models.base import DecodingModel, Distributions, Opening, Response, TokenCodec
from robustrag_integrations.models.token_text import TokenText, spelt
from robustrag_integrations.passages import GroupBy, Passage, PassageGroup, grouping_warnings
from robustrag_integrations.plans.asking import report, truncation_warnings
from robustrag_integrations.plans.drivers import DecodingPerformer, astream, stream
from robustrag_integrations.plans.requests import Append, Emit, OpenSession, Plan, Reply, Request, Sharpen
from robustrag_integrations.prompts import ABSTENTION, Prompt, PromptSet, Task, prompts_for

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from numpy.typing import NDArray

    from robustrag_integrations.certification.certify import CertificationRun
    from robustrag_integrations.certification.findings import Question
    from robustrag_integrations.certification.result import Certification
    from robustrag_integrations.metrics import Metric

DEFAULT_SLACK = 2.0**-10


@dataclass(frozen=True)
class DecodingSettings:
    """Everything that decides a decoding aggregation apart from the model.

    Attributes:
        gamma: a group whose probability of the abstention string reaches gamma is left out.
        eta: probability gap up to which the no-retrieval token is emitted, in units of 2**-40.
        slack: what each comparison of the radius is widened by, in units of 2**-40.
        max_new_tokens: T_max.
        stop: strings that end the answer.
        task: `short_answer` or `long_form`.
        prompts: what the model is asked.
    """

    gamma: float
    eta: int
    slack: int
    max_new_tokens: int
    stop: tuple[str, ...]
    task: Task
    prompts: PromptSet

    @classmethod
    def of(
        cls,
        *,
        gamma: float = 0.99,
        eta: float = 0.0,
        max_new_tokens: int | None = None,
        stop: Sequence[str] | None = None,
        task: Task = "short_answer",
        prompts: PromptSet | None = None,
        slack: float = DEFAULT_SLACK,
    ) -> DecodingSettings:
        """From user arguments; see `DecodingAggregation` for their meaning.

        Raises:
            ValueError, TypeError: an argument makes no sense; the message names it and the fix.
        """
        if task not in ("short_answer", "long_form"):
            raise ValueError(
                f"task={task!r}: decoding aggregation does 'short_answer' and 'long_form'; "
                "use MajorityVoting for multiple choice"
            )
        if not _is_number(gamma) or not 0 <= gamma <= 1:
            raise ValueError(f"gamma={gamma!r} must be a probability in [0, 1]")
        if not _is_number(eta) or not 0 <= eta < 1000:
            raise ValueError(f"eta={eta!r} must be at least 0 (and below 1000): a gap between sums of probabilities")
        if not _is_number(slack) or not 0 <= slack < 1000:
            raise ValueError(f"slack={slack!r} must be at least 0 (and below 1000)")
        limit = max_new_tokens if max_new_tokens is not None else (500 if task == "long_form" else 30)
        check_at_least_one(max_new_tokens=limit)
        stops = stop if stop is not None else (("\n\n",) if task == "long_form" else ("\n",))
        if isinstance(stops, str) or not all(isinstance(s, str) and s for s in stops):
            raise TypeError(f"stop must be a list of non-empty str, got {stop!r}")
        return cls(
            float(gamma),
            round(eta * ONE),
            round(slack * ONE),
            limit,
            tuple(stops),
            task,
            prompts or prompts_for(task),
        )

    def isolated_prompts(self, query: str, groups: Sequence[PassageGroup]) -> tuple[Prompt, ...]:
        """One prompt per group."""
        return tuple(self.prompts.isolated.render(context=g.text, query=query) for g in groups)

    def no_retrieval_prompt(self, query: str) -> Prompt:
        """The question without passages."""
        return self.prompts.no_retrieval.render(query=query)

    def as_dict(self) -> dict[str, Any]:
        """The settings, JSON-safe, as answers and certificates name them."""
        return {
            "gamma": self.gamma,
            "eta": self.eta / ONE,
            "slack": self.slack / ONE,
            "max_new_tokens": self.max_new_tokens,
            "stop": list(self.stop),
            "task": self.task,
        }


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def answering_groups(abstention: NDArray[np.floating], gamma: float) -> list[int]:
    """J, the groups whose probability of the whole abstention string is below gamma (Algorithm 2, line 3).

    A group without a probability (NaN) is not below it.
    """
    return [j for j, p in enumerate(abstention) if float(p) < gamma]


@dataclass(frozen=True)
class DecodingStep:
    """One step: what was chosen from which scores, and how sure it is.

    Attributes:
        scores: [n, V] fixed-point distributions of the answering groups.
        fallback: the no-retrieval token.
        choice: the token.
        error: how much any gap between two sums may be off, since the model told only some of the tokens.
    """

    scores: Scores
    fallback: int
    choice: TokenChoice
    error: int

    def decided(self, eta: int) -> bool:
        """Whether the token is the one that all probabilities would have given."""
        return not self.error or is_decided(self.choice, self.fallback, eta, self.error)


@dataclass(frozen=True)
class _Noted:
    """What is kept of a step for the reports."""

    choice: TokenChoice
    own_tokens: tuple[int, ...]  # per answering group, the token it would have said
    lags: tuple[int, ...]  # per answering group, how far that token's sum lies behind the best sum, units of 2**-40


def choose_step(distributions: Distributions, answering: Sequence[int], eta: int) -> DecodingStep:
    """One step of decoding.

    The no-retrieval token is the most probable one, the lowest id among equals.
    """
    scores = fixed_point(distributions.groups[list(answering)])
    fallback = most_probable(distributions.no_retrieval)
    untold = sum(distributions.unlisted[j] for j in answering) if distributions.unlisted else 0.0
    return DecodingStep(scores, fallback, choose_token(scores, fallback, eta), math.ceil(untold * ONE))


def _step(
    distributions: Distributions, answering: Sequence[int], eta: int
) -> Generator[Request, Reply, tuple[DecodingStep, Distributions]]:
    """One step of decoding; where tokens that the model has not told leave the choice open, it is asked for more.

    What a lesser list decides, all probabilities would decide alike; only the longest list there is may leave a step
    undecided, and its length is the model's own. So no passage has a say in which lists are used.
    """
    step = choose_step(distributions, answering, eta)
    while not step.decided(eta):
        more = yield Sharpen()
        if not isinstance(more, Distributions):
            break
        distributions, step = more, choose_step(more, answering, eta)
    return step, distributions


def who_answers(groups: Sequence[PassageGroup], abstention: NDArray[np.floating], gamma: float) -> list[int]:
    """J as places in `groups`: below gamma, and with something to read, whatever the model makes of an empty prompt."""
    return [j for j in answering_groups(abstention, gamma) if not groups[j].is_empty]


def unsettled(groups: Sequence[PassageGroup], abstention: NDArray[np.floating], settings: DecodingSettings) -> set[int]:
    """The groups of which float noise, up to the slack, decides whether they answer."""
    slack = settings.slack / ONE
    fewer, more = (set(who_answers(groups, abstention, settings.gamma + shift)) for shift in (-slack, slack))
    return more - fewer


def extend(text: TokenText, token: int, max_new_tokens: int) -> tuple[str, bool]:
    """Add a chosen token to the answer: the piece that can be shown now, and whether the answer is complete."""
    if text.codec.is_end(token):
        return "", True
    piece = text.add(token)
    return piece, text.stopped or len(text.tokens) == max_new_tokens


def decoding_plan(
    query: str,
    groups: Sequence[PassageGroup],
    settings: DecodingSettings,
    codec: TokenCodec,
    *,
    group_by: GroupBy | None = None,
    model_warnings: Sequence[str] = (),
) -> Plan:
    """Algorithm 2: decode one answer from the sum of all answering groups' next-token distributions."""
    text = TokenText(codec, settings.stop)
    steps: list[_Noted] = []
    undecided = 0
    failures: tuple[str | None, ...] = ()
    answering: list[int] = []
    truncated: tuple[bool, ...] = ()
    radius = wavering = 0
    live = [g for g in groups if not g.is_empty]
    if live:
        prompts = settings.isolated_prompts(query, groups)
        opening = yield OpenSession(prompts, settings.no_retrieval_prompt(query), settings.max_new_tokens)
        assert isinstance(opening, Opening)  # noqa: S101 - what drivers reply to OpenSession
        most_probable(opening.distributions.no_retrieval)  # a broken model is an error, not an abstention
        truncated, failures = opening.truncated, opening.distributions.failures
        answering = who_answers(groups, opening.abstention, settings.gamma)
        radius = max(len(answering) - 1, 0)
        wavering = len(unsettled(groups, opening.abstention, settings))
        distributions = opening.distributions
        while answering:
            step, distributions = yield from _step(distributions, answering, settings.eta)
            failures = distributions.failures or failures
            undecided += not step.decided(settings.eta)
            slack = settings.slack + step.error
            radius = step_radius(step.scores, step.choice, step.fallback, settings.eta, slack, radius)
            steps.append(_noted(step))
            piece, complete = extend(text, step.choice.token, settings.max_new_tokens)
            if piece:
                yield Emit(piece)
            if complete:
                break
            told = yield Append(step.choice.token)
            assert isinstance(told, Distributions)  # noqa: S101 - what drivers reply to Append
            distributions = told
    if piece := text.finish():
        yield Emit(piece)
    final = text.shown
    if not final:
        final = ABSTENTION
        yield Emit(final)
    return RobustAnswer(
        text=final,
        radius=max(0, radius - wavering),  # noise may do to these groups what an attacker does to others
        abstained=is_abstention(final),
        query=query,
        defense="decoding",
        groups=tuple(_reports(groups, answering, steps, text.tokens, codec, truncated, failures)),
        warnings=(
            *model_warnings,
            *grouping_warnings(groups, group_by),
            *truncation_warnings(truncated),
            *_undecided_warnings(undecided, len(steps)),
        ),
        settings=settings.as_dict(),
        evidence={
            "answering": len(answering),
            "gaps": [round(s.choice.gap / ONE, 6) for s in steps],
            "indecisive_steps": sum(s.choice.indecisive for s in steps),
            "tokens": list(text.tokens),
            **_spelt_out(codec, steps),
        },
        margin_unit="probability",
        model_calls=len(groups) + 1 if live else 0,
    )


def _noted(step: DecodingStep) -> _Noted:
    own = step.scores.argmax(axis=1)
    total = step.scores.sum(axis=0)
    best = int(total[step.choice.top])
    return _Noted(step.choice, tuple(own.tolist()), tuple((best - total[own]).tolist()))


def _spelt_out(codec: TokenCodec, steps: Sequence[_Noted]) -> dict[str, list[Any]]:
    """The steps for readers: what was emitted, the best of what was not, and where the no-retrieval token was taken."""
    choices = [step.choice for step in steps]
    emitted = [c.token for c in choices]
    rivals = [c.runner_up if c.token == c.top else c.top for c in choices]
    return {
        "words": [spelt(codec, emitted[:t], token) for t, token in enumerate(emitted)],
        "rivals": [spelt(codec, emitted[:t], token) for t, token in enumerate(rivals)],
        "fallback_steps": [t for t, c in enumerate(choices) if c.indecisive],
    }


def _undecided_warnings(undecided: int, steps: int) -> tuple[str, ...]:
    if not undecided:
        return ()
    return (
        f"at {undecided} of {steps} steps the tokens that the model told do not decide which one is best, so the "
        "radius is 0; have it tell more of them (top_logprobs)",
    )


def _reports(
    groups: Sequence[PassageGroup],
    answering: Sequence[int],
    steps: Sequence[_Noted],
    tokens: Sequence[int],
    codec: TokenCodec,
    truncated: Sequence[bool],
    failures: Sequence[str | None],
) -> Iterator[GroupReport]:
    """A group supports the answer if its own next token was the emitted one at every step."""
    for group in groups:
        cut = bool(truncated) and truncated[group.index]
        if failures and (why := failures[group.index]) is not None:
            yield report(group, Response(None, why, cut))
            continue
        if group.index not in answering:
            yield report(group, truncated=cut)
            continue
        row = answering.index(group.index)
        departed = next((t for t, s in enumerate(steps) if s.own_tokens[row] != s.choice.token), None)
        if departed is None:
            yield report(group, status="supports", response=codec.decode(list(tokens)).strip(), truncated=cut)
            continue
        own = steps[departed].own_tokens[row]
        said = codec.decode([*tokens[:departed], *([] if codec.is_end(own) else [own])]).strip()
        lag = steps[departed].lags[row] / ONE
        yield report(group, status="outvoted", response=said + " …", margin=round(lag, 4), truncated=cut)


class DecodingAggregation(Defense):
    """Secure decoding aggregation over a model that gives next-token probabilities.

    Guarantee: replacing the content of any `answer.radius` groups leaves the answer as it is.

    Args:
        model: a `LocalModel`, or another `DecodingModel`.
        gamma: a group is left out when the probability of its whole "I don't know" reaches gamma, in [0, 1].
        eta: when the best token's sum leads by at most eta, the no-retrieval token is taken; 0 for short answers,
            above 0 for long ones.
        max_new_tokens: T_max; default 30, for long form 500.
        stop: strings that end the answer; default a line break, for long form an empty line.
        task: `short_answer` or `long_form`.
        prompts: your own `PromptSet`; None for the project's.
        slack: what every comparison of the radius is widened by, for float noise between runs.
        group_size: omega, adjacent passages per group.
        group_by: `"source"` or a function from Passage to a key, in place of `group_size`.

    Example:
        >>> defense = DecodingAggregation(LocalModel.from_pretrained("my-model"), eta=0.0)
        >>> answer = defense.answer("Who won?", passages)
    """

    def __init__(
        self,
        model: DecodingModel,
        *,
        gamma: float = 0.99,
        eta: float = 0.0,
        max_new_tokens: int | None = None,
        stop: Sequence[str] | None = None,
        task: Task = "short_answer",
        prompts: PromptSet | None = None,
        slack: float = DEFAULT_SLACK,
        group_size: int = 1,
        group_by: GroupBy | None = None,
    ) -> None:
        super().__init__(group_size=group_size, group_by=group_by)
        if not isinstance(model, DecodingModel):
            raise TypeError(
                f"decoding aggregation needs next-token probabilities, which {type(model).__name__} does not give; "
                "use a LocalModel, or KeywordAggregation, which works with any text model"
            )
        self.model = model
        self.settings = DecodingSettings.of(
            gamma=gamma,
            eta=eta,
            max_new_tokens=max_new_tokens,
            stop=stop,
            task=task,
            prompts=prompts,
            slack=slack,
        )

    def _plan(self, query: str, groups: Sequence[PassageGroup], choices: Sequence[str] | None) -> Plan:
        self._refuse_choices(choices)
        codec, warnings = self.model.codec, self.model.warnings
        return decoding_plan(query, groups, self.settings, codec, group_by=self.group_by, model_warnings=warnings)

    def certify_etas(
        self,
        query: str,
        passages: Iterable[str | Passage],
        reference: str | Sequence[str],
        *,
        etas: Iterable[float],
        corruption_sizes: Iterable[int],
        **settings: Any,
    ) -> dict[float, tuple[Certification, ...]]:
        """`certify_sizes` for several values of eta in one walk over the tree: each prefix is scored once for all.

        Args:
            query: the question; trusted.
            passages: the clean retrieval, best first.
            reference: the right answer, or several.
            etas: in place of the defence's own eta.
            corruption_sizes: k', one or several.
            settings: those of `certify`; `max_model_calls` is the limit of the whole walk.

        Returns:
            Per eta, one certificate per corruption size, ascending.

        Raises:
            TypeError, ValueError: bad input; named in the message.
        """
        from robustrag_integrations.certification.certify import prepare_etas

        sizes = corruption_sizes
        return prepare_etas(self, query, passages, reference, etas=etas, corruption_sizes=sizes, **settings).run()

    async def acertify_etas(
        self,
        query: str,
        passages: Iterable[str | Passage],
        reference: str | Sequence[str],
        *,
        etas: Iterable[float],
        corruption_sizes: Iterable[int],
        **settings: Any,
    ) -> dict[float, tuple[Certification, ...]]:
        """`certify_etas` without blocking the event loop."""
        from robustrag_integrations.certification.certify import prepare_etas

        sizes = corruption_sizes
        run = prepare_etas(self, query, passages, reference, etas=etas, corruption_sizes=sizes, **settings)
        return await run.arun()

    def certification_run(self, question: Question, metric: Metric, choices: Sequence[str] | None) -> CertificationRun:
        """Algorithm 4 on this defence's model and settings."""
        from robustrag_integrations.certification.certify import decoding_run

        self._refuse_choices(choices)
        return decoding_run(question, self.settings, self.model, metric)

    def _performer(self) -> DecodingPerformer:
        return DecodingPerformer(self.model)

    def _stream(self, plan: Plan) -> Generator[str | RobustAnswer, None, None]:
        return stream(plan, self._performer(), _never_asked)

    def _astream(self, plan: Plan) -> AsyncGenerator[str | RobustAnswer, None]:
        return astream(plan, self._performer().aperform, _never_asked)


def _never_asked(prompt: Prompt) -> Any:
    raise TypeError("a decoding plan asks no final question")
