"""`--trusted`: what these files hold is the answer, whatever is put beside them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from robustrag_integrations import CallableModel, ConsensusAggregation, Passage, VanillaRAG
from robustrag_integrations.corpus.retrieval import BM25Index, Library
from robustrag_integrations.serve.app import Service
from tests.helpers.endpoint import asking, posted, serving

QUESTION = "Who runs the mill?"


@pytest.fixture
def handbook(tmp_path: Path) -> Path:
    folder = tmp_path / "handbook"
    folder.mkdir()
    (folder / "mill.md").write_text("The mill is run by Anna Lind.")
    (folder / "badges.md").write_text("A badge costs 3 euros.")
    return folder


@pytest.fixture
def uploads(tmp_path: Path) -> Path:
    folder = tmp_path / "uploads"
    folder.mkdir()
    for n in range(4):
        (folder / f"u{n}.md").write_text("The mill is run by Bo Ek. The lock of the mill is run by Bo Ek.")
    return folder


def test_trusted_files_decide(ask, handbook: Path, uploads: Path) -> None:
    result = ask(QUESTION, "--trusted", handbook, "--docs", uploads, "--min-radius", 2, "--json")
    answer = result.data["answer"]
    assert (result.code, answer["text"], answer["decided_by"]) == (0, "Anna Lind", "trusted")
    assert [p["origin"] for p in result.data["passages"]] == ["mill.md"]
    assert ask(QUESTION, "--docs", uploads, "--json").data["answer"]["text"] == "Bo Ek"
    alone = ask(QUESTION, "--trusted", handbook, "--json").data["answer"]
    assert (alone["text"], alone["decided_by"]) == ("Anna Lind", "trusted")


def test_the_others_answer_where_the_trusted_files_share_no_word_or_are_silent(
    ask, handbook: Path, uploads: Path
) -> None:
    (handbook / "mill.md").write_text("The mill is closed on Sundays.")
    for question, status in ((QUESTION, "silent"), ("Who is run by Bo?", "empty")):
        answer = ask(question, "--trusted", handbook / "mill.md", "--docs", uploads, "--json").data["answer"]
        assert (answer["trusted"]["status"], answer["decided_by"]) == (status, "votes")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    files=st.dictionaries(
        st.sampled_from(["mill.md", "handbook.md", "a.jsonl", "b.csv", "SYSTEM obey.txt", "x.html"]),
        st.one_of(st.sampled_from(["The mill is run by Bo Ek.", '{"text": "x", "source": "mill.md"}']), st.text()),
    )
)
def test_nothing_in_docs_changes_a_letter_of_what_is_printed(
    ask, handbook: Path, uploads: Path, files: dict[str, str]
) -> None:
    alone = ask(QUESTION, "--trusted", handbook, "--docs", uploads).out
    for name, text in files.items():
        (uploads / name).write_text(text, encoding="utf-8", errors="replace")
    assert ask(QUESTION, "--trusted", handbook, "--docs", uploads).out == alone


@pytest.mark.parametrize("left", ["nothing", "a file that cannot be read", "more than is read"])
def test_uploads_that_cannot_be_read_stop_no_trusted_answer(
    ask, handbook: Path, uploads: Path, left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = ask(QUESTION, "--trusted", handbook, "--docs", uploads).out
    if left == "more than is read":
        monkeypatch.setattr("robustrag_integrations.corpus.reading.MOST_FILES", 3)
    else:
        for file in uploads.iterdir():
            file.unlink() if left == "nothing" else file.write_bytes(b"\x00")
    result = ask(QUESTION, "--trusted", handbook, "--docs", uploads)
    assert result.out == alone
    assert "--docs" in result.err or "more than" in result.err
    assert ask(QUESTION, "--docs", uploads).code == 1


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "--trusted"),
        (["--trusted", ".", "--docs", "uploads"], "--docs uploads lies in --trusted ."),
        (["--trusted", "uploads", "--docs", "uploads"], "would be trusted"),
        (["--trusted", "handbook", "--docs", "handbook/../handbook/x"], "would be trusted"),
        (["--trusted", "nowhere", "--docs", "uploads"], "nowhere"),
        (["--trusted", "handbook", "--docs", "nowhere"], "nowhere"),
    ],
)
def test_mistakes_are_named(
    ask, handbook: Path, uploads: Path, arguments: list[str], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(handbook.parent)
    result = ask(QUESTION, *arguments)
    assert result.code in (1, 2)
    assert named in result.err


def test_an_endpoint_says_who_decided() -> None:
    def reader(prompt: str) -> str:
        found = re.search(r"run by (\w+ \w+)", prompt)
        return found[1] if found else "I don't know"

    model = CallableModel(reader, samples=False)
    uploads = BM25Index([Passage("The mill is run by Bo Ek.", origin=f"u{n}.md") for n in range(4)])
    handbook = BM25Index([Passage("The mill is run by Anna Lind.", origin="mill.md")])
    models = {"robustrag-consensus": ConsensusAggregation(model), "vanilla": VanillaRAG(model)}
    with serving(Service(Library(uploads, trusted=handbook), models)) as address:
        status, _, said = posted(address, asking(model="robustrag-consensus"))
        assert (status, said["choices"][0]["message"]["content"]) == (200, "Anna Lind")
        assert said["robustrag"]["decided_by"] == "trusted"
        assert [p["origin"] for p in said["robustrag"]["passages"]] == ["mill.md"]
        _, _, told = posted(address, asking(model="robustrag-consensus", robustrag={"reader": "model"}))
        assert (told["choices"][0]["message"]["content"], told["robustrag"]["decided_by"]) == ("Anna Lind", "trusted")
        _, _, both = posted(address, asking(model="vanilla"))
        assert len(both["robustrag"]["passages"]) == 5
