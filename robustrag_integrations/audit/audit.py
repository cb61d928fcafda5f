"""The audit of prompts at run time.

An integration tells an `Audit` what its framework's events say: `learn` every retrieved text, `release` every robust
answer, `look` at every prompt. Matching is a search for common substrings:

- Texts and prompts are folded alike (`folded`): escapes of JSON are undone, runs of white space are one space.
- Of every text the windows of 15 characters at each 16th place are indexed, so that any 30 characters that it shares
  with a prompt hold one of them whole. A window that stands in the prompt is extended to the longest common span.
- A prompt is fine if one source's texts hold all spans: chunks of one file, one document that is repeated, boilerplate.
  Else it is a finding. What stands in a released answer is no longer one source's text.
- What an answer tells people and `RobustAnswer.for_prompt` does not give (of one source, of sources that disagree, the
  list of sources' names) may be what an author wants, so that a prompt that holds any of it is a finding.
- What tools said in earlier turns of a conversation, as an old thread holds it, may be any document's words, unless
  these turns were audited.
- A prompt of ours is known by its run, never by its words. Its own pieces (passages or agreed words, question,
  template) are taken out first, and neither retrieved text nor an answer for people may be left.
"""

from __future__ import annotations

import logging
import re
import threading
from collections import OrderedDict, deque
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeAlias, TypeVar

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.errors import UndefendedError
from robustrag_integrations._util.json_values import valid_text
from robustrag_integrations._util.words import count_of
from robustrag_integrations.answers.answer import as_answer
from robustrag_integrations.answers.citations import listed
from robustrag_integrations.audit.check import Canaries
from robustrag_integrations.audit.findings import Finding
from robustrag_integrations.audit.hosted import tool_names
from robustrag_integrations.grouping.passages import Passage
from robustrag_integrations.text.abstention import is_abstention

_LOG = logging.getLogger(__name__)

Source: TypeAlias = tuple[Literal["origin", "text", "answer"], Hashable]  # and the origin's key, or else the text
Text: TypeAlias = tuple[Source, str]  # a retrieved text, or an answer for people, folded, with its source
Span: TypeAlias = tuple[int, int]
On: TypeAlias = Literal["log", "raise"]
SHORTEST = 30  # characters of a text that are recognised
MOST_CHARACTERS = 4_000_000  # of texts that are known at a time; the oldest are forgotten
_WINDOW, _STRIDE = 15, 16
_PLACES = 8  # of one window within one text
_ANSWERS = 1_000
_PROMPTS = 20  # before an answer
_FINDINGS = 1_000
_MOST_RUNS = 10_000
Run = TypeVar("Run", bound=Hashable)
_FEWEST = 3  # characters of an answer that is looked for

_UNICODE = re.compile(r"(?<!\\)\\+(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))")
_ESCAPED = re.compile(r"\\+[ntrfb]?")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True)
class Message:
    """A message of a prompt: whether the user's, and of a tool's result the tool ("" for one without a name)."""

    text: str
    of_user: bool = False
    tool: str | None = None


class Runs(Generic[Run]):
    """The runs under way, each with its name and the one around it; the oldest ones are forgotten."""

    def __init__(self) -> None:
        self._open: OrderedDict[Run, tuple[Run | None, str]] = OrderedDict()

    def begin(self, run: Run, parent: Run | None, name: str) -> None:
        """Note a run that begins."""
        self._open[run] = (parent, name)
        if len(self._open) > _MOST_RUNS:
            self._open.popitem(last=False)

    def end(self, run: Run) -> None:
        """Forget a run."""
        self._open.pop(run, None)

    def around(self, run: Run | None) -> list[tuple[Run, str]]:
        """Return a run and those around it, each with its name, innermost first."""
        found: list[tuple[Run, str]] = []
        while run is not None and run in self._open and len(found) < 100:
            parent, name = self._open[run]
            found.append((run, name))
            run = parent
        return found


