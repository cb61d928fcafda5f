from __future__ import annotations

import re
from pathlib import Path

import pytest

import robustrag_integrations
from robustrag_integrations import DecodingAggregation, KeywordAggregation, MajorityVoting
from tests.helpers.scripted import BARE, BARE_CHOICES, ScriptedDecodingModel, ScriptedModel, split
from tests.helpers.worlds import graded

pytest.importorskip("matplotlib")
from robustrag_integrations.drawing.files import draw, save_picture

PASSAGES = [f"p{i}" for i in range(8)]


def texts(figure) -> str:
    import io

    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    drawn = [t.get_text() for t in figure.findobj(match=lambda a: hasattr(a, "get_text"))]
    return " ".join(drawn)


def test_a_tally_shows_its_words_threshold_and_what_the_attacker_adds(tmp_path) -> None:
    model = ScriptedModel(lambda t: "paris $x$ rome" if t in ("p0", "p1", "p2") else "paris", lambda p: "paris")
    found = KeywordAggregation(model, extractor=split, alpha=0.5, prompts=BARE).certify(
        "What $ is it?", PASSAGES, "paris"
    )
    shown = texts(draw(found))
    assert "paris" in shown
    assert "threshold" in shown
    assert "1 corrupted group can add" in shown
    assert save_picture(found, tmp_path / "tally.png").read_bytes()[:4] == b"\x89PNG"


def test_a_tree_shows_tokens_and_branches(tmp_path) -> None:
    def row(text, prefix):
        if len(prefix) == 3:
            return [1.0, 0, 0, 0]
        return [0, 0.7, 0.25, 0.05] if text else [0, 0, 0, 1.0]

    defense = DecodingAggregation(ScriptedDecodingModel(row), prompts=BARE, eta=2.5, slack=0.0, max_new_tokens=4)
    found = defense.certify("q", PASSAGES, "a", metric=graded)
    shown = texts(draw(found))
    assert "the attacker chooses between these" in shown
    assert "<end>" in shown
    assert save_picture(found, tmp_path / "tree.svg").read_text().lstrip().startswith("<?xml")


def test_votes_are_drawn_and_nothing_is_refused_with_a_reason() -> None:
    voting = MajorityVoting(ScriptedModel(lambda t: "A"), prompts=BARE_CHOICES)
    assert "right" in texts(draw(voting.certify("q", PASSAGES, "right", choices=["right", "left"])))
    empty = voting.certify("q", ["p"], "right", choices=["right", "left"])
    with pytest.raises(ValueError, match="no untouched group"):
        draw(empty)


def test_a_dictionary_is_drawn_like_the_certificate_it_was_made_of() -> None:
    voting = MajorityVoting(ScriptedModel(lambda t: "A"), prompts=BARE_CHOICES)
    found = voting.certify("q", PASSAGES, "right", choices=["right", "left"])
    assert texts(draw(found.to_dict())) == texts(draw(found))


def test_matplotlib_is_imported_by_one_module_alone() -> None:
    package = Path(robustrag_integrations.__file__).parent
    importing = re.compile(r"^\s*(?:import|from) matplotlib", re.MULTILINE)
    found = [path for path in package.rglob("*.py") if importing.search(path.read_text(encoding="utf-8"))]
    assert [path.relative_to(package).as_posix() for path in found] == ["drawing/files.py"]
