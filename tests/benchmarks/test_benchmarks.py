"""The benchmarks run, measure what they say, and judge a ratio by its target."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from benchmarks import exactness, keyword, real, trusted
from benchmarks.__main__ import main
from benchmarks.inference import Bench, ratios
from benchmarks.results import Ratio, as_table
from benchmarks.timing import Clock
from benchmarks.workload import Scene, random_llama, word_tokenizer
from robustrag_integrations.reader import reader_path


@pytest.fixture(scope="module")
def bench() -> Bench:
    scene = Scene(sources=3, passage=10, query=4, prefix=40)
    return Bench(random_llama("tiny", "cpu"), word_tokenizer(), scene, Clock("cpu"), 1, tokens=2, long_tokens=0)


def test_ratios_are_judged_by_their_median_and_only_where_there_is_a_target() -> None:
    ratio = Ratio("a / b", (1.0, 9.0, 2.0), {"cpu": ("<=", 2.5), "cuda": (">=", 2.5)})
    assert (ratio.met("cpu"), ratio.met("cuda")) == (True, False)
    assert Ratio("c / d", (1.0,)).met("cpu") is None
    assert "MISSED" in as_table([ratio], "cuda")
    assert ratio.as_dict("cpu")["max"] == 9.0


def test_inference_keyword_and_exactness_measure_on_a_small_scene(bench: Bench) -> None:
    found = {r.name: r for r in [*ratios(bench), *keyword.ratios(bench), *exactness.ratios(bench)]}
    assert found["prefill tokens, ours / naive"].values[0] < 0.8
    assert found["benign rows moved by content, length or rank"].values == (0.0,)
    assert all(value > 0 for name, r in found.items() if "/" in name for value in r.values)
    names = " ".join(found)
    assert all(part in names for part in ("ours cold", "ours warm", "vanilla warm", "naive", "query first"))


def test_a_real_model_is_measured_beside_plain_transformers(tmp_path, capsys, monkeypatch) -> None:
    rows = (real.reading, real.replies, real.decoding, real.cache)
    monkeypatch.setattr(real, "ROWS", rows)
    monkeypatch.setattr(real, "AROUND", ())
    arguments = ["--only", "real", "--model", str(reader_path()), "--repeats", "1", "--device", "cpu"]
    assert main([*arguments, "--out", str(tmp_path)]) == 0
    found = {r["name"]: r for r in json.loads((tmp_path / "benchmarks.json").read_text())["ratios"]}
    assert found["prompts asked again when one passage of ten is new"]["median"] == 0
    assert 1 <= found["prompt tokens computed / those that no prefix saves"]["median"] < 1.2
    assert found["ten isolated replies, ours / one left-padded batch"]["median"] > 0
    with pytest.raises(SystemExit, match="needs a folder of a model"):
        main(["--quick", "--only", "real", "--device", "cpu", "--out", str(tmp_path)])


def test_trusted_answers_are_measured_beside_both_frameworks(bench: Bench, monkeypatch) -> None:
    monkeypatch.setattr(trusted, "_FIRST", 0)
    monkeypatch.setattr(trusted, "_NEXT", 0)
    found = [*trusted.ratios(bench)]
    assert [r.name.split(",")[0] for r in found] == ["LangChain"] * 2 + ["LlamaIndex"] * 2
    assert all(value > 0 for r in found for value in r.values)


def test_the_command_writes_json(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setitem(
        __import__("benchmarks.__main__", fromlist=["PARTS"]).PARTS,
        "orchestration",
        lambda bench: [Ratio("one / two", (0.5, 0.6), {"cpu": ("<=", 1.0)}, "a note")],
    )
    assert main(["--quick", "--only", "orchestration", "--device", "cpu", "--out", str(tmp_path)]) == 0
    report = json.loads((tmp_path / "benchmarks.json").read_text())
    assert report["ratios"][0]["met"] is True
    assert report["machine"]["dtype"] == "torch.float32"
    assert "one / two" in capsys.readouterr().out
