"""The plan and the settings of decoding aggregation (paper, section III-C, Algorithm 2).

score every source's prompt, and the question alone    `OpenSession`
leave out sources that abstain                         line 3, `who_answers`
sum the others' distributions, choose a token         lines 8-14, `token_choice.py`
append it to every prompt, until the answer ends      `Append`, `extend`
The radius is the smallest of the steps'.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from robustrag_integrations._util.settings import setting
from robustrag_integrations.answers.answer import SourceReport
from robustrag_integrations.defenses.decoding.token_choice import (
    ONE,
    FixedPoint,
    TokenChoice,
    choose_token,
    fixed_point,
    is_decided,
    most_probable,
    step_radius,
)
from robustrag_integrations.defenses.registry import METHODS, Method
from robustrag_integrations.defenses.settings import MethodSettings
from robustrag_integrations.grouping.passages import Source
from robustrag_integrations.models.base import Distributions, Opening, Response, TokenCodec
from robustrag_integrations.models.detokenizer import IncrementalDetokenizer, spelt
from robustrag_integrations.plans.asking import PlanInput, report
from robustrag_integrations.plans.finish import Draft
from robustrag_integrations.plans.requests import Append, Emit, OpenSession, Sharpen, Steps
from robustrag_integrations.text.abstention import is_abstention
from robustrag_integrations.text.prompts import ABSTENTION, Prompt

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ROWS_MOVE = "probabilities of this model can move for the same prompt (`numerics` of the model says why)"


@dataclass(frozen=True, kw_only=True)
class DecodingSettings(MethodSettings):
    """Everything that decides a decoding aggregation apart from the model."""

    method: ClassVar[Method] = METHODS["decoding"]

    gamma: float = setting(
        0.99,
        'probability of abstaining, of the whole "I don\'t know", from which a source is left out',
        least=0,
        most=1,
        threshold=True,
    )
    eta: float = setting(
        0.0,
        "lead of the best token, between sums of probabilities, up to which the token without retrieval is taken; "
        "above 0 for long answers",
        least=0,
        below=1000,
        threshold=True,
    )
    max_new_tokens: int = setting(30, "longest answer, T_max", long_form=500, least=1)
    stop: tuple[str, ...] = setting(
        ("\n",), "strings that end the answer: a line break, or an empty line", long_form=("\n\n",)
    )
    slack: float = setting(
        2.0**-10, "margin of every comparison of the radius, for float noise between runs", least=0, below=1000
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.stop, str) or not all(isinstance(s, str) and s for s in self.stop):
            raise TypeError(f"stop must be a list of non-empty str, got {self.stop!r}")
        self._set(gamma=float(self.gamma), stop=tuple(self.stop))

    @property
    def eta_units(self) -> int:
        """Eta in units of 2**-40."""
        return round(self.eta * ONE)

    @property
    def slack_units(self) -> int:
        """The slack in units of 2**-40."""
        return round(self.slack * ONE)

    def isolated_prompts(self, query: str, sources: Sequence[Source]) -> tuple[Prompt, ...]:
        """One prompt per source."""
        return tuple(self.prompts.isolated.render(context=g.text, query=query) for g in sources)

    def no_retrieval_prompt(self, query: str) -> Prompt:
        """The question without passages."""
        return self.prompts.no_retrieval.render(query=query)

    def as_dict(self) -> dict[str, Any]:
        """The settings, JSON-safe, as answers and certificates name them."""
        return {
            "gamma": self.gamma,
            "eta": self.eta_units / ONE,
            "slack": self.slack_units / ONE,
            "max_new_tokens": self.max_new_tokens,
            "stop": list(self.stop),
            "task": self.task,
        }


def decoding_plan(inputs: PlanInput, settings: DecodingSettings, codec: TokenCodec) -> Steps[Draft]:
    """Algorithm 2: decode one answer from the sum of all answering sources' next-token distributions."""
    sources = inputs.sources
    text = IncrementalDetokenizer(codec, settings.stop, before_marks=True)
    told = _Told()
    live = not all(g.is_empty for g in sources)
    if live:
        prompts = settings.isolated_prompts(inputs.query, sources)
        no_retrieval = settings.no_retrieval_prompt(inputs.query)
        opening = yield OpenSession(prompts, no_retrieval, settings.max_new_tokens)
        assert isinstance(opening, Opening)  # noqa: S101 - what drivers reply to OpenSession
        distributions = opening.distributions
        most_probable(distributions.no_retrieval)  # a broken model is an error, not an abstention
        told.truncated, told.failures = opening.truncated, distributions.failures
        told.answering = who_answers(sources, opening.abstention, settings.gamma)
        told.radius = max(len(told.answering) - 1, 0)
        while told.answering:
            step, distributions = yield from _step(distributions, told.answering, settings)
            told.take(step, distributions, settings)
            piece, complete = extend(text, step.choice.token, settings.max_new_tokens)
            if piece:
                yield Emit(piece)
            if complete:
                break
            following = yield Append(step.choice.token)
            assert isinstance(following, Distributions)  # noqa: S101 - what drivers reply to Append
            distributions = following
        # Noise may do to sources next to gamma what an attacker does to others.
        told.radius = max(0, told.radius - len(unsettled(sources, opening.abstention, settings)))
    if piece := text.finish():
        yield Emit(piece)
    emitted = [choice.token for choice in told.choices]
    rivals = [choice.runner_up if choice.token == choice.top else choice.top for choice in told.choices]
    answer = inputs.answer(
        text.shown,
        radius=told.radius,
        abstained=is_abstention(text.shown or ABSTENTION),
        sources=tuple(_reports(sources, told, text, codec)),
        warnings=tuple(_warnings(told, text, settings)),
        evidence={
            "answering": len(told.answering),
            "gaps": [round(choice.gap / ONE, 6) for choice in told.choices],
            "tokens": list(text.tokens),
            "words": [spelt(codec, emitted[:t], token) for t, token in enumerate(emitted)],
            "rivals": [spelt(codec, emitted[:t], token) for t, token in enumerate(rivals)],
        },
        model_calls=len(sources) + 1 if live else 0,
    )
    return Draft(answer, truncated=told.truncated)


