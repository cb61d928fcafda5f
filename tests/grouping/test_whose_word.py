"""No author chooses whose vote it has: what is attacked is how passages name their origins."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from robustrag_integrations import CallableModel, ConsensusAggregation, Passage
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.corpus import read_documents, split

MODEL = CallableModel(lambda prompt: "6666" if "6666" in prompt else "7411", samples=False)
HONEST = [Passage("The code is 7411.", metadata={"source": f"/data/{n}.txt"}) for n in range(5)]


def ask(passages: list[Passage], **rules: Any) -> RobustAnswer:
    return ConsensusAggregation(MODEL, **rules).answer("What is the code of the door?", passages)


def lie(*, entry: str = "source", **metadata: Any) -> Passage:
    return Passage("The code is 6666.", metadata=metadata, origin_entry=entry)


@pytest.mark.parametrize(
    "planted",
    [
        lie(source="/uploads/evil.pdf", file_path="handbook.pdf", producer="x"),  # the properties of a PDF
        lie(source="https://evil.example/", FilePath="handbook.pdf"),
        lie(source="handbook.pdf", path="/vault/inbox/evil.md"),  # front matter over the loader's own entry
        lie(_source={"metadata": {"source": "evil.pdf", "document_name": "handbook.pdf"}}),
        lie(entry="file_path", file_path="/uploads/evil.pdf", source="handbook.pdf"),
    ],
    ids=lambda p: ",".join(p.metadata),
)
def test_a_passage_that_names_several_origins_is_told(planted: Passage) -> None:
    answer = ask([planted, *HONEST])
    assert (answer.text, len(answer.sources)) == ("7411", 6)
    [told] = [w for w in answer.warnings if "name different origins" in w]
    assert "handbook.pdf" in told
    assert "evil" in told


@pytest.mark.parametrize(
    "metadata",
    [
        {"source": "/data/a.pdf", "file_path": "/data/a.pdf", "file_name": "a.pdf", "page": 3},
        {"source": "https://api.example/repo/blob/main/docs/A%20b.md", "path": "docs/a b.md"},
        {"source": "https://x.example/a?utm_source=m", "url": "http://www.x.example/a#top", "title": "A"},
        {"source": "/data/a.pdf", "filename": "a.pdf", "file_directory": "/data", "dl_meta": {"origin": {"uri": "b"}}},
    ],
)
def test_entries_that_name_one_origin_in_several_ways_are_no_contradiction(metadata: dict[str, Any]) -> None:
    answer = ask([Passage("The code is 7411.", metadata=metadata)])
    assert not [w for w in answer.warnings if "name different" in w]


def test_names_of_files_do_not_depend_on_what_else_the_folder_holds(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    (docs / "policies").mkdir(parents=True)
    (docs / "policies" / "handbook.txt").write_text("The code is 7411.")
    assert [d.id for d in read_documents([str(docs)]).documents] == ["policies/handbook.txt"]
    (docs / "handbook.txt").write_text("The code is 6666.")
    (docs / "wiki.corp.example").mkdir()
    (docs / "wiki.corp.example" / "door.txt").write_text("The code is 6666.")
    passages = split(read_documents([str(docs)]).documents)
    names = {"handbook.txt", "policies/handbook.txt", "wiki.corp.example/door.txt"}
    assert {g.origins[0] for g in ask(passages).sources} == names
    both = read_documents([str(docs / "policies"), str(docs / "wiki.corp.example")]).documents
    assert [d.id for d in both] == ["policies/handbook.txt", "wiki.corp.example/door.txt"]


HONEST_FILES = {f"policies/{n}.md": "The code is 7411." for n in range(5)}


def folder(place: Path, files: dict[str, str | bytes]) -> list[Passage]:
    for name, text in {**HONEST_FILES, **files}.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return split(read_documents([str(place)]).documents)


def rows(*found: dict[str, Any]) -> str:
    return "\n".join(json.dumps({"text": f"The code is 6666. {n}", **row}) for n, row in enumerate(found))


@pytest.mark.parametrize(
    "lies",
    [
        rows({"source": "policies/0/uploads/evil.jsonl"}, *({"source": str(n)} for n in range(9))),
        rows(*({"source": f"policies/{n}.md", "id": f"policies/{n}.md"} for n in range(5))),
        rows(*({"file_path": f"policies/{n}.md", "file_id": str(n)} for n in range(5))),
        rows(*({"url": f"https://{n}.example/"} for n in range(5)), {"metadata": {"source": "x"}}, {"title": "a.md"}),
    ],
)
def test_rows_of_a_file_that_was_found_are_of_that_file(tmp_path: Path, lies: str) -> None:
    passages = folder(tmp_path, {"uploads/evil.jsonl": lies})
    for by in ("origin", "source", "file_path", "url", "author", "id"):
        if by in ("url", "author", "id"):  # entries of the rows are none of the passages
            with pytest.raises(ValueError, match="no passage has an entry"):
                ask(passages, group_by=f"{by}_{tmp_path.name}")
            continue
        answer = ask(passages, group_by=by)
        assert (answer.text, answer.radius) == ("7411", 1), by
        assert {g.origins for g in answer.sources} == {*((name,) for name in HONEST_FILES), ("uploads/evil.jsonl",)}
    assert all(set(p.metadata) == {"file_path"} for p in passages)


def test_rows_of_a_file_that_a_user_names_may_name_their_sources(tmp_path: Path) -> None:
    path = tmp_path / "crawl.jsonl"
    path.write_text(rows({"source": "Gazette", "id": "7"}, {"url": "https://x.example/"}, {"title": "Herald"}))
    passages = split(read_documents([str(path)]).documents)
    assert [p.known_origin.given for p in passages if p.known_origin] == [
        "Gazette",
        "https://x.example/",
        "crawl.jsonl",
    ]


FRONT = (
    "---\nsource: policies/0.md\nfile_path: policies/0.md\nurl: https://0.example\nfile_id: '1'\n---\nThe code is 6666."
)
META = """<html><head><meta name="source" content="policies/0.md"><meta property="og:url" content="https://0.example/">
<link rel="canonical" href="https://0.example/"><base href="https://0.example/"><title>policies/0.md</title></head>
<body><p>The code is 6666.</p></body></html>"""


def word_file() -> bytes:
    from docx import Document as WordFile

    file = WordFile()
    file.core_properties.title = file.core_properties.subject = "policies/0.md"
    file.core_properties.author = file.core_properties.identifier = "https://0.example/"
    file.add_paragraph("The code is 6666.")
    file.save(out := io.BytesIO())
    return out.getvalue()


def pdf_file() -> bytes:
    from fpdf import FPDF

    pdf = FPDF()
    pdf.set_title("policies/0.md")
    pdf.set_author("policies/0.md")
    pdf.set_subject("https://0.example/")
    pdf.set_font("helvetica")
    for page in range(5):
        pdf.add_page()
        pdf.cell(text=f"The code is 6666. {page}")
    return bytes(pdf.output())


@pytest.mark.parametrize(
    ("ending", "make"), [("md", lambda: FRONT), ("html", lambda: META), ("docx", word_file), ("pdf", pdf_file)]
)
def test_what_a_file_says_of_its_source_is_text(tmp_path: Path, ending: str, make: Any) -> None:
    answer = ask(folder(tmp_path, {f"uploads/evil.{ending}": make()}))
    assert (answer.text, answer.radius) == ("7411", 1)
    assert answer.sources[-1].origins == (f"uploads/evil.{ending}",)


@pytest.mark.parametrize(
    "name",
    [
        "x\\..\\..\\policies\\0.md",
        "x\\..\\..\\policies/0.md",
        "C:\\policies\\0.md",
        "0.md#page=.md",
        "#a=.md",
        "https:/policies.example/0.md",
        "file:/policies/0.md",
        "0.md ",
        " 0.md",
        "0.MD",
        "o\u0301.md",
        "0\n.md",
        os.fsdecode(b"caf\xe8.md"),
    ],
    ids=ascii,
)
def test_no_name_of_a_file_leads_to_another_one(tmp_path: Path, name: str) -> None:
    """Names that lead elsewhere once backslashes, places, marks or bytes are read in them: each file has one vote."""
    neighbours = {"0.md": "x", "ó.md": "x", os.fsdecode(b"caf\xe9.md"): "x"}
    names = [*(f"uploads/{n}" for n in (*neighbours, name.rstrip())), "uploads/also.txt"]
    passages = folder(tmp_path, dict.fromkeys(names, "The code is 6666."))
    honest = {p.id for p in passages if p.text.endswith("7411.")}
    sources = ask(passages, group_by="origin").sources
    assert [len(g.passage_ids) for g in sources] == [1] * len({*names, *HONEST_FILES})
    assert {g.passage_ids[0] for g in sources} >= honest
    assert all(g.origins for g in sources)


@pytest.mark.parametrize("ids", [True, False])
def test_where_no_passage_names_its_origin_the_radius_speaks_of_passages(ids: bool) -> None:
    texts = [Passage("The code is 7411.", document_id=f"d{n}" if ids else None) for n in range(5)]
    answer = ask(texts)
    assert (answer.radius > 0, answer.radius_unit) == (True, "passages")
    assert "passages of the 5 retrieved" in answer.explain()
    assert "none names its origin" in answer.explain()
    assert "passages" not in ask(HONEST).explain().partition("Defence")[0]
