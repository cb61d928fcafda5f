"""The plan of decoding aggregation (paper, section III-C, Algorithm 2).

score every group's prompt, and the question alone    `OpenSession`
leave out groups that abstain                         line 3, `step.who_answers`
sum the others' distributions, choose a token         lines 8-14, `token_choice.py`
append it to every prompt, until the answer ends      `Append`, `step.extend`
The radius is the smallest of the steps' (`_radius`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from robustrag_integrations.answers.answer import GroupReport
from robustrag_integrations.defenses.decoding.settings import DecodingSettings
from robustrag_integrations.defenses.decoding.step import (
    DecodingStep,
    choose_step,
    extend,
    largest_shift,
    rows_too_noisy,
    unsettled,
    who_answers,
)
from robustrag_integrations.defenses.decoding.token_choice import (
    NO_TOKEN,
    ONE,
    TokenChoice,
    is_clear,
    most_probable,
    step_radius,
)
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.models.base import Distributions, Opening, Response, TokenCodec
from robustrag_integrations.models.detokenizer import IncrementalDetokenizer, spelt
from robustrag_integrations.plans.asking import PlanInput, report
from robustrag_integrations.plans.finish import Draft
from robustrag_integrations.plans.requests import Append, Emit, OpenSession, Sharpen, Steps
from robustrag_integrations.prompts import ABSTENTION
from robustrag_integrations.text.abstention import is_abstention


def decoding_plan(inputs: PlanInput, settings: DecodingSettings, codec: TokenCodec) -> Steps[Draft]:
    """Algorithm 2: decode one answer from the sum of all answering groups' next-token distributions."""
    query, groups = inputs.query, inputs.rules.with_copies(inputs.groups)
    text = IncrementalDetokenizer(codec, settings.stop, before_marks=True)
    steps: list[_Noted] = []
    undecided, noise = 0, 0.0
    failures: tuple[str | None, ...] = ()
    answering: list[int] = []
    copies: dict[int, int | None] = {}
    truncated: tuple[bool, ...] = ()
    radius = wavering = 0
    live = [g for g in groups if not g.is_empty]
    if live:
        prompts = settings.isolated_prompts(query, groups)
        opening = yield OpenSession(prompts, settings.no_retrieval_prompt(query), settings.max_new_tokens)
        assert isinstance(opening, Opening)  # noqa: S101 - what drivers reply to OpenSession
        most_probable(opening.distributions.no_retrieval)  # a broken model is an error, not an abstention
        truncated, failures = opening.truncated, opening.distributions.failures
        copies = _copies(groups, who_answers(groups, opening.abstention, settings.gamma))
        answering = [place for place, first in copies.items() if first is None]
        radius = max(len(answering) - 1, 0)
        wavering = len(unsettled(groups, opening.abstention, settings))
        distributions = opening.distributions
        while answering:
            step, distributions = yield from _step(distributions, answering, settings)
            failures = distributions.failures or failures
            undecided += not step.decided(settings.eta_units)
            noise = max(noise, distributions.moved)
            radius = _radius(step, distributions, settings, radius)
            steps.append(_noted(step))
            piece, complete = extend(text, step.choice.token, settings.max_new_tokens)
            if piece:
                yield Emit(piece)
            if complete:
                break
            following = yield Append(step.choice.token)
            assert isinstance(following, Distributions)  # noqa: S101 - what drivers reply to Append
            distributions = following
    if piece := text.finish():
        yield Emit(piece)
    answer = inputs.answer(
        text.shown,
        radius=max(0, radius - wavering),  # noise may do to these groups what an attacker does to others
        abstained=is_abstention(text.shown or ABSTENTION),
        groups=tuple(_reports(groups, answering, copies, steps, text, codec, truncated, failures)),
        warnings=(
            *_undecided_warnings(undecided, len(steps)),
            *_noise_warnings(noise, len(answering), settings),
            *_ending_warnings(text, settings),
        ),
        evidence={
            "answering": len(answering),
            "gaps": [round(s.choice.gap / ONE, 6) for s in steps],
            "indecisive_steps": sum(s.choice.indecisive for s in steps),
            "tokens": list(text.tokens),
            **_spelt_out(codec, steps),
        },
        model_calls=len(groups) + 1 if live else 0,
    )
    return Draft(answer, truncated=truncated)


def _copies(groups: Sequence[PassageGroup], answering: Sequence[int]) -> dict[int, int | None]:
    """Map each answering group to the first one with the very same text, if such groups share one vote.

    Their rows are the same then, as a row depends on its own group's text alone.
    """
    said: dict[tuple[int, str], int] = {}
    found: dict[int, int | None] = {}
    for place in answering:
        group = groups[place]
        first = said.setdefault((place if group.copy_of is None else group.copy_of, group.text), place)
        found[place] = None if first == place else first
    return found