def who_answers(sources: Sequence[Source], abstention: NDArray[np.floating], gamma: float) -> list[int]:
    """Return J, the sources whose probability of the whole abstention string is below gamma (Algorithm 2, line 3).

    One without a probability (NaN) is not below it; an empty one abstains whatever the model makes of an empty prompt.
    """
    return [j for j, p in enumerate(abstention) if float(p) < gamma and not sources[j].is_empty]


def unsettled(sources: Sequence[Source], abstention: NDArray[np.floating], settings: DecodingSettings) -> set[int]:
    """Return the sources for which float noise, up to the slack, decides whether they answer."""
    slack = settings.slack_units / ONE
    fewer, more = (set(who_answers(sources, abstention, settings.gamma + shift)) for shift in (-slack, slack))
    return more - fewer


def extend(text: IncrementalDetokenizer, token: int, max_new_tokens: int) -> tuple[str, bool]:
    """Add a chosen token to the answer; return the piece that can be shown now, and whether the answer is complete."""
    if text.codec.is_end(token):
        return "", True
    piece = text.add(token)
    return piece, text.stopped or len(text.tokens) == max_new_tokens


@dataclass(frozen=True)
class _Step:
    """One decoding step, from the [n, V] scores of the answering sources.

    Attributes:
        fallback: the no-retrieval token.
        error: a bound on the error of any gap between two sums, where the model listed only some of the tokens.
        decided: True if the probabilities of all tokens would give the same token.
    """

    scores: FixedPoint
    fallback: int
    choice: TokenChoice
    error: int
    decided: bool


