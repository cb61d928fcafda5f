"""A probe of a model's reproducibility: equal prompts, asked alone and beside other prompts.

A server at temperature 0 may still answer the same prompt in two ways: batches of other sizes round differently, and a
near tie of two tokens then falls the other way. Other people's load, an attacker's included, decides the batches. The
probe counts the differences. One difference proves that the model is not reproducible; none proves nothing beyond the
interval that is given.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from robustrag_integrations._util.checks import check_at_least
from robustrag_integrations._util.normalise import plain_words
from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.base import Response, TextModel
from robustrag_integrations.prompts import Prompt

SCHEMA = "robustrag/repeat-probe/1"

PROMPTS = (
    "Write three sentences about how a mill grinds grain.",
    "List ten rivers of Europe, separated by commas.",
    "Passage: The mill of Lowbrook is run by Anna Lind. Her brother keeps the ferry.\n"
    "Question: Who runs the mill of Lowbrook?\nAnswer in a few words.",
)
"""The default prompts: long answers show differences that a single word hides."""

_SHOWN = 200  # characters of a reply shown in the findings
_LARGEST_FILE = 1_000_000  # characters read from a file of findings
_TOPICS = ("bread", "clouds", "chess", "bees", "glass", "tides", "paper", "trains", "salt", "maps")

When = Literal["alone", "under load"]


@dataclass(frozen=True)
class Compared:
    """A comparison of the replies to equal prompts, in one circumstance.

    Attributes:
        when: `alone`, or `under load`.
        replies: how many came.
        failed: number of calls that failed; these are not compared.
        differed: number of replies that are not word for word the most frequent one that their prompt got alone.
        first_words: how many begin with another word.
        answers: how many differ in more than case, punctuation and white space.
    """

    when: When
    replies: int
    failed: int
    differed: int
    first_words: int
    answers: int


@dataclass(frozen=True)
class RepeatFindings:
    """The findings of a repeat probe.

    Attributes:
        model: the model's description.
        prompts: number of different prompts that were repeated.
        repeats: number of times each was asked, alone and under load.
        load: how many other prompts stood beside each under load.
        alone: one at a time, nothing else under way from here.
        under_load: with other prompts in the same call.
        examples: of each prompt that got several replies, two of them, cut to 200 characters.
        stopped: True if it was stopped before its end.
    """

    model: str
    prompts: int
    repeats: int
    load: int
    alone: Compared
    under_load: Compared
    examples: tuple[tuple[str, str], ...] = ()
    stopped: bool = False

    @property
    def compared(self) -> int:
        """The number of replies compared."""
        return self.alone.replies + self.under_load.replies

    @property
    def differed(self) -> int:
        """The number of replies that differed."""
        return self.alone.differed + self.under_load.differed

    def to_dict(self) -> dict[str, Any]:
        """Return the findings, JSON-safe; `schema` names the version."""
        return {"schema": SCHEMA, **asdict(self), "compared": self.compared, "differed": self.differed}

    def summary(self) -> dict[str, Any]:
        """Return the summary for reports: `model.probe = findings.summary()`."""
        return summary_of(self.to_dict())


def summary_of(findings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the summary for reports of findings in the form of `RepeatFindings.to_dict`, from a file, say.

    Raises:
        ValueError: these are not findings; the message says what is wrong.
    """
    if not isinstance(findings, Mapping) or findings.get("schema") != SCHEMA:
        raise ValueError(f"not the findings of a repeat probe: there is no schema {SCHEMA!r}")
    model, load = findings.get("model"), findings.get("load")
    compared, differed = findings.get("compared"), findings.get("differed")
    counts = [count for count in (compared, differed, load) if type(count) is int]
    if not isinstance(model, str) or len(counts) < 3 or not 0 <= counts[1] <= counts[0] or counts[0] == 0:
        raise ValueError(
            "the findings of a repeat probe need a model, and counts of which differed is at most compared, got "
            f"model={model!r:.40}, compared={compared!r:.20}, differed={differed!r:.20}, load={load!r:.20}"
        )
    return {"model": model[:_SHOWN], "compared": counts[0], "differed": counts[1], "load": counts[2]}


def read_summary(path: str) -> dict[str, Any]:
    """Read the summary for reports from the file that `robustrag probe --output` wrote.

    Raises:
        ValueError: the file cannot be read, or holds no findings; the message says why.
    """
    try:
        with open(path, encoding="utf-8") as opened:
            return summary_of(json.loads(opened.read(_LARGEST_FILE)))
    except OSError as error:
        raise ValueError(f"cannot read it: {error.strerror}") from error
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError("it is not JSON; give the file that robustrag probe --output wrote") from error


