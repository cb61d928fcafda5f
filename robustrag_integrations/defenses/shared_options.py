"""The settings that several methods share, each declared once (`registry.Setting`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, TypedDict

from robustrag_integrations._util.settings import Setting
from robustrag_integrations.defenses.agreement.rules import Disagreement
from robustrag_integrations.prompts import Options
from robustrag_integrations.replies.reading import CutReplies


class AbstentionOptions(TypedDict, total=False):
    """Of methods that read replies which may abstain."""

    abstention: Annotated[
        Callable[[str], bool] | Sequence[str] | None,
        Setting(
            None,
            "a function from a reply to whether it abstains, or phrases that abstain besides what is_abstention "
            "recognises; one that raises over a reply costs its source",
        ),
    ]


class DisagreementOptions(TypedDict, total=False):
    """Of methods that may find no answer although sources give some."""

    disagreement: Annotated[
        Disagreement | None,
        Setting(
            "tell",
            "the text where sources agree on nothing: tell people who says what, or abstain; other prompts get the "
            "abstention either way",
        ),
    ]


class QuorumOptions(TypedDict, total=False):
    """Of methods that answer although some calls failed."""

    quorum: Annotated[
        float | None,
        Setting(0.5, "share of groups that must have been asked with success; else QuorumError", least=0, most=1),
    ]


class CutReplyOptions(TypedDict, total=False):
    """Of methods that read replies as text."""

    cut_replies: Annotated[
        CutReplies | None,
        Setting(
            "abstain",
            "effect of a reply that was cut at its limit of tokens or by a content filter: abstain, unless its answer "
            "was complete by then, while a final answer that was cut raises ModelError; count it as far as it goes, "
            "with a warning",
        ),
    ]


class ChoiceOptions(TypedDict, total=False):
    """Of methods that answer multiple-choice questions."""

    options: Annotated[
        Options | None,
        Setting(
            "words",
            "multiple choice asks for an option's words, in an order that differs from group to group, or for its "
            "letter in the question's order, as the paper does",
        ),
    ]
