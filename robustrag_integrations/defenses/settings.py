"""What the settings of methods share: a method's settings are one frozen dataclass, whose constructor checks them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from robustrag_integrations._util.errors import INTERRUPTS
from robustrag_integrations._util.settings import check_settings, setting
from robustrag_integrations.defenses.registry import Method
from robustrag_integrations.replies.reading import CutReplies
from robustrag_integrations.text.abstention import Abstention, abstention_of, is_abstention
from robustrag_integrations.text.prompts import ABSTENTION, SILENCE_REQUEST, Options, PromptSet, Task, chosen_prompts


@dataclass(frozen=True, kw_only=True)
class MethodSettings:
    """Everything that decides an aggregation apart from the model.

    A subclass names its `method`, declares each setting as a field (`setting`), and says in `as_dict` how answers name
    them. None stands for the default. ValueError and TypeError name an invalid setting and the fix.
    """

    method: ClassVar[Method]

    task: Task = None  # type: ignore[assignment]  # set below
    prompts: PromptSet = None  # type: ignore[assignment]
    abstention: str | None = setting(
        None,
        "the text of an abstention, whatever the model wrote; display only: replies are read, counted and scored "
        "without it",
    )
    silence_request: str = setting(
        SILENCE_REQUEST,
        "the sentence that asks, before a prompt of your own about trusted passages, for a fixed phrase where they do "
        "not hold the answer; none: the prompt asks for it itself, or you have nobody else to ask",
    )
    when_empty: Literal["fail", "ask_others"] = setting(
        "fail", "what follows when the trusted retrieval finds nothing: a failure, or the others are asked"
    )
    word_gate: bool = setting(
        True, "a reply about trusted passages that has no number, name or word of theirs but the question's has failed"
    )
    when_trusted_fails: Literal["raise", "abstain"] = setting(
        "raise",
        "what follows when the trusted passages give no answer that can be read: TrustedError, or an abstention",
    )

    def __post_init__(self) -> None:
        task = self.method.check_task(self.task)
        self._set(task=task, prompts=chosen_prompts(self.prompts, task, getattr(self, "options", None)))
        if hasattr(self, "options"):
            self._set(options=self.prompts.options)
        check_settings(self, task)

    @property
    def request(self) -> str:
        """What is added to a prompt of the user's that is asked about one source; nothing where replies may be long."""
        return ""

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def as_dict(self) -> dict[str, Any]:
        """Return the settings, JSON-safe, as answers and certificates name them."""
        raise NotImplementedError

    @property
    def phrases(self) -> tuple[str, ...]:
        """The phrases that abstain: the one that prompts ask for, and those that a user added."""
        return (ABSTENTION, *getattr(getattr(self, "abstains", None), "phrases", ()))

    def final_abstains(self, text: str, question: str | None = None) -> bool:
        """True if a final answer abstains; a function that raises over it counts as a no."""
        try:
            return text == ABSTENTION or bool(getattr(self, "abstains", is_abstention)(text, question))
        except INTERRUPTS:
            raise
        except BaseException:
            return False


@dataclass(frozen=True, kw_only=True)
class ReplySettings(MethodSettings):
    """Settings of methods that read replies as text."""

    cut_replies: CutReplies = setting(
        "abstain",
        "effect of a reply that was cut: abstain, or count as far as it goes",
    )


@dataclass(frozen=True, kw_only=True)
class ChoiceSettings(ReplySettings):
    """Settings of methods that answer multiple-choice questions."""

    options: Options = setting(
        "words",
        "multiple choice asks for an option's words, in an order of each source's own, or for its letter, as the "
        "paper does",
    )


@dataclass(frozen=True, kw_only=True)
class SourceSettings(ReplySettings):
    """Settings of methods that answer although some calls failed, and may find no answer although sources give some."""

    disagreement: Literal["tell", "abstain"] = setting(
        "tell",
        "the text where sources agree on nothing: tell people who says what, or abstain; prompts get the abstention",
    )
    quorum: float = setting(
        0.5, "share of sources that must have been asked with success; else QuorumError", least=0, most=1
    )


@dataclass(frozen=True, kw_only=True)
class AbstainingSettings(SourceSettings):
    """Settings of methods that count what replies say, of which some abstain."""

    abstains: Abstention = setting(
        None,
        "a function from a reply to whether it abstains, or further phrases that abstain",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(abstains=abstention_of(self.abstains))
