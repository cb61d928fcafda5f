"""What the page's buttons do, with a model that obeys everybody."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import AsyncIterator
from dataclasses import asdict, replace
from typing import Any

import pytest

from robustrag_integrations import Passage
from robustrag_integrations._util.errors import ModelError
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.corpus import BM25Index, Library
from robustrag_integrations.models.providers import NamedModel
from robustrag_integrations.playground.answering import Buttons, Models
from robustrag_integrations.playground.state import Row, State, StateError, state_of
from tests.playground.conftest import LIBRARY


def events(found: AsyncIterator[dict[str, Any]]) -> list[dict[str, Any]]:
    async def collect() -> list[dict[str, Any]]:
        return [event async for event in found]

    return asyncio.run(collect())


def pressed(models: Models, button: str, state: State, **more: Any) -> list[dict[str, Any]]:
    asked = json.loads(json.dumps({"state": state.as_dict(), **more}))
    found = events(getattr(Buttons(models, LIBRARY), button)(asked))
    json.dumps(found, allow_nan=False)
    return found


def parts(found: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {event["part"]: event for event in found if "part" in event}


def test_one_click_fools_vanilla_and_not_the_defence(models: Models, state: State) -> None:
    clean = parts(pressed(models, "answer", state))
    assert {e["verdict"]["kind"] for e in clean.values()} == {"right"}
    attacked = state_of(pressed(models, "poison", state, attack="pia", rank=2)[-1]["state"])
    assert [row.planted for row in attacked.rows] == [n == 1 for n in range(7)]
    found = parts(pressed(models, "answer", attacked))
    assert found["vanilla"]["verdict"]["kind"] == "hijacked"
    assert found["defended"]["verdict"]["kind"] == "right"
    assert f"Radius {found['defended']['report']['answer']['radius']}" in found["defended"]["promise"]
    assert len(found["defended"]["report"]["answer"]["sources"]) == attacked.top_k
    report = found["defended"]["report"]
    assert RobustAnswer.from_dict(report["answer"]).text == "Kilon Pemel"
    again = state_of(pressed(models, "poison", attacked, attack="pia", rank=1)[-1]["state"])
    assert len({row.source for row in again.rows if row.planted}) == 2
    assert set(parts(pressed(models, "answer", replace(state, method="voting", choices=("Kilon Pemel", "No"))))) == {
        "vanilla",
        "defended",
    }
    assert "planted" in json.dumps(found["defended"]["evidence"])


def test_trusted_rows_decide_whatever_is_planted_above_them(models: Models, state: State) -> None:
    rows = (*state.rows[1:], replace(state.rows[0], trusted=True))
    attacked = replace(state, rows=rows, top_k=2)
    for _ in range(3):
        attacked = state_of(pressed(models, "poison", attacked, attack="pia", rank=1)[-1]["state"])
    assert [row.trusted for row in attacked.rows] == [True, *[False] * 8]
    assert [row.planted for row in attacked.rows[:5]] == [False, True, True, True, False]
    found = parts(pressed(models, "answer", attacked))
    assert (found["vanilla"]["verdict"]["kind"], found["vanilla"]["decided_by"]) == ("hijacked", None)
    assert (found["defended"]["verdict"]["kind"], found["defended"]["decided_by"]) == ("right", "trusted")
    [event] = pressed(models, "certificate", attacked, corruption_size=2, attack="injection")
    assert "at worst 1" in json.dumps(event, ensure_ascii=False)
    library = Library(LIBRARY.index, trusted=BM25Index([Passage("Anna Lind owns the mill.", origin="handbook.md")]))
    asked = {"state": replace(state, question="Who runs the mill?").as_dict()}
    [event] = events(Buttons(models, library).search(asked))
    assert [row.trusted for row in state_of(event["state"]).rows] == [True, *[False] * 5]


def test_what_is_asked_is_told_while_it_is_asked(models: Models, state: State) -> None:
    told = [event["progress"] for event in pressed(models, "answer", state) if "progress" in event]
    assert told[-1].startswith("6 of 6 sources")
    assert all("6 sources" in said or "Asking" in said for said in told)
    events_of = pressed(models, "answer", state)
    assert not any("6 sources" in event.get("progress", "") for event in events_of)  # out of the cache


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def test_a_dropped_file_is_searched_on_its_shelf(models: Models, state: State) -> None:
    [event] = pressed(models, "read", state, name="web/menu.html", data=encoded(b"<p>Ben Roth runs the mill.</p>"))
    assert (event["rows"], event["problem"]) == ([asdict(Row("Ben Roth runs the mill.", "web/menu.html"))], None)
    files = [{**event["rows"][0], "trusted": True}, asdict(Row("Cleo Hart runs the mill.", "mail.txt"))]
    asked = replace(state, question="Who runs the mill?")
    for example, more in ((True, 0), (False, 5)):
        buttons = Buttons(models, LIBRARY, example=example)
        [event] = events(buttons.search({"state": asked.as_dict(), "files": files}))
        rows = state_of(event["state"]).rows
        assert [(row.source, row.trusted) for row in rows[:2]] == [("web/menu.html", True), ("mail.txt", False)]
        assert len(rows) == 2 + more


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("menu.png", b"x", "menu.png: unknown kind"),
        ("../../a.pdf", b"%PDF-x", "a.pdf is not"),
        ("a.txt", b" ", "no text in a.txt"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_the_reason(
    models: Models, state: State, name: str, content: bytes, says: str
) -> None:
    [event] = pressed(models, "read", state, name=name, data=encoded(content))
    assert event["rows"] == []
    assert event["problem"].startswith(says)


@pytest.mark.parametrize(
    "name", ["../../etc/x.txt", "/etc/x.txt", "https://bank.example/x.txt", "a\0\n.txt", ".x.txt", "é" * 400]
)
def test_whatever_a_dropped_file_is_called_it_is_one_source_below_one_folder(
    models: Models, state: State, name: str
) -> None:
    rows = b'{"text": "a", "source": "https://b.example"}\n{"text": "c", "source": "d"}'
    [event] = pressed(models, "read", state, name=f"{name}.jsonl", data=encoded(rows))
    [source] = {row["source"] for row in event["rows"]}
    assert source.endswith(".jsonl")
    assert not source.startswith(("/", "https:", "..")), source


def test_what_is_no_file_is_refused(models: Models, state: State) -> None:
    for asked in ({"name": "a.txt"}, {"name": 7, "data": ""}, {"name": "a.txt", "data": "é"}):
        with pytest.raises(StateError, match="file"):
            pressed(models, "read", state, **asked)
    with pytest.raises(StateError, match="files"):
        pressed(models, "search", state, files=[{"text": "x", "onload": "y"}])


def test_an_abstention_that_tells_both_is_no_right_answer(models: Models, state: State) -> None:
    rows = (*state.rows[:2], *(replace(row, text="The mayor is Jiso Labun.") for row in state.rows[2:4]))
    found = parts(pressed(models, "answer", replace(state, rows=rows)))["defended"]
    assert (found["abstained"], found["verdict"]["kind"]) == (True, "abstained")
    assert "the right answer and the attacker’s" in found["verdict"]["words"]


def test_passages_are_found_in_the_documents(models: Models, state: State) -> None:
    [event] = pressed(models, "search", replace(state, question="Who runs the mill?"))
    found = state_of(event["state"])
    assert [row.source for row in found.rows] == [f"note{n}.txt" for n in range(5)]
    assert found.question == "Who runs the mill?"
    for question, said in (("", "the question is empty"), ("xyzzy", "no passage shares a word")):
        with pytest.raises(StateError, match=said):
            pressed(models, "search", replace(state, question=question))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"question": " "}, "question is empty"),
        ({"rows": ()}, "no passages"),
        ({"rows": (Row(" \n"),)}, "no passages"),
        ({"method": "voting"}, "options"),
        ({"method": "decoding"}, "probabilities"),
        ({"method": "keyword", "settings": {"alpha": 7.0}}, "alpha=7"),
        ({"method": "keyword", "settings": {"share": 0.5, "alpha": 0.3}}, "no setting 'share'"),
        ({"model": "python:os:system"}, "not offered"),
    ],
)
def test_what_cannot_be_asked_is_said_in_words(models: Models, state: State, change: dict[str, Any], says: str) -> None:
    with pytest.raises(StateError, match=says):
        pressed(models, "answer", replace(state, **change))


def loading(monkeypatch: pytest.MonkeyPatch, *results: Any) -> tuple[Models, list[str], threading.Event]:
    """Models whose loads end with these results, one after the other, once the event is set; and the loads begun."""
    begun, over, name = [], threading.Event(), "python:tests.playground.gullible:answer"
    found = NamedModel(name).load()

    def load(self: NamedModel) -> Any:
        begun.append(self.name)
        over.wait(20)
        result = results[len(begun) - 1]
        if isinstance(result, BaseException):
            raise result
        return found

    monkeypatch.setattr(NamedModel, "load", load)
    return Models({name: NamedModel(name)}), begun, over


async def test_a_request_that_is_cancelled_leaves_its_load_to_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    models, begun, over = loading(monkeypatch, "loaded")
    for _ in range(3):  # a page that is reloaded
        request = asyncio.create_task(models.load(""))
        while not begun:
            await asyncio.sleep(0.01)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
    last = [asyncio.create_task(models.load("")) for _ in range(2)]
    over.set()
    first, second = await asyncio.gather(*last)
    assert first is second is await models.load("")
    assert len(begun) == 1


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (ModelError("lacks 1 of its weights"), "lacks 1 of its weights"),
        (RuntimeError("out of memory"), "RuntimeError: out of memory"),
        (SystemExit(3), "SystemExit: 3"),
    ],
)
async def test_a_load_that_fails_says_why_and_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, says: str
) -> None:
    models, begun, over = loading(monkeypatch, error, "loaded")
    over.set()
    with pytest.raises(ModelError, match=says):
        await models.load("")
    await models.load("")
    assert len(begun) == 2


def test_the_certificate_is_about_the_passages_that_nobody_planted(models: Models, state: State) -> None:
    attacked = state_of(pressed(models, "poison", state, attack="pia", rank=1)[-1]["state"])
    [found] = pressed(models, "certificate", attacked, corruption_size=1, attack="modification")
    assert "at worst 1" in json.dumps(found, ensure_ascii=False)


@pytest.mark.parametrize(
    ("change", "asked", "says"),
    [
        ({"answer": ""}, {}, "right answer is empty"),
        ({"method": "vanilla"}, {}, "no certificate"),
        ({}, {"corruption_size": 99}, "corruption_size"),
        ({}, {"attack": "bribery"}, "attack must be"),
    ],
)
def test_what_cannot_be_certified_is_said_in_words(
    models: Models, state: State, change: dict[str, Any], asked: dict[str, Any], says: str
) -> None:
    with pytest.raises(StateError, match=says):
        pressed(
            models, "certificate", replace(state, **change), **{"corruption_size": 1, "attack": "injection", **asked}
        )
