"""The README's two commands stand in fenced blocks, from which they are copied."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from robustrag_integrations import CallableModel, ConsensusAggregation, Passage, RobustAnswer

ROOT = Path(__file__).parents[2]


def test_the_first_two_blocks_are_targets_of_the_makefile() -> None:
    readme, makefile = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "Makefile"))
    blocks = re.findall(r"^```(?:sh|bash)\n(.*?)^```$", readme, re.M | re.S)
    assert blocks[:2] == ["make demo\n", "make test\n"]
    assert all(re.search(rf"^{block.split()[1]}:", makefile, re.M) for block in blocks[:2])


def asked(votes: tuple[int, ...], **rules: int) -> RobustAnswer:
    """An answer of as many sources as votes, for answers A, B, ..."""
    said = [f"Answer{chr(65 + answer)}" for answer, count in enumerate(votes) for _ in range(count)]
    model = CallableModel(lambda prompt: next(s for n, s in enumerate(said) if f"page {n}." in prompt), samples=False)
    passages = [Passage(f"page {n}.", origin=f"{n}.example") for n in range(len(said))]
    return ConsensusAggregation(model, **rules).answer("Who won?", passages)


def test_a_sole_source_is_shown_and_min_radius_withholds_it() -> None:
    shown, withheld = asked((1,)), asked((1,), min_radius=1)
    assert (shown.text, shown.radius, shown.abstained) == ("AnswerA", 0, False)
    assert shown.for_prompt().abstained
    assert (withheld.text, withheld.abstained) == ("I don't know", True)
    assert any("min_radius=1" in warning for warning in withheld.warnings)


def test_the_examples_run_and_agree(capsys: pytest.CaptureFixture[str]) -> None:
    for module in ("transformers", "langchain_core", "llama_index.core"):
        pytest.importorskip(module)
    names: dict[str, object] = {}
    for snippet in re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S):
        exec(snippet, names)
    out = capsys.readouterr().out
    assert re.findall("^Tarsk .*$", out, re.M) == ["Tarsk trusted"] * 2
    assert re.findall("^Answer: +(.*)$", out, re.M) == ["Tarsk"]
    assert "no other source" in out