def probe_determinism(
    model: TextModel,
    prompts: Sequence[str] | None = None,
    *,
    repeats: int = 20,
    load: int = 16,
    seed: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
) -> RepeatFindings:
    """Ask equal prompts again and again, alone and under load, and compare the replies.

    It makes `prompts * repeats * (load + 2)` calls. An interrupt after the first comparison ends it early, with what
    was found so far.

    Args:
        model: any `TextModel`.
        prompts: the prompts to repeat; None for three of the project's own.
        repeats: number of times each is asked in each circumstance; at least 2.
        load: how many other prompts, of other lengths, stand beside each under load. Set it to the traffic that you
            expect, and the model's `max_concurrency` above it, or they wait for each other here.
        seed: seeds the other prompts and their order.
        on_progress: told how many calls are done, and of how many.

    Raises:
        ValueError: nothing to ask, or a number is too small.
        ModelError: no prompt got two replies to compare.
    """
    check_at_least(2, repeats=repeats)
    check_at_least(1, load=load)
    asked = [Prompt(text) for text in (PROMPTS if prompts is None else prompts)]
    if not asked:
        raise ValueError("prompts is empty; give at least one")
    probing = _Probing(model, asked, repeats, load, random.Random(seed), on_progress or (lambda done, total: None))
    stopped = False
    try:
        probing.run()
    except KeyboardInterrupt:
        if not probing.comparable:
            raise
        stopped = True
    return probing.findings(stopped)


class _Probing:
    """One probe under way."""

    def __init__(
        self,
        model: TextModel,
        prompts: Sequence[Prompt],
        repeats: int,
        load: int,
        rng: random.Random,
        on_progress: Callable[[int, int], None],
    ) -> None:
        self._model, self._prompts, self._repeats, self._load = model, prompts, repeats, load
        self._rng, self._on_progress = rng, on_progress
        self._done, self._total = 0, len(prompts) * repeats * (load + 2)
        self._said: dict[When, list[list[Response]]] = {"alone": [], "under load": []}
        for listed in self._said.values():
            listed += [[] for _ in prompts]

    def run(self) -> None:
        """Ask everything. The two circumstances take turns, so that a server that changes meanwhile is seen in both."""
        for _ in range(self._repeats):
            for at, prompt in enumerate(self._prompts):
                self._said["alone"][at] += self._ask([prompt])
                others = [self._other() for _ in range(self._load)]
                place = self._rng.randrange(len(others) + 1)
                replies = self._ask([*others[:place], prompt, *others[place:]])
                self._said["under load"][at].append(replies[place])

    @property
    def comparable(self) -> bool:
        """True if some prompt has two replies to compare."""
        return any(len(self._texts(at)) > 1 for at in range(len(self._prompts)))

    def findings(self, stopped: bool) -> RepeatFindings:
        """Return the findings so far.

        Raises:
            ModelError: no prompt got two replies.
        """
        if not self.comparable:
            failed = next((r.error for r in self._all() if r.text is None), "no replies")
            raise ModelError(f"the probe has nothing to compare: no prompt got two replies ({failed})")
        usual = [self._usual(at) for at in range(len(self._prompts))]
        examples = []
        for at, expected in enumerate(usual):
            if other := next((text for text in self._texts(at) if text != expected), None):
                examples.append((str(expected)[:_SHOWN], other[:_SHOWN]))
        alone, loaded = (self._compared(when, usual) for when in ("alone", "under load"))
        return RepeatFindings(
            self._model.description,
            len(self._prompts),
            self._repeats,
            self._load,
            alone,
            loaded,
            tuple(examples),
            stopped,
        )

    def _ask(self, prompts: Sequence[Prompt]) -> list[Response]:
        replies = self._model.generate(prompts, "isolated")
        self._done += len(prompts)
        self._on_progress(self._done, self._total)
        return replies

    def _other(self) -> Prompt:
        """Return a unique prompt of random length."""
        topic, number = self._rng.choice(_TOPICS), self._rng.randrange(10**9)
        filler = " ".join(f"{topic} {i}" for i in range(self._rng.randrange(60)))
        return Prompt(f"Note {number}. {filler}\nWrite a sentence about {topic}.")

    def _usual(self, at: int) -> str | None:
        """Return a prompt's most frequent reply alone, the first among equals; under load where it got none alone."""
        alone = [r.text for r in self._said["alone"][at] if r.text is not None]
        counts = Counter(alone or self._texts(at))
        return max(counts, key=counts.__getitem__) if counts else None

    def _compared(self, when: When, usual: Sequence[str | None]) -> Compared:
        pairs = [
            (reply.text, expected)
            for replies, expected in zip(self._said[when], usual, strict=True)
            for reply in replies
            if reply.text is not None and expected is not None
        ]
        return Compared(
            when,
            len(pairs),
            sum(reply.text is None for replies in self._said[when] for reply in replies),
            sum(said != expected for said, expected in pairs),
            sum(said.split()[:1] != expected.split()[:1] for said, expected in pairs),
            sum(plain_words(said) != plain_words(expected) for said, expected in pairs),
        )

    def _texts(self, at: int) -> list[str]:
        return [r.text for when in self._said.values() for r in when[at] if r.text is not None]

    def _all(self) -> Iterator[Response]:
        return (reply for when in self._said.values() for replies in when for reply in replies)
