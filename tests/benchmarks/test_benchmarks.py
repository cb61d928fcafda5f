"""The benchmarks run, measure what they say, and judge a ratio by its target."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from benchmarks import (
    costs,
    exactness,
    in_turn,
    keyword,
    load,
    load_serve,
    load_tails,
    memory,
    products,
    profile,
    remote,
)
from benchmarks.__main__ import main
from benchmarks.inference import Bench, ratios
from benchmarks.results import Ratio, as_table, said
from benchmarks.scaling import _curves
from benchmarks.timing import Case, Clock, interleave, per_round
from benchmarks.workload import Scene, random_llama, word_tokenizer


@pytest.fixture(scope="module")
def bench() -> Bench:
    scene = Scene(groups=3, passage=10, query=4, prefix=40)
    return Bench(random_llama("tiny", "cpu"), word_tokenizer(), scene, Clock("cpu"), 1, tokens=2, long_tokens=0)


def test_every_word_of_a_scene_is_a_token_and_answers_have_full_length(bench: Bench) -> None:
    scene, tokenizer = bench.scene, bench.tokenizer
    prompts = scene.prompts()
    for text, length in ((scene.question(), 4), (scene.passages()[0], 10), (prompts.isolated.instruction, 40)):
        assert len(tokenizer(text)["input_ids"]) == length
    [said] = bench.model(tokens=7).generate([prompts.no_retrieval.render(query="w1")], "final")
    assert len((said.text or "").split()) == 7


def test_cases_take_turns_and_the_first_round_does_not_count() -> None:
    order: list[str] = []
    cases = {n: Case(lambda n=n: order.append(n), lambda n=n: order.append(f"before {n}")) for n in ("a", "b")}
    seconds = interleave(cases, 2, Clock("cpu"))
    assert order == ["before a", "a", "before b", "b"] * 3
    assert {n: len(s) for n, s in seconds.items()} == {"a": 2, "b": 2}
    assert per_round({"a": [1.0, 4.0], "b": [2.0, 2.0]}, "a", "b") == [0.5, 2.0]


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
    assert all(part in names for part in ("ours cold", "ours warm", "vanilla warm", "naive", "query first", "drafts"))


def test_the_kernel_that_is_taken_is_put_next_to_all_others(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_MULTIPLICATIONS", 1)
    found = products.ratios(bench)
    assert len({ratio.name for ratio in found}) == 6
    assert all(value >= 1 for ratio in found for value in ratio.values)
    monkeypatch.setattr(products, "_kernels", lambda layers, *, laid: iter([("taken", slow), ("other", fast)]))
    assert all(value > 1 for ratio in products.ratios(bench) for value in ratio.values)


def fast(numbers: object, layer: object) -> None:
    pass


def slow(numbers: object, layer: object) -> None:
    sum(range(10_000))


def test_remote_decoding_takes_a_third_of_the_rounds(bench: Bench) -> None:
    rounds, _, requests, _ = remote.ratios(replace(bench, repeats=1))
    assert rounds.met("cpu")
    assert min(requests.values) > 1


def test_a_scaling_curve_has_a_point_per_size(bench: Bench) -> None:
    curves = _curves(replace(bench, repeats=1), "groups m", (2, 4), lambda m: (Scene(4, 6, 3, 20), 4 // m, 2))
    assert {c["variant"] for c in curves} == {"vanilla cold", "ours warm", "naive"}
    assert all(c["x"] == [2, 4] and len(c["seconds"]) == 2 for c in curves)


def test_the_command_writes_json_and_a_picture(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setitem(
        __import__("benchmarks.__main__", fromlist=["PARTS"]).PARTS,
        "orchestration",
        lambda bench: [Ratio("one / two", (0.5, 0.6), {"cpu": ("<=", 1.0)}, "a note")],
    )
    pytest.importorskip("matplotlib")
    assert main(["--quick", "--only", "orchestration", "--device", "cpu", "--out", str(tmp_path)]) == 0
    report = json.loads((tmp_path / "benchmarks.json").read_text())
    assert report["ratios"][0]["met"] is True
    assert report["machine"]["dtype"] == "torch.float32"
    assert (tmp_path / "benchmarks.png").read_bytes().startswith(b"\x89PNG")
    assert "one / two" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "arguments", "said"),
    [
        (main, ["--repeats", "-1"], "--repeats: '-1' is not a whole number from 1"),
        (main, ["--threads", "0"], "--threads: '0' is not a whole number from 1"),
        (main, ["--only", "extraction", "--record", "."], "--record . is a folder"),
        (main, ["--dry-run", "--only", "startup"], "--dry-run derives inference, keyword"),
        (main, ["--quick", "--out", "README.md/x"], "--out: nothing can be written to the folder README.md/x"),
        (profile.main, ["record", "README.md/x.json"], "nothing can be written to the folder README.md"),
        (load.main, ["--out", "README.md"], "--out: nothing can be written to the folder README.md"),
        (load_tails.main, ["--out", "README.md"], "--out: nothing can be written to the folder README.md"),
        (profile.main, ["record", "out.json", "--package", "nowhere"], "no robustrag_integrations in it"),
        (profile.main, ["draw", "no.json", "no.json", "out.png"], "No such file or directory: 'no.json'"),
        (load.main, ["--wait", "nan"], "--wait: 'nan' is not a number from 0 to 60"),
        (load.main, ["--questions", "1", "--processes", "2"], "only 1 questions to share out"),
        (load_serve.main, ["--workers", "0"], "--workers: '0' is not a whole number from 1"),
        (memory.main, ["--questions", "0"], "--questions: '0' is not a whole number from 1"),
        (load_tails.main, ["--slow", "2"], "--slow: '2' is not a number from 0 to 1"),
        (in_turn.main, ["here", "voting, clean", "--rounds", "0"], "--rounds: '0' is not a whole number from 1"),
        (in_turn.main, ["here", "voting"], "argument WORK: invalid choice: 'voting'"),
        (costs.main, ["--questions", "0"], "--questions: '0' is not a whole number from 1"),
    ],
)
def test_wrong_arguments_are_named_before_anything_is_measured(command, arguments, said, capsys) -> None:
    with pytest.raises(SystemExit, match="2"):
        command(arguments)
    assert said in capsys.readouterr().err


def test_cuda_that_is_not_there_is_a_usage_error(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(__import__("benchmarks.__main__", fromlist=["_device"]), "_device", lambda: "cpu")
    with pytest.raises(SystemExit, match="2"):
        main(["--only", "exactness", "--device", "cuda"])
    assert "torch finds no CUDA device here; --dry-run derives" in capsys.readouterr().err


def test_the_help_says_what_each_part_measures(capsys) -> None:
    module = __import__("benchmarks.__main__", fromlist=["PARTS"])
    assert {*module.ABOUT} == {*module.PARTS, module.SCALING, module.REFERENCE}
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    out = capsys.readouterr().out
    assert all(about in out for about in module.ABOUT.values())


def test_ratios_are_said_as_they_are_found(capsys) -> None:
    ratio = Ratio("one / two", (0.5, 0.6, 0.7))
    assert said(ratio) is ratio
    assert capsys.readouterr().err == "  one / two: 0.600\n"


@pytest.mark.parametrize(
    "command", [main, profile.main, load.main, load_serve.main, load_tails.main, memory.main, costs.main, in_turn.main]
)
def test_every_command_has_a_help_text(command, capsys) -> None:
    with pytest.raises(SystemExit, match="0"):
        command(["--help"])
    assert "usage:" in capsys.readouterr().out


def test_memory_is_told_as_questions_are_answered() -> None:
    found = list(memory.measure("keyword", 2, 1))
    assert [answered for answered, _ in found] == [1, 2]
    assert all(held > 0 for _, held in found) or not Path("/proc/self/statm").exists()
