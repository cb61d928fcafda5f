"""The audit of prompts at run time.

An integration tells an `Audit` what its framework's events say: `learn` every retrieved text, `release` every robust
answer, `look` at every prompt. Matching is a search for common substrings:

- Texts and prompts are folded alike (`folded`): escapes of JSON are undone, runs of white space are one space.
- Of every text the windows of 15 characters at each 16th place are indexed, so that any 30 characters that it shares
  with a prompt hold one of them whole. A window that stands in the prompt is extended to the longest common span.
- A prompt is fine if one group's texts hold all spans: chunks of one file, one document that is repeated, boilerplate.
  Else it is a finding. What stands in a released answer is no longer one group's text.
- An answer that one source alone gives may be what its author wants, so a prompt of anybody else that holds one is a
  finding.
- A prompt of ours is known by its run, never by its words. Its own pieces (passages or agreed words, question,
  template) are taken out first, and no retrieved text may be left.
"""

from __future__ import annotations

import logging
import re
import threading
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.json_values import valid_text
from robustrag_integrations.audit.canaries import Canaries
from robustrag_integrations.audit.findings import Finding
from robustrag_integrations.errors import UndefendedError
from robustrag_integrations.grouping.passages import Passage, readable_origin

_LOG = logging.getLogger(__name__)

Group: TypeAlias = tuple[bool, str]  # whether it is an origin, and its name or else the text
Span: TypeAlias = tuple[int, int]
On: TypeAlias = Literal["log", "raise"]
SHORTEST = 30  # characters of a text that are recognised
MOST_CHARACTERS = 4_000_000  # of texts that are known at a time; the oldest are forgotten
_WINDOW, _STRIDE = 15, 16
_PLACES = 8  # of one window within one text
_ANSWERS = 1_000
_PROMPTS = 20  # before an answer
_WORD = 3
_FINDINGS = 1_000

_UNICODE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))")
_ESCAPED = re.compile(r"\\+[ntrfb]?")
_SPACE = re.compile(r"\s+")
_LABEL = re.compile(r"[:>]\s+")


@dataclass(frozen=True)
class _Text:
    """A retrieved text, folded, and its group: the name of its origin, or the text itself."""

    folded: str
    group: Group
    shown: str


