"""A probe of a model's reproducibility: equal prompts, asked alone and beside other prompts.

A server at temperature 0 may still answer the same prompt in two ways: batches of other sizes round differently, and a
near tie of two tokens then falls the other way. Other people's load, an attacker's included, decides the batches. The
probe counts the differences. One difference proves that the model is not reproducible; none proves nothing beyond the
interval that is given.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from robustrag_integrations._util.checks import check_at_least
from robustrag_integrations._util.errors import ModelError
from robustrag_integrations.models.base import Response, TextModel
from robustrag_integrations.text.prompts import Prompt

SCHEMA = "robustrag/repeat-probe/1"

PROMPTS = (
    "Write three sentences about how a mill grinds grain.",
    "List ten rivers of Europe, separated by commas.",
    "Passage: The mill of Lowbrook is run by Anna Lind. Her brother keeps the ferry.\n"
    "Question: Who runs the mill of Lowbrook?\nAnswer in a few words.",
)
"""The default prompts: long answers show differences that a single word hides."""

_SHOWN = 200  # characters of a reply shown in the findings
_TOPICS = ("bread", "clouds", "chess", "bees", "glass", "tides", "paper", "trains", "salt", "maps")


@dataclass(frozen=True)
class Compared:
    """How many replies to equal prompts came, failed, and differed from the most frequent one that came alone."""

    replies: int
    failed: int
    differed: int


@dataclass(frozen=True)
class RepeatFindings:
    """The findings of a repeat probe: numbers of prompts, of repeats and of others beside each, and what was compared.

    Attributes:
        alone: one at a time, nothing else under way from here.
        under_load: with other prompts in the same call.
        examples: of each prompt that got several replies, two of them, cut to 200 characters.
    """

    model: str
    prompts: int
    repeats: int
    load: int
    alone: Compared
    under_load: Compared
    examples: tuple[tuple[str, str], ...] = ()

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
        counts = {"compared": self.compared, "differed": self.differed, "load": self.load}
        return {"model": self.model[:_SHOWN], **counts}


def probe_determinism(
    model: TextModel,
    prompts: Sequence[str] | None = None,
    *,
    repeats: int = 20,
    load: int = 16,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> RepeatFindings:
    """Ask equal prompts again and again, alone and under load, and compare the replies.

    It makes `prompts * repeats * (load + 2)` calls. The two circumstances take turns, so that a server that changes
    meanwhile is seen in both.

    Args:
        model: any `TextModel`.
        prompts: the prompts to repeat; None for three of the project's own.
        repeats: number of times each is asked in each circumstance; at least 2.
        load: number of other prompts, of other lengths, beside each under load. Set it to the traffic that you expect,
            and the model's `max_concurrency` above it, or they wait for each other here.
        on_progress: told how many calls are done, and of how many.
    """
    check_at_least(2, repeats=repeats)
    check_at_least(1, load=load)
    asked, rng = [Prompt(text) for text in (PROMPTS if prompts is None else prompts)], random.Random(0)
    if not asked:
        raise ValueError("prompts is empty; give at least one")
    replies: list[tuple[list[Response], list[Response]]] = [([], []) for _ in asked]  # alone, and under load
    done, total = 0, len(asked) * repeats * (load + 2)
    for _ in range(repeats):
        for prompt, (alone, loaded) in zip(asked, replies, strict=True):
            alone += model.generate([prompt], "isolated")
            batch = [_other(rng) for _ in range(load)]
            index = rng.randrange(load + 1)
            batch.insert(index, prompt)
            loaded.append(model.generate(batch, "isolated")[index])
            done += load + 2
            on_progress(done, total)
    if all(len(_texts([*alone, *loaded])) < 2 for alone, loaded in replies):
        error = next((r.error for both in replies[0] for r in both if r.text is None), "no replies")
        raise ModelError(f"the probe has nothing to compare: no prompt got two replies ({error})")
    counts, examples = [[0, 0, 0], [0, 0, 0]], []
    for both in replies:
        texts = _texts([*both[0], *both[1]])
        usual = next(iter(Counter(_texts(both[0]) or texts).most_common(1)), ("", 0))[0]
        for count, said in zip(counts, map(_texts, both), strict=True):
            count[0] += len(said)
            count[1] += repeats - len(said)
            count[2] += sum(text != usual for text in said)
        examples += [(usual[:_SHOWN], text[:_SHOWN]) for text in texts if text != usual][:1]
    alone_counts, load_counts = (Compared(*count) for count in counts)
    return RepeatFindings(model.description, len(asked), repeats, load, alone_counts, load_counts, tuple(examples))


def _texts(replies: Sequence[Response]) -> list[str]:
    return [reply.text for reply in replies if reply.text is not None]


def _other(rng: random.Random) -> Prompt:
    """Return a unique prompt of random length."""
    topic, number = rng.choice(_TOPICS), rng.randrange(10**9)
    filler = " ".join(f"{topic} {i}" for i in range(rng.randrange(60)))
    return Prompt(f"Note {number}. {filler}\nWrite a sentence about {topic}.")
