"""The settings of decoding aggregation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from robustrag_integrations._util.settings import setting
from robustrag_integrations.defenses.decoding.token_choice import ONE
from robustrag_integrations.defenses.registry import METHODS, Method
from robustrag_integrations.defenses.settings import MethodSettings
from robustrag_integrations.grouping.passages import Source
from robustrag_integrations.text.prompts import Prompt


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
