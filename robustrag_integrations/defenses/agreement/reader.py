"""Reading of a group's response as keys or as an abstention, shared by keyword and consensus aggregation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from robustrag_integrations.abstention import Abstention, is_abstention
from robustrag_integrations.defenses.agreement.claims.reader import LONGEST_CLAIM, MOST_CLAIMS, ClaimReader
from robustrag_integrations.defenses.shared_options import Ungrounded
from robustrag_integrations.errors import INTERRUPTS
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.keywords import KeywordExtractor, SpacyKeywordExtractor, extractor_fingerprint
from robustrag_integrations.keywords.lists import items_of_lists
from robustrag_integrations.keywords.questions import asks_for_something_else, is_literal
from robustrag_integrations.keywords.runs import ReplyKeys, RunReader, find_written
from robustrag_integrations.models.base import Response
from robustrag_integrations.plans.asking import Reading, read_response
from robustrag_integrations.prompts import ABSTENTION, CLAIM_TASKS, Task
from robustrag_integrations.replies.reading import CutReplies
from robustrag_integrations.replies.structured import Replies, answer_in

_INVENTED = "claims of which no word stands in its passages are left out; ungrounded='count' lets them count"
_LEFT_OUT = f"too long: at most {MOST_CLAIMS} claims of up to {LONGEST_CLAIM:,} characters each count"


@dataclass(frozen=True)
class ReplyReader:
    """Reads responses, each for itself.

    Attributes:
        extractor: a response to its keywords; None for runs of words (`keywords/runs.py`).
        min_words: keys of fewer words do not count, unless they are items of a list; 1 keeps all.
        abstention: a function that is True if a response abstains.
        cut_replies: the fate of a reply that was cut.
        question: the one whose words make no keys (`for_question`).
        replies: the form in which replies are asked for; `auto` until the model was probed.
        task: the kind of answer: `long_form` and `list` are read as claims where no extractor finds keywords.
        ungrounded: the fate of an answer that none of its groups has from its own passages, and of a claim that its
            group does not have from them.
    """

    extractor: KeywordExtractor | None
    min_words: int = 1
    abstention: Callable[[str], bool] = is_abstention
    cut_replies: CutReplies = "abstain"
    question: str = ""
    replies: Replies = "text"
    task: Task = "short_answer"
    ungrounded: Ungrounded = "abstain"

    @classmethod
    def of(cls, given: Mapping[str, Any], min_words: int = 1) -> ReplyReader:
        """Build the reader from checked settings, the `KeywordReplyOptions` and `cut_replies` among them.

        Raises:
            TypeError: an extractor or abstention that is no function; the message names it and the fix.
            ImportError: the extractor is `spacy`, which is not installed.
        """
        extractor = given["extractor"]
        if isinstance(extractor, str):
            extractor = SpacyKeywordExtractor() if extractor == "spacy" else None
        if extractor is not None and not callable(extractor):
            raise TypeError(f"extractor must be a function from text to a set of str, got {type(extractor).__name__}")
        return cls(
            extractor,
            min_words,
            _abstention_of(given["abstention"]),
            given["cut_replies"],
            replies=given["replies"],
            ungrounded=given["ungrounded"],
        )

    def for_question(self, query: str) -> ReplyReader:
        """Return this reader for one question, whose own words make no answer.

        They are those of a question with a question word in it ("who", "wann", "何"). The options of "Is it Paris or
        London?" do count. An extractor that raises over the question finds nothing in it.
        """
        return replace(self, question=query)

    @cached_property
    def runs(self) -> RunReader:
        """The reader of word runs."""
        return RunReader(self.question)

    @cached_property
    def claims(self) -> ClaimReader:
        """The reader of claims."""
        return ClaimReader(self.question, as_list=self.task == "list")

    @cached_property
    def _asked(self) -> frozenset[str]:
        """The keywords of the question, as a user's extractor finds them."""
        if self.extractor is not None and asks_for_something_else(self.question):
            with suppress(Exception):
                return _as_counted(self.extractor(self.question) or ())
        return frozenset()

    def comes_with(self, part: str, key: str) -> bool:
        """True if every reply that says a key says this part of it, too."""
        return part == key if self.extractor is not None or self.min_words > 1 else self.runs.comes_with(part, key)

    def abstains(self, text: str) -> bool:
        """True if an answer abstains; a function that raises over it counts as a no."""
        if text == ABSTENTION:
            return True
        try:
            return self._says_nothing(text)
        except INTERRUPTS:
            raise
        except BaseException:
            return False

    def read(self, response: Response) -> Reading[ReplyKeys]:
        """Return a response's keys; a failure if the extractor raises or returns anything but a collection of str."""
        if self.replies == "structured":
            response = answer_in(response)
        reading = read_response(response, self.keys_of, self.cut_replies, by_lines=self.task in CLAIM_TASKS)
        response, said = reading.response, reading.found
        if self.extractor is not None or self.task not in CLAIM_TASKS or response.text is None or response.note:
            return reading
        if said is None and not response.abstains:
            said = self.claims(response.text)
        return replace(reading, response=replace(response, note=_LEFT_OUT)) if said and said.left_out else reading

    def with_grounds(self, reading: Reading[ReplyKeys], group: PassageGroup) -> Reading[ReplyKeys]:
        """Return what was read of a group's reply, held against the group's own passages.

        A reply of which no word stands in them is marked; of claims, those that have none are left out.
        """
        said = reading.found
        if said is None or not said.keys or self.extractor is not None or self.ungrounded == "count":
            return reading
        if self.task not in CLAIM_TASKS:
            stands = self.runs.stands_in(said.rest, group.text)
            return reading if stands else replace(reading, found=said.without_grounds)
        forms = {}
        for key, form in said.forms.items():
            words = (
                self.runs.tokens(form.replace("`", " ")) if "`" in key else key.split()
            )  # code is read as passages are
            if self.runs.stands_in(self.runs.new_words(words), group.text):
                forms[key] = form
        if len(forms) == len(said.forms):
            return reading
        response = replace(reading.response, note=reading.response.note or _INVENTED)
        left = replace(said, keys=frozenset(forms), forms=forms) if forms else None
        return replace(reading, response=response, found=left)

    def keys_of(self, text: str) -> ReplyKeys | None:
        """Return the keys of a reply's text; None if it abstains."""
        if self._says_nothing(text):
            return None
        if self.task in CLAIM_TASKS:
            claims = self.claims(text)
            return claims if claims.keys else None
        if self.extractor is None:
            said = self.runs(text)
            return said if self.min_words == 1 else self._of_enough_words(said, text)
        found = self.extractor(text)
        if found is None:
            return None
        counted = _as_counted(found)
        if short := frozenset(w for w in counted if len(w.split()) < self.min_words):
            items = [item for item in items_of_lists(text) if len(item.split()) < self.min_words]
            listed = frozenset().union(*(_as_counted(self.extractor(item) or ()) for item in items))
            counted = counted - short | counted & listed
        counted = counted - self._asked or counted
        return ReplyKeys(counted, None, frozenset(), {word: find_written(word, text) for word in counted})

    def _says_nothing(self, text: str) -> bool:
        """True if a reply abstains; "null" and the like are answers where the question asks for code."""
        if self.abstention is is_abstention and is_literal(text, self.question):
            return False
        return bool(self.abstention(text))

    def _of_enough_words(self, said: ReplyKeys, text: str) -> ReplyKeys:
        """The keys of enough tokens, and those of fewer that are items of a list."""
        items = {key for item in items_of_lists(text) if (key := self.runs(item).whole) is not None}
        forms = {k: form for k, form in said.forms.items() if k.count(" ") + 1 >= self.min_words or k in items}
        return ReplyKeys(frozenset(forms), said.whole, said.rest, forms)

    def as_dict(self) -> dict[str, Any]:
        """The settings that decide the reading, JSON-safe, as answers and certificates name them."""
        return {
            "min_words": self.min_words,
            "extractor": "runs" if self.extractor is None else extractor_fingerprint(self.extractor),
            "abstention": extractor_fingerprint(self.abstention),
            "cut_replies": self.cut_replies,
            "replies": self.replies,
            "ungrounded": self.ungrounded,
        }


def _as_counted(found: Collection[str]) -> frozenset[str]:
    """Return an extractor's keywords as plain str, whoever wrote the extractor.

    Raises:
        TypeError: anything but a collection of str.
    """
    if isinstance(found, str):
        raise TypeError("the extractor must return a set of str, got str")
    given = tuple(found)  # a generator can be read but once
    for word in given:
        if not isinstance(word, str):
            raise TypeError(
                f"the extractor must return a set of str, got {type(found).__name__} with {type(word).__name__} in it"
            )
    words = map(str.__str__, given)  # of a subclass of str, which may compare as it likes, the characters alone
    return frozenset(w for w in words if "\0" not in w and not w.isspace() and w)


def _abstention_of(given: Callable[[str], bool] | Sequence[str] | None) -> Callable[[str], bool]:
    """A function as it is; phrases are recognised besides what `is_abstention` recognises."""
    if given is None:
        return is_abstention
    if callable(given):
        return given
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise TypeError(
            "abstention must be a function from a response to bool, or a list of phrases such as ['keine Ahnung'], got "
            f"{given!r:.80}"
        )
    return Abstention(tuple(given))
