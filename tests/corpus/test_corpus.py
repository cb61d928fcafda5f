"""From files to ranked passages: what is read, what is refused, and that hostile files remain data."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest
from fpdf import FPDF
from hypothesis import given, settings
from hypothesis import strategies as st

from robustrag_integrations import Passage
from robustrag_integrations.corpus import BM25Index, CorpusError, read_documents, split
from robustrag_integrations.corpus.reading import MOST_NAMED
from tests.helpers.documents import write_pdf


def rows(path: Path, *objects: object) -> Path:
    path.write_text("\n".join(o if isinstance(o, str) else json.dumps(o) for o in objects), encoding="utf-8")
    return path


def texts(*paths: Path) -> list[str]:
    return [d.text for d in read_documents(map(str, paths)).documents]


# Reading


def test_text_markdown_pdf_and_jsonl_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Änne runs the mill.", encoding="utf-8-sig")
    (tmp_path / "b.md").write_text("# Mill\n\nIt is old.", encoding="utf-8")
    write_pdf(tmp_path / "c.pdf", "The first page.", "The second page.")
    rows(tmp_path / "d.jsonl", {"text": "one"}, "", {"text": "two"})
    (tmp_path / "e.rtf").write_text("not read")
    found = texts(tmp_path)
    assert found[:2] == ["Änne runs the mill.", "# Mill\n\nIt is old."]
    assert [word in found[2] for word in ("first page", "second page")] == [True, True]
    assert found[3:] == ["one", "two"]


def test_a_file_is_the_source_of_its_text_and_of_rows_that_name_none(tmp_path: Path) -> None:
    path = rows(
        tmp_path / "d.jsonl",
        {"text": "a", "source": "Gazette", "id": "x"},
        {"text": "b", "source": ""},
        {"text": "c", "id": 7},
    )
    documents = read_documents([str(path)]).documents
    assert [(d.origin, d.id) for d in documents] == [
        ("Gazette", "x"),
        ("d.jsonl", "d.jsonl:2"),
        ("d.jsonl", "7"),
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"text": "cut off', "not JSON"),
        ("[1, 2]", "needs an object"),
        ('{"text": "x", "source": 3}', '"source" must be a string'),
        ('{"text": "x", "title": ["t"]}', '"title" must be a string'),
        pytest.param("[" * 200_000, "JSON|nested", id="nested"),  # an id of its own: programs inherit the test's name
        ('{"text": "x", "n": ' + "9" * 5000 + "}", "not JSON"),
        ("\x1b[2Jboo", "not JSON"),
    ],
)
def test_a_bad_row_is_named_by_its_line(tmp_path: Path, line: str, said: str) -> None:
    path = rows(tmp_path / "d.jsonl", {"text": "fine"}, line)
    found = read_documents([str(path)])
    assert [d.text for d in found.documents] == ["fine"]
    [skipped] = found.skipped
    assert re.search(rf"d\.jsonl, line 2: .*({said})", skipped.reason)
    assert "\x1b" not in skipped.reason
    with pytest.raises(CorpusError, match=rf"d\.jsonl, line 1: .*({said})"):
        texts(rows(tmp_path / "d.jsonl", line))


def test_half_a_surrogate_pair_in_json_becomes_a_replacement_character(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text('{"text": "a\\ud83d b \\ud83d\\ude00", "source": "\\udc00"}')
    [document] = read_documents([str(path)]).documents
    assert (document.text, document.origin) == ("a\ufffd b \U0001f600", "\ufffd")


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.txt", b"\x7fELF\x00\x00\x01", "not text"),
        ("a.txt", "mühle".encode("latin-1"), "not UTF-8"),
        ("a.md", "mill".encode("utf-16"), "not text|not UTF-8"),
        ("a.jsonl", b"\xff\xfe\x00", "not text"),
        ("a.pdf", b"", "not a PDF"),
        ("a.csv", b"\x00", "not text"),
        ("a.ods", b"a,b", "unknown kind of file"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(CorpusError, match=rf"{name}.*({said})"):
        texts(path)


def test_an_encrypted_pdf_says_so_and_one_without_a_password_is_read(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"locked\.pdf is encrypted"):
        texts(write_pdf(tmp_path / "locked.pdf", "secret", password="x"))
    with pytest.raises(CorpusError, match=r"aes\.pdf is encrypted"):
        texts(Path(__file__).parent / "aes.pdf")
    assert "open" in texts(write_pdf(tmp_path / "printing-only.pdf", "open", password=""))[0]


def test_a_file_beyond_the_limit_is_refused_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.txt"
    with open(path, "wb") as file:
        file.truncate(1 << 36)  # sparse: 64 GiB that take no room
    with pytest.raises(CorpusError, match=r"huge\.txt is larger than 64 MiB"):
        texts(path)


# Folders


def test_links_and_hidden_files_in_a_folder_are_left_out(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("a secret")
    docs = tmp_path / "docs"
    (docs / "deep" / "deeper").mkdir(parents=True)
    (docs / ".hidden").mkdir()
    (docs / ".hidden" / "a.txt").write_text("hidden")
    (docs / ".a.txt").write_text("hidden")
    (docs / "deep" / "deeper" / "a.txt").write_text("found")
    (docs / "loop").symlink_to(docs)
    (docs / "self.txt").symlink_to(docs / "self.txt")
    (docs / "out.txt").symlink_to(outside)
    assert texts(docs) == ["found"]


def test_only_plain_files_are_opened_so_that_a_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(CorpusError, match="neither a folder nor a plain file"):
        texts(tmp_path / "pipe.txt")
    (tmp_path / "a.txt").write_text("fine")
    assert texts(tmp_path) == ["fine"]


def test_a_hostile_file_name_is_shown_harmlessly(tmp_path: Path) -> None:
    name = "\x1b[31m\u202e{x}.txt"
    (tmp_path / name).write_bytes(b"\x00")
    with pytest.raises(CorpusError) as caught:
        texts(tmp_path / name)
    assert not {"\x1b", "\u202e"} & set(str(caught.value))
    (tmp_path / os.fsdecode(b"\xff.txt")).write_text("bytes")
    documents = read_documents([str(tmp_path)]).documents
    assert [d.id for d in documents] == ["\\udcff.txt"]


def test_documents_are_named_by_their_path_below_what_they_have_in_common(tmp_path: Path) -> None:
    (tmp_path / "notes" / "old").mkdir(parents=True)
    for name in ("notes/old/a.txt", "notes/a.txt", "b.txt"):
        (tmp_path / name).write_text("x")
    together = read_documents([str(tmp_path / "notes"), str(tmp_path / "b.txt")]).documents
    assert [d.id for d in together] == ["notes/a.txt", "notes/old/a.txt", "b.txt"]
    assert [d.origin for d in read_documents([str(tmp_path / "notes")]).documents] == ["a.txt", "old/a.txt"]


# Splitting


def test_a_short_document_stays_whole_and_a_long_one_is_numbered() -> None:
    found = split([Passage("short", "a", "s"), Passage("One is. " * 20, "b", "t"), Passage("  ", "c", "u")], 60)
    assert (found[0].id, found[0].text) == ("a", "short")
    assert [p.id for p in found[1:]] == ["b#1", "b#2", "b#3"]
    assert {p.origin for p in found[1:]} == {"t"}


@pytest.mark.parametrize("gap", ["\n", "\n\n", " "])
def test_no_passage_begins_between_a_label_and_its_value(gap: str) -> None:
    text = "\n".join(f"Ward {n}, visiting hours:{gap}{n} to {n + 2} pm" for n in range(1, 10))
    for size in range(50, 90):
        found = [p.text for p in split([Passage(text, "a", "s")], size)]
        assert len(found) > 2
        assert not [each for each in found if each[0].isdigit() or each.endswith(":")]


def test_lines_of_a_pdf_are_kept_together_by_what_is_near(tmp_path: Path) -> None:
    pdf = FPDF()
    pdf.add_page()
    for n in range(14):
        for size, height, text in ((11, 6, f"Travel letter {n}"), (11, 6, f"{20 + n} pounds"), (11, 4, "")):
            pdf.set_font("Helvetica", size=size)
            pdf.cell(0, height, text, new_x="LMARGIN", new_y="NEXT")
        if n == 6:
            pdf.set_font("Helvetica", size=18)
            pdf.cell(0, 30, "For drivers", new_x="LMARGIN", new_y="NEXT")
    pdf.output(str(tmp_path / "a.pdf"))
    [document] = read_documents([str(tmp_path)]).documents
    paragraphs = document.text.split("\n\n")
    assert paragraphs[6:8] == ["Travel letter 6\n26 pounds", "For drivers\nTravel letter 7\n27 pounds"]
    assert all(p.text.startswith(("Travel", "For")) for p in split([document], 100))


@settings(max_examples=60, deadline=None)
@given(st.text(st.sampled_from("ab. \n#{}\u3000é\x1b|<"), max_size=600), st.integers(50, 120))
def test_splitting_keeps_every_character_that_can_be_seen(text: str, size: int) -> None:
    found = split([Passage(text, "a", "s")], size)
    assert "".join("".join(p.text.split()) for p in found) == "".join(text.split())
    assert all(len(p.text) <= size for p in found)


# Retrieval


def index(*texts: str, sources: str = "") -> BM25Index:
    return BM25Index([Passage(t, id=str(i), origin=sources[i : i + 1] or None) for i, t in enumerate(texts)])


def found(passages: list[Passage]) -> str:
    return "".join(p.id or "?" for p in passages)


def test_the_passage_that_shares_the_rarest_words_comes_first() -> None:
    corpus = index("the mill is old", "the mill of Arlen is old", "a boat", "the old boat")
    assert found(corpus.search("Who runs the mill of Arlen?", 3)) == "10"
    assert found(corpus.search("mill", 1)) == "0"


@pytest.mark.parametrize(
    ("query", "text", "other"),
    [
        ("Who runs the mill?", "The mill belongs to Ada.", "Who we are and how to reach us: who does what."),
        ("How do I renew my card?", "Cards: renew them at the desk.", "How do I do what I do? How I do it."),
        (
            "Wie kann ich den Ausweis verlängern?",
            "Ausweis verlängern: am Tresen.",
            "Wie wir sind und was ich kann.",
        ),
    ],
)
def test_small_words_find_nothing_beside_others(query: str, text: str, other: str) -> None:
    assert [p.text for p in BM25Index([Passage(other), Passage(text)]).search(query, 5)] == [text]
    assert BM25Index([Passage(other)]).search("Who?" if "Who" in other else other, 5)  # alone they do


@pytest.mark.parametrize("query", ["zebra", "the of and", "", "?!", "\x00\x1b[2J", "\ud83d"])
def test_a_query_that_shares_no_word_finds_nothing(query: str) -> None:
    assert index("the mill", "a boat").search(query, 5) == []


def test_one_source_cannot_crowd_out_the_others() -> None:
    corpus = index("mill mill", "mill mill", "mill mill mill", "mill and boat and more", "mill", sources="aaabc")
    assert set(found(corpus.search("mill", 3))) <= set("0124")
    spread = corpus.search("mill", 3, per_source=1)
    assert sorted(p.origin or "" for p in spread) == ["a", "b", "c"]
    assert len(corpus.search("mill", 2, per_source=2)) <= 4
    assert len({p.origin for p in corpus.search("mill", 2, per_source=2)}) == 2


@pytest.mark.parametrize(
    ("query", "text", "other"),
    [
        ("谁经营磨坊?", "第1页。城东的磨坊由李明经营。", "天气很好。"),
        ("水車小屋を経営しているのは誰ですか", "東の水車小屋は李明が経営する。", "天気がいい。"),
        ("ใครเป็นเจ้าของโรงสี", "โรงสีเป็นของสมชาย", "อากาศดี"),
        ("李 Ming?", "李先生叫 Ming。", "天气很好。"),
    ],
)
def test_scripts_without_spaces_are_searched(query: str, text: str, other: str) -> None:
    found = BM25Index([Passage(other), Passage(text)]).search(query, 5)
    assert [passage.text for passage in found] == [text]


def test_files_of_a_folder_that_are_not_read_are_named_with_the_reason(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "a.txt").write_text("Anna Lind runs the mill.")
    for name in ("c.zip", "d.ODS", "README", "e.\x1b[2Jx"):
        (tmp_path / name).write_text("text")
    (tmp_path / "link.txt").symlink_to(tmp_path / "a.txt")
    for name, text in (("empty.md", ""), ("blank.txt", " \n"), ("none.jsonl", "")):
        (tmp_path / name).write_text(text)
    (tmp_path / "f.docx").write_bytes(b"PK")
    (tmp_path / ".hidden").write_text("text")
    monkeypatch.setitem(sys.modules, "docx", None)
    found = read_documents([str(tmp_path)])
    assert [d.origin for d in found.documents if d.text.strip()] == ["a.txt"]
    reasons = {Path(s.path).name: s.reason.removeprefix(f"{tmp_path}/") for s in found.skipped}
    assert "f.docx: reading DOCX files needs docx: pip install 'robustrag-integrations[cli]" in reasons.pop("f.docx")
    assert reasons == {
        "c.zip": "c.zip: unknown kind of file (.zip)",
        "d.ODS": "d.ODS: unknown kind of file (.ODS)",
        "README": "README: unknown kind of file",
        "e.\x1b[2Jx": "e.·[2Jx: unknown kind of file (.·[2Jx)",
        "link.txt": "link.txt: a link; links are not followed",
        "empty.md": "empty.md holds no text",
        "blank.txt": "blank.txt holds no text",
        "none.jsonl": "none.jsonl holds no text",
    }


def test_a_folder_in_which_nothing_can_be_read_names_its_files(tmp_path: Path) -> None:
    for n in range(10):
        (tmp_path / f"{n}.png").touch()
    with pytest.raises(CorpusError) as caught:
        read_documents([str(tmp_path)])
    assert [f"{n}.png: unknown" in str(caught.value) for n in range(10)] == [True] * 8 + [False] * 2
    assert "and 2 more" in str(caught.value)


def test_very_many_files_of_other_kinds_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Anna Lind runs the mill.")
    for n in range(MOST_NAMED + 7):
        (tmp_path / f"{n}.png").touch()
    skipped = read_documents([str(tmp_path)]).skipped
    assert len(skipped) == MOST_NAMED + 1
    assert skipped[-1].reason == "7 more files of folders: links, or of other kinds"
