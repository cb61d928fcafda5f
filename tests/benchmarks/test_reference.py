"""The comparison with the paper's code, as far as it goes without that code: what it refuses, plants and counts."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("spacy")

from benchmarks.paper_code import DEFENSE, EVICTED, MENDED, MODELS, paper_code, templates
from benchmarks.reference import attacks
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


def test_attacks_inject_as_many_passages_as_the_certificate_is_about_and_evict_the_last() -> None:
    for name, planted in attacks(QUESTION, TEXTS, 2):
        foreign = [text for text in planted if text not in TEXTS]
        assert (len(planted), len(foreign)) == (4, 2), name
        assert [text for text in planted if text in TEXTS] == TEXTS[:2]