class Audit:
    """Records what was retrieved, and finds prompts that hold texts of two sources. Thread-safe.

    Args:
        on: the reaction to a finding, besides keeping it: `"log"` a warning, or `"raise"` an `UndefendedError`.
        fix: the code to write in place of an undefended component.
        pass_through: names of tools whose results nobody else writes, or which the provider runs.

    Attributes:
        canaries: those of a check, which is strict: in prompts that are not ours, retrieved text of a single source is
            a finding, too, and in any prompt a canary that is not isolated. None outside of one.
    """

    def __init__(self, on: On, fix: str, pass_through: Collection[str] = ()) -> None:
        if on not in ("log", "raise"):
            raise ValueError(f"on={on!r:.40} must be 'log' or 'raise'")
        self.on, self._fix, self.pass_through = on, fix, tool_names("pass_through", pass_through)
        self.canaries: Canaries | None = None
        self.findings: list[Finding] = []
        self._texts: OrderedDict[Text, str] = OrderedDict()  # with the name of each for people
        self._index: dict[str, list[tuple[Text, int]]] = {}
        self._characters = 0
        self._answers: deque[str] = deque(maxlen=_ANSWERS)
        self._for_people: deque[str] = deque(maxlen=_ANSWERS)  # each as a whole
        self._earlier: deque[str] = deque(maxlen=_PROMPTS)
        self._results: deque[str] = deque(maxlen=_ANSWERS)  # what tools said in turns that were audited
        self._lock = threading.RLock()

    def learn(self, passages: Iterable[Passage]) -> None:
        """Register retrieved texts. Without an origin, each text is a source of its own."""
        with self._lock:
            for passage in passages:
                origin = passage.known_origin
                text = folded(passage.text)
                key: Text = (("text", text) if origin is None else ("origin", origin.key), text)
                if len(text) >= SHORTEST:
                    unnamed = f"a text of {len(passage.text)} characters without a source"
                    self._add(key, unnamed if origin is None else printable(origin.given, 80))

    def allow(self, text: str) -> None:
        """Register a text that may stand in any prompt, whatever passages quote it: a question, an agreed answer."""
        with self._lock:
            self._answers.append(folded(text))

    def release(self, report: object) -> None:
        """Register a robust answer, by its report: what other prompts may hold of it, its question, what is for people.

        A few words for people that the question or somebody else's earlier prompts held tell nothing.
        """
        answer = as_answer(report)
        self.allow(answer.query)
        self._earlier.append(folded(answer.query))
        if answer.evidence.get("answered_from") == "conversation":  # nothing of a document is in it
            return
        said = answer.for_prompt()
        if not said.abstained:
            self.allow(said.text)
        told = [answer.text] if said.text != answer.text and not is_abstention(answer.text) else []
        self.keep_from_prompts([*told, listed(answer.citations)], [other.text for other in answer.dissent])

    def keep_from_prompts(self, texts: Iterable[str], in_part: Iterable[str] = ()) -> None:
        """Register texts for people, which no prompt may hold, and texts of which none may hold thirty characters."""
        with self._lock:
            whole, parts = list(map(folded, texts)), list(map(folded, in_part))
            for text in whole:
                if len(text) >= SHORTEST or (
                    len(text) >= _FEWEST and not any(_words_in(text, earlier) for earlier in self._earlier)
                ):
                    self._for_people.append(text)
            for text in (*whole, *parts):
                if len(text) >= SHORTEST:
                    self._add((("answer", text), text), "")

    def look(self, texts: Iterable[str], path: str, component: str, own: Sequence[str] | None = None) -> None:
        """Check a prompt.

        Args:
            texts: all that the model is shown, piece by piece.
            path: the runs that lead there.
            component: the model's class.
            own: of a prompt of ours, the pieces it was made of; None for a prompt of anybody else.
        """
        prompt = " \x00 ".join(map(folded, texts))
        pieces = sorted(filter(None, set(map(folded, own or ()))), key=len, reverse=True)
        rest = prompt  # without the shortest pieces, too, which may stand within what was retrieved
        for piece in pieces:
            rest = rest.replace(piece, " \x00 ")
            prompt = prompt.replace(piece, " \x00 ") if len(piece) >= _WINDOW else prompt
        for where in self.canaries.planted_in(prompt) if self.canaries else ():
            problem = f"the prompt holds a canary that was planted in what {where!r} returned"
            fix = f"{self._fix}; a tool whose results nobody else writes goes into pass_through="
            self.add(Finding("canary", path, component, problem, fix, (where,)))
        with self._lock:
            if own is None:
                self._earlier.append(prompt)
            passed = [*self._answers, *pieces]
            found = {
                source: kept
                for source, spans in self._spans(prompt).items()
                if (kept := {s for s in spans if not _stands_in(prompt[s[0] : s[1]], passed)})
            }
            retrieved = {source: spans for source, spans in found.items() if source[0] != "answer"}
            quoted = [span for spans in retrieved.values() for span in spans]
            told = [text for text in self._for_people if text not in self._answers and _words_in(text, rest)]
            told += [
                str(g[1])
                for g, spans in found.items()
                if g[0] == "answer" and not all(_within(s, quoted) for s in spans)
            ]
            sources = _mixed(retrieved) if own is None and self.canaries is None else list(retrieved)
            origins = tuple(sorted({shown for (source, _), shown in self._texts.items() if source in sources}))
        if told:
            problem = (
                f"the prompt holds an answer of {len(told[0])} characters, or part of it, that is for people alone"
            )
            fix = f'pass on answer.for_prompt(), or have it made with reader="model": {self._fix}'
            self.add(Finding("answer-for-people", path, component, problem, fix))
        if sources:
            few = ", ".join(map(repr, origins[:5])) + (", ..." if len(origins) > 5 else "")
            problem, fix = f"the prompt holds retrieved text of {count_of(len(sources), 'source')} ({few})", self._fix
            if own is not None:
                problem = f"besides what was isolated, the prompt holds retrieved text of {few}"
                fix = "give documents as the isolated input alone, and none in the conversation"
            self.add(Finding("prompt", path, component, problem, fix, origins))

    def look_at_results(self, messages: Sequence[Message], path: str, component: str) -> None:
        """Check what a prompt holds of earlier turns' tools, but for results that stood in a prompt of their turn."""
        asked = max((at for at, message in enumerate(messages) if message.of_user), default=-1)
        said = [
            (at > asked, folded(m.text))
            for at, m in enumerate(messages)
            if m.tool is not None and m.tool not in self.pass_through
        ]
        with self._lock:
            self._results.extend(text for is_new, text in said if is_new)
            unseen = [t for is_new, t in said if not is_new and len(t) >= SHORTEST and t not in self._results]
        if unseen:
            problem = "the prompt holds what a tool said before this audit began, which may be any document's words"
            fix = "begin a new conversation; a tool whose results nobody else writes goes into pass_through="
            self.add(Finding("old-result", path, component, problem, fix))

    def add(self, finding: Finding) -> None:
        """Keep a finding, each place once, and react to it."""
        with self._lock:
            if finding not in self.findings and len(self.findings) < _FINDINGS:
                self.findings.append(finding)
                if self.on == "log":  # no origin: those are names that documents give themselves
                    _LOG.warning("not isolated: %s at %s (%s)", finding.kind, finding.path, finding.component)
        if self.on == "raise":
            raise UndefendedError([finding])

    def _add(self, key: Text, shown: str) -> None:
        if key in self._texts:
            self._texts.move_to_end(key)
            return
        self._texts[key] = shown
        self._characters += len(key[1])
        for window, places in _windows(key[1]).items():
            self._index.setdefault(window, []).extend((key, place) for place in places)
        while self._characters > MOST_CHARACTERS and len(self._texts) > 1:
            oldest, _ = self._texts.popitem(last=False)
            self._characters -= len(oldest[1])
            for window in _windows(oldest[1]):
                self._index[window] = [found for found in self._index[window] if found[0] != oldest]
                if not self._index[window]:
                    del self._index[window]

    def _spans(self, prompt: str) -> dict[Source, set[Span]]:
        """Return the longest spans of a prompt that also stand in a text, by the text's source."""
        found: dict[Source, set[Span]] = {}
        reached: dict[Text, int] = {}  # text to the end of its last span, within which no other begins
        for at in range(len(prompt) - _WINDOW + 1):
            ends: dict[Text, int] = {}
            for text, place in self._index.get(prompt[at : at + _WINDOW], ()):
                if reached.get(text, 0) >= at + _WINDOW:
                    continue
                start, end = _extended(prompt, at, text[1], place)
                ends[text] = max(end, ends.get(text, 0))
                if end - start >= SHORTEST and sum(map(str.isalnum, prompt[start:end])) >= _WINDOW:
                    found.setdefault(text[0], set()).add((start, end))
            reached.update(ends)
        return found


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
        part = waiting.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, (Mapping, list, tuple)):
            waiting += [*(part.values() if isinstance(part, Mapping) else part)][::-1]


def _words_in(words: str, text: str) -> bool:
    """True if a text holds these words, in either case, between word boundaries."""
    words, text = words.casefold(), text.casefold()
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


def _within(span: Span, others: Iterable[Span]) -> bool:
    return any(start <= span[0] and span[1] <= end for start, end in others)


def _mixed(spans: dict[Source, set[Span]]) -> list[Source]:
    """Return the sources that together cover all spans; none if a single source does."""
    widest: list[Span] = []
    for span in sorted({s for found in spans.values() for s in found}, key=lambda s: (s[0], -s[1])):
        if not widest or span[1] > widest[-1][1]:
            widest.append(span)
    if any(found.issuperset(widest) for found in spans.values()):
        return []
    return [source for source, found in spans.items() if not found.isdisjoint(widest)]
