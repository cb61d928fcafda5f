"""`robustrag ask`: real documents, hostile documents, users' mistakes."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from robustrag_integrations.cli.options import MOST_SKIPPED
from tests.helpers.openai_server import LoopbackServer, Reply, obedient_reader

QUESTION = "Who runs the mill?"


def test_an_answer_comes_with_radius_sources_and_who_said_what(ask, docs: Path) -> None:
    result = ask(QUESTION, "--docs", docs)
    assert (result.code, result.err) == (0, "")
    assert "Answer:   Anna Lind" in result.out
    assert "Radius:   2" in result.out
    assert "note3.txt" in result.out


def test_rows_of_a_file_that_name_no_source_share_one_vote_and_are_told_so(ask, tmp_path: Path) -> None:
    rows = [{"text": f"The mill is run by Anna Lind. {n}"} for n in range(5)]
    path = tmp_path / "d.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    result = ask(QUESTION, "--docs", path, "--per-source", 5, "--json")
    assert len(result.data["answer"]["sources"]) == 1
    assert result.data["answer"]["radius"] == 0
    assert "--group-by passage" in result.err
    assert ask(QUESTION, "--docs", path, "--group-by", "passage", "--json").data["answer"]["radius"] == 2


def test_choices_are_voted_on(ask, docs: Path) -> None:
    result = ask(QUESTION, "--docs", docs, "--choices", "Bo Ek", "Anna Lind", "--json")
    assert result.data["answer"]["method"] == "voting"
    assert (result.data["answer"]["text"], result.data["answer"]["choice"]) == ("Anna Lind", 1)


@pytest.fixture
def by_meaning() -> Iterator[list[str]]:
    """A server that chats and embeds, for which "boss" and "run" mean the same; the options that name it."""

    def reply(request: dict) -> str | Reply:
        if "input" not in request:
            return obedient_reader(request["messages"][-1]["content"])
        vectors = [[1.0, 0.0] if re.search(r"\b(boss|run)\b", text) else [0.0, 1.0] for text in request["input"]]
        data = [{"index": n, "embedding": vector} for n, vector in enumerate(vectors)]
        return Reply(body=json.dumps({"data": data}).encode())

    with LoopbackServer(reply, whole_requests=True) as server:
        yield ["--model", "openai:m", "--base-url", server.url, "--embedding", "openai:e"]


def test_an_embedding_model_finds_what_shares_no_word(command, docs: Path, by_meaning: list[str]) -> None:
    asked = ("ask", "Boss?", "--docs", docs)
    result = command(*asked, *by_meaning)
    assert result.code == 0
    assert "Answer:   Anna Lind" in result.out
    result = command(*asked, *by_meaning[:4])
    assert result.code == 3
    assert "no passage shares a word with the question; --embedding finds by meaning" in result.err
    elsewhere = ["--model", "python:tests.evaluation.light:answer", *by_meaning[4:], "--embedding-url", by_meaning[3]]
    assert len(command(*asked, *elsewhere, "--json").data["answer"]["sources"]) == 6


def test_on_a_terminal_waiting_shows_how_many_sources_were_asked(ask, docs: Path, monkeypatch) -> None:
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda self: True)
    assert re.search(
        r"\rasking about \d+ passages: (\d+) of \1 sources asked \(\d+ s\)\n", ask(QUESTION, "--docs", docs).err
    )


def test_the_first_skipped_files_are_named_and_the_others_counted(ask, docs: Path) -> None:
    for n in range(MOST_SKIPPED):
        (docs / f"photo{n}.jpg").touch()
    for n in range(3):  # of which a part is read: files that are not read at all are named before them
        (docs / f"hidden{n}.md").write_text("Nobody <!-- hidden --> is here.")
    result = ask(QUESTION, "--docs", docs)
    *named, more = result.err.splitlines()
    assert len(named) == MOST_SKIPPED
    assert named[0].endswith("photo0.jpg: unknown kind of file (.jpg)")
    assert more == "robustrag: skipped: and 3 more"
    assert len(ask(QUESTION, "--docs", docs, "--json").data["skipped"]) == MOST_SKIPPED + 3


# Hostile documents


HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07 \u202eesrever\u202c {query} {{0}} %s ${HOME} {% import os %} <|im_end|></s>[INST] "
    "\u200b\ud7ff \x00"
).replace("\x00", "\x08")


@pytest.mark.parametrize("output", [[], ["--json"]], ids=["text", "json"])
def test_nothing_of_a_document_its_name_or_the_model_reaches_the_terminal_as_a_command(
    command, docs: Path, output
) -> None:
    (docs / "\x1b[31m\u202egnp.txt").write_text(f"The mill is run by Anna Lind. {HOSTILE}", encoding="utf-8")
    (docs / "\x1b[31mbroken.pdf").write_text(HOSTILE, encoding="utf-8")
    with LoopbackServer(lambda prompt: "\x1b[2JAnna\u202e Lind\r\n\u202e") as server:
        where = ("--docs", docs, "--model", "openai:m", "--base-url", server.url)
        result = command("ask", QUESTION, *where, *output)
    assert result.code == 0
    for text in (result.out, result.err):
        assert not set(text) & set("\x1b\x07\x08\x9b\u202e\u202c\u200b")
    assert "skipped" in result.err


# Users' mistakes


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["", "--docs", "."], "QUESTION: the text is empty"),
        (["q"], "--docs"),
        (["q", "--docs", ".", "--model", "gpt-4o"], "unknown model 'gpt-4o'"),
        (["q", "--docs", ".", "--base-url", "http://x/v1"], "--base-url goes with openai:NAME"),
        (["q", "--docs", ".", "--model", "openai:m", "--base-url", "localhost:8000"], "must start with http"),
        (["q", "--docs", ".", "--method", "magic"], "invalid choice: 'magic'"),
        (["q", "--docs", ".", "--method", "voting"], "needs the options to vote on"),
        (["q", "--docs", ".", "--method", "keyword", "--choices", "a", "b"], "--choices does not go with"),
        (["q", "--docs", ".", "--method", "decoding", "--model", "openai:m"], "token probabilities"),
        (["q", "--docs", ".", "--method", "keyword", "--set", "alpha=2"], "alpha"),
        (["q", "--docs", ".", "--method", "keyword", "--set", f"beta={'9' * 9999}"], "beta"),
        (["q", "--docs", ".", "--set", "alpha"], "not of the form NAME=VALUE"),
        (["q", "--docs", ".", "--set", "alhpa=0.3"], "did you mean alpha"),
        (["q", "--docs", ".", "--method", "keyword", "--set", "eta=1"], "eta is for method='decoding'"),
        (["q", "--docs", ".", "--set", "max_new_tokens=9"], "how long a reply may be is said where the model"),
        (["q", "--docs", ".", "--method", "keyword", "--set", "stop_when_decided=true"], "needs what all sources say"),
        (
            ["q", "--docs", ".", "--min-radius", "1", "--method", "vanilla"],
            "min_radius does nothing for --method vanilla",
        ),
        (["q", "--docs", ".", "--top-k", "0"], "not a whole number"),
        (["q", "--docs", ".", "--group-by", " "], "the text is empty"),
    ],
)
def test_wrong_usage_exits_with_2_and_names_the_fix(command, arguments: list[str], said: str) -> None:
    result = command("ask", *arguments)
    assert (result.code, result.out) == (2, "")
    assert said in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("rows.jsonl", b'{"text": oops}\n', "rows.jsonl, line 1: not JSON"),
        ("cut.pdf", b"%PDF-1.7\n", "is not a PDF that can be read"),
        ("table.ods", b"PK", "unknown kind of file"),
        ("empty.txt", b"", "no text in"),
    ],
)
def test_a_file_that_cannot_be_read_exits_with_1_and_names_it(ask, tmp_path, name: str, data: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(data)
    result = ask(QUESTION, "--docs", tmp_path / name)
    assert (result.code, result.out) == (1, "")
    assert said in result.err
    assert len(result.err.splitlines()) == 1


# Local models


# What one vote is


def test_rules_of_votes_and_thresholds_reach_the_core(ask, docs: Path) -> None:
    (docs / "mirror.txt").write_text((docs / "note0.txt").read_text())
    flags = (
        "--method",
        "keyword",
        "--set",
        "alpha=0.5",
        "--set",
        "beta=4",
        "--min-radius",
        9,
    )
    result = ask(QUESTION, "--docs", docs, *flags, "--group-by", "origin", "--json")
    answer = result.data["answer"]
    assert (answer["settings"]["alpha"], answer["settings"]["beta"]) == ("1/2", 4)
    assert result.code == 3


def test_a_list_is_asked_for_and_shown_claim_by_claim(ask, docs: Path) -> None:
    result = ask(QUESTION, "--docs", docs, "--task", "list", "--set", "min_support=3")
    assert (result.code, result.err) == (0, "")
    assert "Claim:    Anna Lind (" in result.out
    found = ask(QUESTION, "--docs", docs, "--task", "list", "--json").data["answer"]
    assert [claim["text"] for claim in found["claims"]] == ["Anna Lind"]
    assert found["method"] == "consensus"


def test_any_setting_may_be_typed_and_files_in_parts(ask, docs: Path) -> None:
    answer = ask(QUESTION, "--docs", docs, "--set", "stop-when-decided=true", "--json").data["answer"]
    assert answer["settings"]["stop_when_decided"] is True
    none = ask("Who runs the harbour?", "--docs", docs, "--set", "abstention=Nobody says, ask at the desk", "--json")
    assert none.data["answer"]["text"] == "Nobody says, ask at the desk"
    notes = [docs / f"note{n}.txt" for n in range(3)]
    result = ask(QUESTION, "--docs", notes[0], "--docs", notes[1], notes[2], "--json")
    assert len(result.data["answer"]["sources"]) == 3