def _noted(step: DecodingStep) -> _Noted:
    own = step.scores.argmax(axis=1)
    return _Noted(step.choice, tuple(own.tolist()))


def _spelt_out(codec: TokenCodec, steps: Sequence[_Noted]) -> dict[str, list[Any]]:
    """Return the steps for readers: emitted token, best rival, and where the no-retrieval token was taken."""
    choices = [step.choice for step in steps]
    emitted = [c.token for c in choices]
    rivals = [c.runner_up if c.token == c.top else c.top for c in choices]
    return {
        "words": [spelt(codec, emitted[:t], token) for t, token in enumerate(emitted)],
        "rivals": [spelt(codec, emitted[:t], token) for t, token in enumerate(rivals)],
        "fallback_steps": [t for t, c in enumerate(choices) if c.indecisive],
    }


def _radius(step: DecodingStep, distributions: Distributions, settings: DecodingSettings, limit: int) -> int:
    """The largest r <= limit such that replacing r groups cannot change this step's token."""
    if step.shift > settings.slack_units:
        return 0
    fallback = step.fallback
    if step.shift and not is_clear(distributions.no_retrieval, distributions.noise):
        if step.choice.indecisive:
            return 0
        fallback = NO_TOKEN  # the top token has to be forced
    return step_radius(step.scores, step.choice, fallback, settings.eta_units, settings.slack_units + step.error, limit)


def _ending_warnings(text: IncrementalDetokenizer, settings: DecodingSettings) -> list[str]:
    if text.reasons:
        return [
            "the model began to reason, and decoding ended before that: turn reasoning off in its chat template "
            "(template_options=), or take keyword aggregation, which leaves reasoning out"
        ]
    if len(text.tokens) == settings.max_new_tokens and not text.stopped:
        return [f"the answer is incomplete: it was cut after max_new_tokens={settings.max_new_tokens}"]
    return []


def _noise_warnings(noise: float, answering: int, settings: DecodingSettings) -> tuple[str, ...]:
    if largest_shift(noise, answering) <= settings.slack_units:
        return ()
    return (f"the radius is 0: {rows_too_noisy(noise, settings)}",)


def _undecided_warnings(undecided: int, steps: int) -> tuple[str, ...]:
    if not undecided:
        return ()
    return (
        f"at {undecided} of {steps} steps the top-K list of the model does not decide which token is best, so the "
        "radius is 0; ask for a longer list (top_logprobs)",
    )


def _reports(
    groups: Sequence[PassageGroup],
    answering: Sequence[int],
    copies: Mapping[int, int | None],
    steps: Sequence[_Noted],
    text: IncrementalDetokenizer,
    codec: TokenCodec,
    truncated: Sequence[bool],
    failures: Sequence[str | None],
) -> Iterator[GroupReport]:
    """A group supports the answer if its own next token was the emitted one at every step."""
    tokens = text.tokens
    for group in groups:
        cut = bool(truncated) and truncated[group.index]
        if failures and (why := failures[group.index]) is not None:
            yield report(group, Response(None, why, cut))
            continue
        if group.index not in answering:
            yield report(group, truncated=cut, copy_of=copies.get(group.index))
            continue
        row = answering.index(group.index)
        departed = next((t for t, s in enumerate(steps) if s.own_tokens[row] != s.choice.token), None)
        if departed is None:
            said = codec.decode(list(tokens)).strip()
            words = (text.shown,) if text.shown else ()
            yield report(group, status="supports", response=said, words=words, truncated=cut)
            continue
        own = steps[departed].own_tokens[row]
        said = codec.decode([*tokens[:departed], *([] if codec.is_end(own) else [own])]).strip()
        yield report(group, status="differs", response=said + " …", truncated=cut)


def _step(
    distributions: Distributions, answering: Sequence[int], settings: DecodingSettings
) -> Steps[tuple[DecodingStep, Distributions]]:
    """Decode one step; where the model's top-K list leaves the choice open, ask it for a longer one.

    Where a shorter list decides a choice, all probabilities would decide it alike. Only the longest list there is may
    leave a step undecided, and its length is the model's own. So no passage has a say in which lists are used.
    """
    step = choose_step(distributions, answering, settings.eta_units)
    while not step.decided(settings.eta_units):
        more = yield Sharpen()
        if not isinstance(more, Distributions):
            break
        distributions, step = more, choose_step(more, answering, settings.eta_units)
    return step, distributions


@dataclass(frozen=True)
class _Noted:
    """The part of a step that the reports need."""

    choice: TokenChoice
    own_tokens: tuple[int, ...]  # per answering group, the token it would have said
