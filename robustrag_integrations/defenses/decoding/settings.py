"""The settings of decoding aggregation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from robustrag_integrations._util.checks import check_at_least
from robustrag_integrations.defenses.decoding.token_choice import ONE
from robustrag_integrations.defenses.registry import DECODING
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.prompts import Prompt, PromptSet, Task, chosen_prompts


@dataclass(frozen=True)
class DecodingSettings:
    """Everything that decides a decoding aggregation apart from the model.

    Attributes:
        gamma: a group whose probability of the abstention string reaches gamma is left out.
        eta: probability gap up to which the no-retrieval token is emitted, in units of 2**-40.
        slack: the margin added to each comparison of the radius, in units of 2**-40.
        max_new_tokens: T_max.
        stop: strings that end the answer.
        task: `short_answer` or `long_form`.
        prompts: the prompts for the model.
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
        gamma: float | None = None,
        eta: float | None = None,
        max_new_tokens: int | None = None,
        stop: Sequence[str] | None = None,
        task: Task | None = None,
        prompts: PromptSet | None = None,
        slack: float | None = None,
    ) -> DecodingSettings:
        """Build the settings from user arguments, explained at `DecodingAggregation`. None stands for the default.

        Raises:
            ValueError, TypeError: an invalid argument; the message names it and the fix.
        """
        chosen_task = DECODING.check_task(task)
        gamma, eta = DECODING.value("gamma", gamma), DECODING.value("eta", eta)
        slack = DECODING.value("slack", slack)
        if not _is_number(gamma) or not 0 <= gamma <= 1:
            raise ValueError(f"gamma={gamma!r} must be a probability in [0, 1]")
        check_eta(eta)
        if not _is_number(slack) or not 0 <= slack < 1000:
            raise ValueError(f"slack={slack!r} must be at least 0 (and below 1000)")
        long_form = chosen_task == "long_form"
        limit = max_new_tokens if max_new_tokens is not None else (500 if long_form else 30)
        check_at_least(1, max_new_tokens=limit)
        stops = stop if stop is not None else (("\n\n",) if long_form else ("\n",))
        if isinstance(stops, str) or not all(isinstance(s, str) and s for s in stops):
            raise TypeError(f"stop must be a list of non-empty str, got {stop!r}")
        return cls(
            float(gamma),
            round(eta * ONE),
            round(slack * ONE),
            limit,
            tuple(stops),
            chosen_task,
            chosen_prompts(prompts, chosen_task),
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


def check_eta(eta: object) -> None:
    """Check the smallest lead of a token.

    Raises:
        ValueError: it is no number in [0, 1000).
    """
    if not _is_number(eta) or not 0 <= eta < 1000:
        raise ValueError(f"eta={eta!r:.60} must be at least 0 (and below 1000): a gap between sums of probabilities")


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
