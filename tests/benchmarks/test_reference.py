"""The comparison with the paper's code, as far as it goes without that code: what it refuses, plants and counts."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from benchmarks.reference import EVICTED, MENDED, PATCHES, Found, attacks, paper_code, summary
from robustrag_integrations.evaluation.data.questions import EvalQuestion

QUESTION = EvalQuestion("1", "Who runs the mill?", ("Anna Lind",), incorrect="Karl Gross")
TEXTS = ["Anna Lind runs the mill.", "The mill is run by Anna Lind.", "Fog forms in autumn.", "Anna Lind."]


def test_a_folder_without_the_code_and_another_commit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="is no checkout"):
        paper_code(tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "defense.py").write_text("pass\n")
    with pytest.raises(SystemExit, match="check out the commit 9bc35b2"):
        paper_code(tmp_path)


def test_the_source_is_patched_in_memory_and_stays_as_it_is(tmp_path: Path) -> None:
    source = "\n".join(f"# {old}" for old, _, _ in PATCHES) + f'\nEVICTS = "{EVICTED}"\n'
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "defense.py").write_text(source)
    assert paper_code(tmp_path).EVICTS == EVICTED
    assert paper_code(tmp_path, mend=True).EVICTS == MENDED
    assert (tmp_path / "src" / "defense.py").read_text() == source


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
