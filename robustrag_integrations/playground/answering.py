"""The page's buttons: each takes a request's JSON and yields events while it works. And the models that they ask."""

from __future__ import annotations

import asyncio
import os
import re
from base64 import b64decode
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from robustrag_integrations._util.checks import is_whole_number
from robustrag_integrations._util.errors import ModelError
from robustrag_integrations._util.redaction import in_one_line
from robustrag_integrations._util.words import radius_in_words
from robustrag_integrations.answers.answer import RobustAnswer, ask_report
from robustrag_integrations.certification.metrics import holds_answer
from robustrag_integrations.corpus import BM25Index, CorpusError, Found, Library, read_documents, split
from robustrag_integrations.defenses.base import Defense
from robustrag_integrations.defenses.registry import BASELINES, VANILLA, entry_of
from robustrag_integrations.drawing.answer import answer_parts, certificate_parts
from robustrag_integrations.drawing.elements import h, to_data
from robustrag_integrations.evaluation.attacks import ATTACKS, planted_texts
from robustrag_integrations.evaluation.data.questions import EvalQuestion
from robustrag_integrations.evaluation.run.cache import CallCache, MeteredModel, metered
from robustrag_integrations.grouping.passages import Passage
from robustrag_integrations.models.base import DecodingModel, TextModel, listening
from robustrag_integrations.models.providers import NamedModel
from robustrag_integrations.models.threads import Task as Load
from robustrag_integrations.models.threads import called, started
from robustrag_integrations.playground.state import (
    LONGEST_NAME,
    LONGEST_PASSAGE,
    MOST_PASSAGES,
    Row,
    State,
    StateError,
    rows_of,
    state_of,
)
from robustrag_integrations.text.prompts import Task

MOST_CALLS = 300
MOST_CORRUPTED = 10
MODES = ("injection", "modification")
PLANTED = [attack for attack in ATTACKS.values() if attack.write is not None]

_VERDICTS = {
    "both": "the right answer and the attacker’s",
    "hijacked": "the attacker’s answer",
    "right": "the right answer",
    "other": "another answer",
}

Event = dict[str, Any]


class Models:
    """Models by name, loaded on first use. A page cannot name another: a name can run code or reach a server."""

    def __init__(self, named: Mapping[str, NamedModel], cache: CallCache | None = None) -> None:
        self.named = dict(named)
        self._cache = cache
        self._loads: dict[str, Load[MeteredModel]] = {}  # under way, or done

    async def load(self, name: str) -> MeteredModel:
        """Return the model of this name, or the first one for an empty name; load it if need be.

        A request that is cancelled leaves the load under way to the next one. After a failure the next one tries again.
        """
        name = name or next(iter(self.named))
        if name not in self.named:
            raise StateError(f"the model {name!r:.80} is not offered here; start with --model")
        load = self._loads.get(name)
        if load is None or (load.done() and load.exception() is not None):
            load = self._loads[name] = started(self._load, self.named[name])
        return await asyncio.shield(asyncio.wrap_future(load))

    def _load(self, named: NamedModel) -> MeteredModel:
        try:
            return called(lambda: metered(named.load(), named.fingerprint(), self._cache))
        except Exception as error:  # of any kind: a model's libraries raise what they like
            known = isinstance(error, (ModelError, ImportError))
            raise ModelError(str(error) if known else in_one_line(error)) from error