class Audit:
    """Records what was retrieved, and finds prompts that hold texts of two groups. Thread-safe.

    Args:
        on: the reaction to a finding, besides keeping it: `"log"` a warning, or `"raise"` an `UndefendedError`.
        fix: the code to write in place of an undefended component.
        canaries: those that are planted while the audit listens.
    """

    def __init__(self, on: On, fix: str, canaries: Canaries | None = None) -> None:
        if on not in ("log", "raise"):
            raise ValueError(f"on={on!r:.40} must be 'log' or 'raise'")
        self.on, self._fix, self.canaries = on, fix, canaries
        self.findings: list[Finding] = []
        self._texts: OrderedDict[tuple[Group, str], int] = OrderedDict()
        self._known: dict[int, _Text] = {}
        self._index: dict[str, list[tuple[int, int]]] = {}
        self._answers: deque[str] = deque(maxlen=_ANSWERS)
        self._unproved: OrderedDict[str, bool] = OrderedDict()  # each with whether earlier prompts held its words
        self._earlier: deque[str] = deque(maxlen=_PROMPTS)
        self._characters = self._number = 0
        self._lock = threading.RLock()

    def learn(self, passages: Iterable[Passage]) -> None:
        """Register retrieved texts. Without an origin, each text is a group of its own."""
        with self._lock:
            for passage in passages:
                origin = readable_origin(passage)
                text = folded(passage.text)
                group = (False, text) if origin is None else (True, origin.name)
                if len(text) < SHORTEST:
                    continue
                if (group, text) in self._texts:
                    self._texts.move_to_end((group, text))
                else:
                    unnamed = f"a text of {len(passage.text)} characters without a source"
                    self._add(_Text(text, group, unnamed if origin is None else printable(origin.given, 80)))

    def release(self, answer: str, *, agreed: bool) -> None:
        """Register a robust answer that is no abstention.

        Args:
            answer: its text.
            agreed: True if several sources agree on it (`is_agreed`): its quotations may stand in any prompt. Else it
                may stand in none, as one document may have decided it.
        """
        text = folded(answer)
        with self._lock:
            if agreed and len(text) >= SHORTEST and text not in self._answers:
                self._answers.append(text)
            if not agreed and text and text not in self._unproved:
                common = len(text) < _WORD or any(_words_in(text.casefold(), prompt) for prompt in self._earlier)
                self._unproved[text] = common
                if len(self._unproved) > _ANSWERS:
                    self._unproved.popitem(last=False)

    def look(self, texts: Iterable[str], path: str, component: str, own: Sequence[str] | None = None) -> None:
        """Check a prompt.

        Args:
            texts: all that the model is shown, piece by piece.
            path: the runs that lead there.
            component: the model's class.
            own: of a prompt of ours, the pieces it was made of; None for a prompt of anybody else.

        Raises:
            UndefendedError: there are texts of two groups in it, a canary or an answer of one source, and the audit
                raises.
        """
        texts = list(texts)
        prompt = " \x00 ".join(map(folded, texts))
        pieces = sorted({p for p in map(folded, own or ()) if len(p) >= _WINDOW}, key=len, reverse=True)
        for piece in pieces:
            prompt = prompt.replace(piece, " \x00 ")
        for where in self.canaries.planted_in([prompt]) if self.canaries else ():
            self.add(self._canary(where, path, component))
        if own is None and (answer := self._unproved_in(texts, prompt)):
            self.add(self._answer_of_one_source(answer, path, component))
        with self._lock:
            spans = self._spans(prompt)
            passed = [*self._answers, *pieces]
            told = {
                group: kept
                for group, found in spans.items()
                if (kept := {s for s in found if not _stands_in(prompt[s[0] : s[1]], passed)})
            }
            groups = _mixed(told) if own is None else list(told)
            if not groups:
                return
            names = {text.group: text.shown for text in self._known.values() if text.group in groups}
        self.add(self._mixed_prompt(path, component, tuple(sorted(set(names.values()))), len(groups), own is not None))

    def add(self, finding: Finding) -> None:
        """Keep a finding, each place once, and react to it.

        Raises:
            UndefendedError: the audit raises.
        """
        with self._lock:
            if finding not in self.findings and len(self.findings) < _FINDINGS:
                self.findings.append(finding)
                if self.on == "log":  # no origin: those are names that documents give themselves
                    _LOG.warning("not isolated: %s at %s (%s)", finding.kind, finding.path, finding.component)
        if self.on == "raise":
            raise UndefendedError([finding])

    def _mixed_prompt(self, path: str, component: str, origins: tuple[str, ...], groups: int, ours: bool) -> Finding:
        listed = ", ".join(map(repr, origins[:5])) + (", ..." if len(origins) > 5 else "")
        problem = (
            f"besides what was isolated, the prompt holds retrieved text of {listed}"
            if ours
            else f"one prompt holds retrieved texts of {groups} groups ({listed})"
        )
        fix = "give documents as the isolated input alone, and none in the conversation" if ours else self._fix
        return Finding("prompt", path, component, problem, fix, origins)

    def _canary(self, where: str, path: str, component: str) -> Finding:
        problem = f"the prompt holds a canary that was planted in what {where!r} returned"
        fix = f"{self._fix}; a tool whose results nobody else writes goes into trusted="
        return Finding("canary", path, component, problem, fix, (where,))

    def _answer_of_one_source(self, answer: str, path: str, component: str) -> Finding:
        problem = f"the prompt holds an answer of {len(answer)} characters that one document may have decided"
        fix = f"pass on what several sources agree on (answer.for_prompt(), or min_radius=1): {self._fix}"
        return Finding("one-source-answer", path, component, problem, fix)

    def _unproved_in(self, texts: Sequence[str], prompt: str) -> str | None:
        """Return an answer of one source that a prompt holds.

        A short one counts between word boundaries; where a prompt held its words before it was given, or they are less
        than three characters, only at the end of a line, by itself or after a label such as "Answer: ".
        """
        with self._lock:
            self._earlier.append(prompt.casefold())
            lines = {folded(part) for text in texts for line in text.splitlines() for part in _labelled(line)}
            for answer, common in self._unproved.items():
                if (
                    answer in prompt
                    if len(answer) >= SHORTEST
                    else answer in lines or (not common and _words_in(answer, prompt))
                ):
                    return answer
            return None

    def _add(self, text: _Text) -> None:
        self._number += 1
        self._texts[text.group, text.folded] = self._number
        self._known[self._number] = text
        self._characters += len(text.folded)
        for window, places in _windows(text.folded).items():
            self._index.setdefault(window, []).extend((self._number, place) for place in places)
        while self._characters > MOST_CHARACTERS and len(self._texts) > 1:
            self._forget(*self._texts.popitem(last=False))

    def _forget(self, key: tuple[Group, str], number: int) -> None:
        del self._known[number]
        self._characters -= len(key[1])
        for window in _windows(key[1]):
            kept = [place for place in self._index[window] if place[0] != number]
            if kept:
                self._index[window] = kept
            else:
                del self._index[window]

    def _spans(self, prompt: str) -> dict[Group, set[Span]]:
        """Return the longest spans of a prompt that also stand in a text, by the text's group."""
        found: dict[Group, set[Span]] = {}
        reached: dict[int, int] = {}  # text to the end of its last span, within which no other begins
        for at in range(len(prompt) - _WINDOW + 1):
            places = self._index.get(prompt[at : at + _WINDOW])
            if places is None:
                continue
            ends: dict[int, int] = {}
            for number, place in places:
                if reached.get(number, 0) >= at + _WINDOW:
                    continue
                text = self._known[number]
                start, end = _extended(prompt, at, text.folded, place)
                ends[number] = max(end, ends.get(number, 0))
                if end - start >= SHORTEST and sum(map(str.isalnum, prompt[start:end])) >= _WINDOW:
                    found.setdefault(text.group, set()).add((start, end))
            reached.update(ends)
        return found


