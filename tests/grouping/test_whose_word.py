"""No author chooses whose vote it has: what is attacked is how passages name their origins."""

from __future__ import annotations

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
    assert (answer.text, len(answer.groups)) == ("7411", 6)
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
    assert {g.origins[0] for g in ask(passages).groups} == names
    both = read_documents([str(docs / "policies"), str(docs / "wiki.corp.example")]).documents
    assert [d.id for d in both] == ["policies/handbook.txt", "wiki.corp.example/door.txt"]


@pytest.mark.parametrize("ids", [True, False])
def test_where_no_passage_names_its_origin_the_radius_speaks_of_passages(ids: bool) -> None:
    texts = [Passage("The code is 7411.", document_id=f"d{n}" if ids else None) for n in range(5)]
    answer = ask(texts)
    assert (answer.radius > 0, answer.radius_unit) == (True, "passages")
    assert "passages of the 5 retrieved" in answer.explain()
    assert "none names its origin" in answer.explain()
    assert "passages" not in ask(HONEST).explain().partition("Defence")[0]