class Buttons:
    """The actions of the buttons."""

    def __init__(self, models: Models, library: Library, *, example: bool = False) -> None:
        self._models = models
        self._library = library
        self._example = example  # the library makes room for the user's files

    async def search(self, asked: Mapping[str, Any]) -> AsyncIterator[Event]:
        """Yield the state with the passages that fit its question, in place of all others.

        They are of the `files` that the page has read, and of the library, unless that is the example's.
        """
        state, files = state_of(asked.get("state")), rows_of(asked.get("files") or ())
        if not state.question.strip():
            raise StateError("the question is empty; ask something")
        libraries = [] if files and self._example else [self._library]
        rows = await asyncio.to_thread(self._found, state.question, files, libraries)
        if not rows:
            raise StateError("no passage shares a word with the question; playground --embedding finds by meaning, too")
        yield {"state": replace(state, rows=rows[:MOST_PASSAGES]).as_dict()}

    def _found(self, question: str, files: Sequence[Row], libraries: list[Library]) -> tuple[Row, ...]:
        if files:
            trusted, others = (
                [Passage(row.text, origin=row.source) for row in files if row.trusted is kind] for kind in (True, False)
            )
            index = BM25Index(trusted) if trusted else None
            libraries.insert(0, replace(self._library, index=BM25Index(others), trusted=index))
        found = [Found(library, question) for library in libraries]
        shelves = (
            ([p for each in found for p in each.trusted or ()], True),
            ([p for each in found for p in each], False),
        )
        return tuple(
            Row(p.text[:LONGEST_PASSAGE], (p.origin or "")[:LONGEST_NAME], trusted=trusted)
            for passages, trusted in shelves
            for p in passages
        )

    async def read(self, asked: Mapping[str, Any]) -> AsyncIterator[Event]:
        """Yield the passages of a file, of which the page sends the `name` and the `data` in base64; or its problem."""
        name, data = asked.get("name"), asked.get("data")
        if not isinstance(name, str) or not isinstance(data, str):
            raise StateError("a file has a name and data")
        try:
            content = b64decode(data, validate=True)
        except ValueError:
            raise StateError(f"the file {name:.80} did not come whole; drop it again") from None
        yield await asyncio.to_thread(_read, name, content)

    async def answer(self, asked: Mapping[str, Any]) -> AsyncIterator[Event]:
        """Yield both answers, each as soon as it is there, drawn with its counts and its sources."""
        state = _askable(asked)
        model = await self._models.load(state.model)
        trusted, others = state.shelves
        read = [*trusted, *others]
        passages = [p for _, p in read]
        shown = [{"id": p.id, "source": p.origin, "text": p.text, "planted": row.planted} for row, p in read]
        task = _task_of(state)
        undefended: Defense = VANILLA.build(model, task=task)
        for name, defense in (("vanilla", undefended), ("defended", _defense_of(state, model))):
            shelves: dict[str, Any] = {"passages": passages}
            if trusted and defense.isolates:
                shelves = {"passages": [p for _, p in others], "trusted": [p for _, p in trusted]}
            asking = partial(defense.aanswer, state.question, choices=_choices_of(state, task), **shelves)
            yield {
                "progress": "Asking with all passages in one prompt …" if name == "vanilla" else "Asking the defence …"
            }
            async for event in _watched(asking):
                if isinstance(event, RobustAnswer):
                    found = event
                else:
                    yield event
            yield {
                "part": name,
                "text": found.text,
                "abstained": found.abstained,
                "decided_by": found.decided_by,
                "promise": _promise(found, defense),
                "verdict": _verdict(state, found),
                "evidence": to_data(h("div", *answer_parts(found, shown)[1:])),
                "report": ask_report(model.description, found, passages) if name == "defended" else None,
            }

    async def poison(self, asked: Mapping[str, Any]) -> AsyncIterator[Event]:
        """Yield the state with an `attack` planted among the others at a `rank` (1: top), from a source of its own."""
        state, rank = state_of(asked.get("state")), asked.get("rank", 1)
        if asked.get("attack") not in [attack.name for attack in PLANTED]:
            raise StateError(f"attack {asked.get('attack')!r:.60} is unknown")
        if not is_whole_number(rank, 1, MOST_PASSAGES + 1):
            raise StateError("rank must be a whole number from 1, the top")
        if len(state.rows) >= MOST_PASSAGES:
            raise StateError(f"there is room for {MOST_PASSAGES} passages; remove one first")
        try:
            texts = planted_texts(asked["attack"], _question(state), state.benign)
        except (ValueError, TypeError, IndexError) as error:
            raise StateError(str(error)) from error
        taken = {row.source for row in state.rows}
        source = next(name for n in range(1, MOST_PASSAGES + 2) if (name := f"planted-{n}.example") not in taken)
        text = texts[sum(row.planted for row in state.rows) % len(texts)]
        trusted, others = ([row for row in state.rows if row.trusted is kind] for kind in (True, False))
        others.insert(rank - 1, Row(text[:LONGEST_PASSAGE], source, planted=True))
        yield {"state": replace(state, rows=(*trusted, *others)).as_dict()}

    async def certificate(self, asked: Mapping[str, Any]) -> AsyncIterator[Event]:
        """Yield the certificate for the passages that nobody planted, against `corruption_size` of an `attack`."""
        state, size, mode = _askable(asked), asked.get("corruption_size"), asked.get("attack")
        if state.method in BASELINES:
            raise StateError(f"{state.method} has no certificate: any passage may decide its answer; choose a defence")
        if not state.answer.strip():
            raise StateError("the right answer is empty; a certificate says how much of it survives")
        if not is_whole_number(size, 0, MOST_CORRUPTED):
            raise StateError(f"corruption_size must be a whole number from 0 to {MOST_CORRUPTED}")
        if mode not in MODES:
            raise StateError(f"attack must be one of {', '.join(MODES)}")
        defense = _defense_of(state, await self._models.load(state.model))
        try:
            attacker: dict[str, Any] = {"corruption_size": size, "attack": mode, "top_k": state.top_k}
            passages = state.benign[: state.top_k]
            trusted = [p for _, p in state.shelves[0]] or None
            choices = _choices_of(state, _task_of(state))
            limits: dict[str, Any] = {"choices": choices, "max_model_calls": MOST_CALLS}
            found = await defense.acertify(
                state.question, passages, state.answer, trusted=trusted, **attacker, **limits
            )
        except (ValueError, TypeError) as error:  # such as a model that samples
            raise StateError(str(error)) from error
        yield {"evidence": to_data(h("div", *certificate_parts(found)))}