def _chosen(distributions: Distributions, answering: Sequence[int], eta: int) -> _Step:
    scores, fallback = fixed_point(distributions.sources[list(answering)]), most_probable(distributions.no_retrieval)
    untold = sum(distributions.unlisted[j] for j in answering) if distributions.unlisted else 0.0
    choice, error = choose_token(scores, fallback, eta), math.ceil(untold * ONE)
    return _Step(scores, fallback, choice, error, not error or is_decided(choice, fallback, eta, error))


def _step(
    distributions: Distributions, answering: Sequence[int], settings: DecodingSettings
) -> Steps[tuple[_Step, Distributions]]:
    """Decode one step; where the model's top-K list leaves the choice open, ask it for a longer one.

    Where a shorter list decides a choice, all probabilities would decide it alike. Only the longest list there is may
    leave a step undecided, and its length is the model's own. So no passage has a say in which lists are used.
    """
    step = _chosen(distributions, answering, settings.eta_units)
    while not step.decided:
        more = yield Sharpen()
        if not isinstance(more, Distributions):
            break
        distributions, step = more, _chosen(more, answering, settings.eta_units)
    return step, distributions


@dataclass
class _Told:
    """What the steps so far say.

    Attributes:
        answering: the sources whose rows are summed.
        moved: True if other sources' content may move a probability.
        undecided: number of steps that a top-K list leaves open.
        own: per step and answering source, the token it would have said.
    """

    answering: list[int] = field(default_factory=list)
    truncated: tuple[bool, ...] = ()
    failures: tuple[str | None, ...] = ()
    radius: int = 0
    moved: bool = False
    undecided: int = 0
    choices: list[TokenChoice] = field(default_factory=list)
    own: list[list[int]] = field(default_factory=list)

    def take(self, step: _Step, distributions: Distributions, settings: DecodingSettings) -> None:
        """Take in one step."""
        self.failures = distributions.failures or self.failures
        self.moved = self.moved or distributions.moved > 0
        self.undecided += not step.decided
        slack = settings.slack_units + step.error
        self.radius = (
            0
            if distributions.moved
            else step_radius(step.scores, step.choice, step.fallback, settings.eta_units, slack, self.radius)
        )
        self.choices.append(step.choice)
        self.own.append(step.scores.argmax(axis=1).tolist())


def _warnings(told: _Told, text: IncrementalDetokenizer, settings: DecodingSettings) -> Iterator[str]:
    if told.undecided:
        yield (
            f"at {told.undecided} of {len(told.choices)} steps the top-K list of the model does not decide which token "
            "is best, so the radius is 0; ask for a longer list (top_logprobs)"
        )
    if told.moved:
        yield f"the radius is 0: {ROWS_MOVE}"
    if text.reasons:
        yield (
            "the model began to reason, and decoding ended before that: turn reasoning off in its chat template "
            "(template_options=), or take keyword aggregation, which leaves reasoning out"
        )
    elif len(text.tokens) == settings.max_new_tokens and not text.stopped:
        yield f"the answer is incomplete: it was cut after max_new_tokens={settings.max_new_tokens}"


def _reports(
    sources: Sequence[Source], told: _Told, text: IncrementalDetokenizer, codec: TokenCodec
) -> Iterator[SourceReport]:
    """A source supports the answer if its own next token was the emitted one at every step."""
    tokens, answering = text.tokens, told.answering
    for source in sources:
        cut = bool(told.truncated) and told.truncated[source.index]
        if told.failures and (why := told.failures[source.index]) is not None:
            yield report(source, Response(None, why, cut))
            continue
        if source.index not in answering:
            yield report(source, truncated=cut)
            continue
        own = [each[answering.index(source.index)] for each in told.own]
        departed = next((t for t, token in enumerate(own) if token != told.choices[t].token), None)
        if departed is None:
            words = (text.shown,) if text.shown else ()
            said = codec.decode(list(tokens)).strip()
            yield report(source, status="supports", response=said, words=words, truncated=cut)
            continue
        token = own[departed]
        said = codec.decode([*tokens[:departed], *([] if codec.is_end(token) else [token])]).strip()
        yield report(source, status="differs", response=said + " …", truncated=cut)
