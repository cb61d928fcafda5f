"""The comparison with the paper's code, as far as it goes without that code: what it refuses, plants and counts."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("spacy")

from benchmarks.paper_code import DEFENSE, EVICTED, MENDED, MODELS, lettered, paper_code, templates
from benchmarks.reference import Found, attacks, summary
from robustrag_integrations import MajorityVoting
from robustrag_integrations.evaluation.data.questions import EvalQuestion
from robustrag_integrations.grouping.passages import isolate
from robustrag_integrations.models.callable import CallableModel

QUESTION = EvalQuestion("1", "Who runs the mill?", ("Anna Lind",), incorrect="Karl Gross")
TEXTS = ["Anna Lind runs the mill.", "The mill is run by Anna Lind.", "Fog forms in autumn.", "Anna Lind."]


def checkout(folder: Path, *missing: str) -> Path:
    """A folder that looks like the paper's code as far as it is patched."""
    (folder / "src").mkdir()
    defense = [f"# {old}" for old, _, _ in DEFENSE if old not in missing]
    (folder / "src" / "defense.py").write_text("\n".join([*defense, f'EVICTS = "{EVICTED}"']))
    (folder / "src" / "models.py").write_text("\n".join(f"# {old}" for old, _, _ in MODELS))
    return folder


def test_a_folder_without_the_code_and_another_commit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="is no checkout"):
        paper_code(tmp_path)
    with pytest.raises(SystemExit, match=r"check out the right commit: git clone .* checkout 9bc35b2"):
        paper_code(checkout(tmp_path, '"en_core_web_sm"'))


def test_the_source_is_patched_in_memory_and_stays_as_it_is(tmp_path: Path) -> None:
    source = (checkout(tmp_path) / "src" / "defense.py").read_text()
    assert paper_code(tmp_path).defense.EVICTS == EVICTED
    assert paper_code(tmp_path, mend=True).defense.EVICTS == MENDED
    assert (tmp_path / "src" / "defense.py").read_text() == source


def test_both_ask_the_reader_in_the_same_words() -> None:
    choices = ["Anna Lind", "Karl Gross", "Nobody", "Ole Berg"]
    settings = MajorityVoting(CallableModel(lambda prompt: "A"), options="letters").settings
    [ours] = settings.isolated_prompts(QUESTION.question, isolate(TEXTS[:1]), choices)
    named = dict(zip("ABCD", choices, strict=True))
    filled = templates()["qa-mc"].format(context_str=TEXTS[0], query_str=QUESTION.question, **named)
    assert filled == ours.text


def test_a_reply_becomes_the_letter_of_the_option_that_it_names() -> None:
    choices = ["Anna Lind", "Karl Gross", "Nobody", "Ole Berg"]
    assert [lettered(t, choices) for t in ("It is karl gross.", "Anna Lind", "the fog")] == ["B.", "A.", "E."]


def test_attacks_inject_as_many_passages_as_the_certificate_is_about_and_evict_the_last() -> None:
    for name, planted in attacks(QUESTION, TEXTS, 2):
        foreign = [text for text in planted if text not in TEXTS]
        assert (len(planted), len(foreign)) == (4, 2), name
        assert [text for text in planted if text in TEXTS] == TEXTS[:2]


def test_the_sums_count_who_certifies_and_what_broke() -> None:
    found = [
        Found("q", ("a",), 4, 1, paper=True, ours=True, clean="a"),
        Found("q", ("a",), 4, 2, paper=True, ours=False, clean="a", attack="injection", broken="b"),
        Found("q", ("a",), 4, 2, paper=True, ours=False, clean="a"),
        Found("q", ("a",), 4, 3, paper=False, ours=True, clean="a"),
    ]
    rows = [line.split() for line in summary(found).splitlines()]
    assert rows == [
        ["k", "k-prime", "both", "ours", "paper", "broken"],
        ["4", "1", "1", "0", "0", "0"],
        ["4", "2", "0", "0", "2", "1"],
        ["4", "3", "0", "1", "0", "0"],
        ["all", "1", "1", "2", "1"],
    ]