async def _watched(asking: Callable[[], Coroutine[Any, Any, RobustAnswer]]) -> AsyncIterator[Event | RobustAnswer]:
    """Yield how many sources have been asked as their replies come in, and then the answer."""
    told: asyncio.Queue[Event | None] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def count(done: int, of: int) -> None:
        loop.call_soon_threadsafe(told.put_nowait, {"progress": f"{done} of {of} sources asked …"})

    with listening(count):
        task = asyncio.create_task(asking())
    task.add_done_callback(lambda _: told.put_nowait(None))
    try:
        while (event := await told.get()) is not None:
            yield event
        yield await task
    finally:  # a page that leaves is not worked for
        task.cancel()


def _read(name: str, content: bytes) -> Event:
    """Read a file of this name as one of a folder; whatever it holds, it is one source."""
    parts = [re.sub(r"[\x00-\x1f\\:]", "_", part)[-60:].lstrip(".") for part in name.split("/")[-20:]]
    with TemporaryDirectory(prefix="robustrag-playground-") as folder:
        path = Path(folder, *filter(None, parts[:-1]), parts[-1] or "file")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            try:
                passages = split(read_documents([folder]).documents)
            except CorpusError:
                passages = split(read_documents([str(path)]).documents)  # of a named file the error says more
        except (CorpusError, ImportError, OSError) as error:
            return {"rows": [], "problem": str(error).replace(f"{folder}{os.sep}", "")}
    source = passages[0].origin or name
    return {"rows": [asdict(Row(p.text[:LONGEST_PASSAGE], source[:LONGEST_NAME])) for p in passages], "problem": None}


def _askable(asked: Mapping[str, Any]) -> State:
    state = state_of(asked.get("state"))
    if not state.question.strip():
        raise StateError("the question is empty; ask something")
    if not any(row.text.strip() for row in state.rows):
        raise StateError("there are no passages; add one, or start again with the example")
    return state


def _task_of(state: State) -> Task:
    """Return the task: a choice where there are options and the method takes them."""
    method = entry_of(state.method)
    if state.choices and method.takes_choices:
        return "multiple_choice"
    open_ended: Sequence[Task] = [task for task in method.tasks if task != "multiple_choice"]
    if not open_ended:
        raise StateError(f"{method.name} votes on options: write two or more, one per line")
    return next((task for task in open_ended if task == state.task), open_ended[0])


def _choices_of(state: State, task: Task) -> tuple[str, ...] | None:
    return state.choices if task == "multiple_choice" else None


def _defense_of(state: State, model: TextModel) -> Defense:
    method = entry_of(state.method)
    if method.needs_probabilities and not isinstance(model, DecodingModel):
        raise StateError(f"{method.name} needs token probabilities, which {model.description} does not give")
    rules = {} if method.name in BASELINES else {"group_by": state.group_by, "when_trusted_fails": "abstain"}
    try:
        made: Defense = method.build(model, task=_task_of(state), **rules, **state.settings)
    except (ValueError, TypeError, ImportError) as error:
        raise StateError(str(error)) from error
    return made


def _verdict(state: State, answer: RobustAnswer) -> dict[str, str]:
    """Judge the answer by the right one and the attacker's, where these are known: a kind for colours, and words."""
    right = bool(state.answer.strip()) and holds_answer(answer.text, [state.answer])
    wanted = bool(state.target.strip()) and holds_answer(answer.text, [state.target])
    kind = "both" if right and wanted else "hijacked" if wanted else "right" if right else "other"
    if answer.abstained:  # which may tell what sources say
        words = "no answer" if kind == "other" else f"no answer; sources say {_VERDICTS[kind]}"
        return {"kind": "abstained", "words": words}
    return {"kind": kind, "words": _VERDICTS[kind] if state.answer.strip() else "not judged: no right answer given"}


def _promise(answer: RobustAnswer, defense: Defense) -> str:
    """Say in a sentence who could have changed the answer."""
    if not defense.isolates:
        return "No guarantee: any passage may decide"
    if answer.abstained:
        return "Nothing is promised of an abstention"
    if answer.decided_by == "trusted":
        return "Decided by what you trust: no other source can change it"
    if answer.decided_by == "sole_source":
        return "Radius 0: it rests on one source alone"
    return f"Radius {answer.radius}: {radius_in_words(answer.radius, answer.whole, answer.radius_unit)}"


def _question(state: State) -> EvalQuestion:
    needed = {"question": state.question, "right answer": state.answer, "attacker’s answer": state.target}
    for name, text in needed.items():
        if not text.strip():
            raise StateError(f"the {name} is empty; attacks are written about it")
    return EvalQuestion("", state.question, (state.answer,), state.target, state.benign, state.choices)