def is_agreed(report: Mapping[str, Any]) -> bool:
    """True if several sources agree on the answer of a report, or its user lets a sole source's pass."""
    support = (report.get("evidence") or {}).get("support") or 0
    agreed = int(report.get("radius") or 0) > 0 or (support > 1 and not report.get("sole_source"))
    return agreed or bool((report.get("settings") or {}).get("allow_sole_source"))


def folded(text: str) -> str:
    """Normalise a text for comparison: without JSON escapes, and with a single space for any white space."""
    if "\\" in text:
        text = _UNICODE.sub(lambda found: chr(int(found[1] or found[2], 16)), text)
        text = _ESCAPED.sub(lambda found: " " if found[0][-1] != "\\" else "", text)
        text = valid_text(text)
    return _SPACE.sub(" ", text).strip()


def texts_in(value: object) -> Iterator[str]:
    """Yield the texts in plain data, in order, at any depth."""
    waiting = [value]
    while waiting:
        part = waiting.pop(0)
        if isinstance(part, str):
            yield part
        elif isinstance(part, Mapping):
            waiting = [*part.values(), *waiting]
        elif isinstance(part, (list, tuple)):
            waiting = [*part, *waiting]


def _labelled(line: str) -> Iterator[str]:
    """Yield a line, and what follows each label in it: "b" and "a: b"."""
    yield line
    for mark in _LABEL.finditer(line):
        yield line[mark.end() :]


def _words_in(words: str, text: str) -> bool:
    """True if a text holds these words, between word boundaries."""
    return any(
        not (words[0].isalnum() and text[max(at.start() - 1, 0) : at.start()].isalnum())
        and not (words[-1].isalnum() and text[at.end() : at.end() + 1].isalnum())
        for at in re.finditer(re.escape(words), text)
    )


def _windows(text: str) -> dict[str, list[int]]:
    """Return every indexed window, with its first positions."""
    found: dict[str, list[int]] = {}
    for place in range(0, len(text) - _WINDOW + 1, _STRIDE):
        places = found.setdefault(text[place : place + _WINDOW], [])
        if len(places) < _PLACES:
            places.append(place)
    return found


def _extended(prompt: str, at: int, text: str, place: int) -> Span:
    """Return the longest common span around a window of both texts."""
    start, end = at, at + _WINDOW
    shift = place - at
    while start > 0 and start + shift > 0 and prompt[start - 1] == text[start + shift - 1]:
        start -= 1
    step = 64
    while step:
        piece = prompt[end : end + step]
        if len(piece) == step and text.startswith(piece, end + shift):
            end, step = end + step, step * 2
        else:
            step //= 2
    return start, end


def _stands_in(span: str, texts: Iterable[str]) -> bool:
    inside = span.strip()
    return any(inside in text for text in texts)


def _mixed(spans: dict[Group, set[Span]]) -> list[Group]:
    """Return the groups that together cover all spans; none if a single group does."""
    widest: list[Span] = []
    for span in sorted({s for found in spans.values() for s in found}, key=lambda s: (s[0], -s[1])):
        if not widest or span[1] > widest[-1][1]:
            widest.append(span)
    if any(found.issuperset(widest) for found in spans.values()):
        return []
    return [group for group, found in spans.items() if not found.isdisjoint(widest)]
