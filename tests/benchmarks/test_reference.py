"""The comparison with the paper's code, as far as it goes without that code: what it refuses, plants and counts."""

from __future__ import annotations

import itertools
import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("spacy")

from benchmarks import beside
from benchmarks.__main__ import main
from benchmarks.beside import PAIRS, PARTS, Measured, judged
from benchmarks.in_turn import Asked, Done, compared
from benchmarks.paper_code import DEFENSE, EVICTED, MENDED, MODELS, lettered, paper_code, templates
from benchmarks.reference import Found, attacks, summary
from benchmarks.results import as_table
from benchmarks.timing import Clock
from robustrag_integrations import MajorityVoting
from robustrag_integrations.evaluation.data.questions import EvalQuestion
from robustrag_integrations.models.callable import CallableModel
from robustrag_integrations.passages import isolate

QUESTION = EvalQuestion("1", "Who runs the mill?", ("Anna Lind",), incorrect="Karl Gross")
TEXTS = ["Anna Lind runs the mill.", "The mill is run by Anna Lind.", "Fog forms in autumn.", "Anna Lind."]


def checkout(folder: Path, *missing: str) -> Path:
    """A folder that looks like the paper's code as far as it is patched."""
    (folder / "src").mkdir()
    defense = [f"# {old}" for old, _, _ in DEFENSE if old not in missing]
    (folder / "src" / "defense.py").write_text("\n".join([*defense, f'EVICTS = "{EVICTED}"']))
    (folder / "src" / "models.py").write_text("\n".join(f"# {old}" for old, _, _ in MODELS))
    return folder


CODE = """
import os

class RRAG:
    def __init__(self, reader):
        pass

    def query_undefended(self, item):
        print("asked in", os.getpid())
        return item["answer"][0]
"""
READER = """
CONTEXT_MAX_TOKENS = {}

class HFModel:
    def __init__(self, *given, **options):
        pass
"""


def test_a_folder_without_the_code_and_another_commit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="is no checkout"):
        paper_code(tmp_path)
    with pytest.raises(SystemExit, match=r"check out the right commit: git clone .* checkout 9bc35b2"):
        paper_code(checkout(tmp_path, '"en_core_web_sm"'))


def test_the_part_reference_asks_for_the_checkout_before_anything_is_measured(capsys, tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main(["--only", "reference"])
    assert "needs --reference PATH, a checkout of github.com/inspire-group/RobustRAG" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="is no checkout"):
        main(["--only", "reference", "--reference", str(tmp_path / "nowhere")])
    with pytest.raises(SystemExit):
        main(["--questions", "0"])
    assert "--questions: '0' is not a whole number from 1" in capsys.readouterr().err


def test_each_pair_is_measured_in_a_process_of_its_own_with_what_was_asked_for(monkeypatch, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    done = asdict(Measured((1.5, 1.7), 2, {"reference": 1, "ours": 2}, {"reference": 0, "ours": 0}))
    started: list[tuple[str, ...]] = []
    monkeypatch.setattr(beside, "figures", lambda *command: started.append(command) or json.loads(json.dumps(done)))
    monkeypatch.chdir(checkout(tmp_path))
    asked = ["--quick", "--only", "reference", "--reference", ".", "--device", "cpu", "--out", "out"]
    for parts in (PARTS, ["voting"]):
        assert main([*asked, "--questions", "2", "--repeats", "3", "--reference-parts", *parts]) == 0
    settings = ("--rounds", "3", "--questions", "2", "--threads", "1", "--device", "cpu")
    whole = [("-m", "benchmarks.in_turn", str(tmp_path), name, *settings) for name in PAIRS]
    assert started == [*whole, *(one for one in whole if one[3] in ("voting, clean", "voting, attacked"))]
    report = json.loads((tmp_path / "out" / "benchmarks.json").read_text())
    assert [(one["name"], one["median"], one["met"]) for one in report["ratios"][:2]] == [
        ("voting, clean: reference / ours", 1.6, True),
        ("voting, clean: right, ours / reference", 2.0, True),
    ]


def test_what_two_processes_measure_stands_in_one_table(tmp_path: Path, capfd) -> None:
    pytest.importorskip("matplotlib")
    folder = checkout(tmp_path)
    (folder / "src" / "defense.py").open("a").write(CODE)
    (folder / "src" / "models.py").open("a").write(READER)
    asked = ["--quick", "--only", "reference", "--reference", str(folder), "--device", "cpu"]
    asked += ["--out", str(tmp_path / "out"), "--questions", "1", "--repeats", "1", "--reference-parts", "vanilla"]
    assert main(asked) == 0
    table, progress = capfd.readouterr()
    rows = [line[:58].strip() for line in table.splitlines()[1:]]
    assert rows == [
        "vanilla, clean: reference / ours",
        "vanilla, clean: right, ours / reference",
        "vanilla, attacked: reference / ours",
        "vanilla, attacked: right, ours / reference",
    ]
    processes = {line for line in progress.splitlines() if line.startswith("asked in ")}
    assert len(processes - {f"asked in {os.getpid()}"}) == 2


def test_the_source_is_patched_in_memory_and_stays_as_it_is(tmp_path: Path) -> None:
    source = (checkout(tmp_path) / "src" / "defense.py").read_text()
    assert paper_code(tmp_path).defense.EVICTS == EVICTED
    assert paper_code(tmp_path, mend=True).defense.EVICTS == MENDED
    assert (tmp_path / "src" / "defense.py").read_text() == source


def test_both_ask_the_reader_in_the_same_words() -> None:
    choices = ["Anna Lind", "Karl Gross", "Nobody", "Ole Berg"]
    settings = MajorityVoting(CallableModel(lambda prompt: "A")).settings
    [ours] = settings.isolated_prompts(QUESTION.question, isolate(TEXTS[:1]), choices)
    named = dict(zip("ABCD", choices, strict=True))
    filled = templates()["qa-mc"].format(context_str=TEXTS[0], query_str=QUESTION.question, **named)
    assert filled == ours.text


def test_a_reply_becomes_the_letter_of_the_option_that_it_names() -> None:
    choices = ["Anna Lind", "Karl Gross", "Nobody", "Ole Berg"]
    assert [lettered(t, choices) for t in ("It is karl gross.", "Anna Lind", "the fog")] == ["B.", "A.", "E."]


def test_both_codes_take_turns_and_what_they_got_right_is_counted(monkeypatch) -> None:
    order: list[str] = []
    seconds = itertools.chain([0, 50, 50, 51, 51, 52, 52, 53], itertools.count(100))  # the very first answer is slow
    monkeypatch.setattr(Clock, "read", lambda self: float(next(seconds)))

    def said(name: str, right: bool) -> Done:
        order.append(name)
        return Done(right, certified=2)

    asked = [Asked(QUESTION, tuple(TEXTS))] * 2
    works = (lambda a: said("paper", False)), (lambda a: said("ours", True))
    measured = compared("voting", asked, *works, 1, Clock("cpu"))
    assert order == ["ours", "paper", "paper", "ours"] * 2  # the first round is not counted
    found = list(judged(PAIRS["voting, clean"], measured))
    assert [(r.name, r.values) for r in found] == [
        ("voting, clean: reference / ours", (1.0,)),
        ("voting, clean: right, ours / reference", (2.0,)),
        ("voting, clean: certified, ours / reference", (1.0,)),
    ]
    assert "MISSED" in as_table(found[:1], "cpu")
    assert found[2].note == "ours 4, reference 4, of 2 questions"


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
