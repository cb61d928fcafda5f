"""The settings that several methods share, each declared once (`registry.Setting`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Annotated, Literal, TypedDict

from robustrag_integrations._util.settings import Setting
from robustrag_integrations.defenses.agreement.rules import Disagreement
from robustrag_integrations.keywords.protocol import KeywordExtractor
from robustrag_integrations.prompts import Options
from robustrag_integrations.replies.reading import CutReplies
from robustrag_integrations.replies.structured import Replies

Ungrounded = Literal["abstain", "count"]
RELATIVE = ("threshold", "relative")
SHARE = Setting(
    0.5,
    "share of the strongest keyword's groups that must agree: more than it is enough",
    least=0,
    below=1,
    threshold=True,
    where=RELATIVE,
    tries=(0.5, 0.6, 0.7),
)


class ShareOptions(TypedDict, total=False):
    """Of methods that hold keywords against the strongest one."""

    share: Annotated[float | Fraction | None, SHARE]
    min_support: Annotated[
        int | None,
        Setting(
            2, "number of groups that must say a keyword", least=1, threshold=True, where=RELATIVE, tries=(1, 2, 3)
        ),
    ]


class KeywordReplyOptions(TypedDict, total=False):
    """Of methods that read keywords out of replies."""

    extractor: Annotated[
        KeywordExtractor | Literal["runs", "spacy"] | None,
        Setting(
            "runs",
            "what finds a reply's keywords: whole answers and runs of words, or the paper's spaCy; in Python also a "
            "function from a reply to its keywords, or to None where it abstains",
        ),
    ]
    abstention: Annotated[
        Callable[[str], bool] | Sequence[str] | None,
        Setting(
            None,
            "a function from a reply to whether it abstains, or phrases that abstain besides what is_abstention "
            "recognises; one that raises over a reply costs its group",
        ),
    ]
    replies: Annotated[
        Replies | None,
        Setting(
            "text",
            "form of the groups' replies: text; structured, an object with an answer and whether it was found, from "
            "models and servers that enforce a JSON schema; auto, structured where that is so",
        ),
    ]
    ungrounded: Annotated[
        Ungrounded | None,
        Setting(
            "abstain",
            "effect of an answer of which no word stands in the passages of any group that gives it, mostly an "
            "invention of the model: abstain; count it, as where passages are in another language than the replies; "
            "with a function as extractor it always counts. In lists and long answers, each group's claims of which no "
            "word stands in its own passages",
        ),
    ]


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
