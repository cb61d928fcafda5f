"""The settings of decoding aggregation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from robustrag_integrations.defenses.decoding import DECODING, DecodingOptions
from robustrag_integrations.defenses.decoding.token_choice import ONE
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.prompts import Prompt, PromptSet, Task, chosen_prompts

if TYPE_CHECKING:
    from typing_extensions import Unpack


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
        cls, *, task: Task | None = None, prompts: PromptSet | None = None, **options: Unpack[DecodingOptions]
    ) -> DecodingSettings:
        """Build the settings from user arguments; None stands for the default.

        Raises:
            ValueError, TypeError: an invalid argument; the message names it and the fix.
        """
        chosen_task, given = DECODING.check_task(task), DECODING.checked(options)
        long_form = chosen_task == "long_form"
        stop = given["stop"] if given["stop"] is not None else (("\n\n",) if long_form else ("\n",))
        if isinstance(stop, str) or not all(isinstance(s, str) and s for s in stop):
            raise TypeError(f"stop must be a list of non-empty str, got {stop!r}")
        return cls(
            float(given["gamma"]),
            round(given["eta"] * ONE),
            round(given["slack"] * ONE),
            given["max_new_tokens"] or (500 if long_form else 30),
            tuple(stop),
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
