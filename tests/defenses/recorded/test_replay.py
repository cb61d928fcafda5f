"""Settings chosen on recorded replies: `robustrag tune` replays them, and asks for nothing that was not recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from robustrag_integrations.cli import main
from robustrag_integrations.prompts import prompts_for
from tests.defenses.recorded import replay

RECORDED = Path(__file__).with_name("qwen-0.5b.jsonl")


@pytest.mark.parametrize("recorded", ["Carolina", "", "Two\n\nQuestion: which?\nAnswer: three", "1: 4"])
def test_an_isolated_prompt_gets_its_recorded_reply_and_no_other_prompt_gets_any(recorded: str) -> None:
    prompts = prompts_for("short_answer")
    assert replay.reply(prompts.isolated.render(context=f"7: {recorded}", query="Who won?").text) == recorded
    assert prompts.keyword is not None
    for other in (prompts.keyword.render(keywords="1: 2", query="Who won?"), prompts.no_retrieval.render(query="Who?")):
        with pytest.raises(ValueError, match="no reply is recorded"):
            replay.reply(other.text)


def test_tune_chooses_on_half_of_the_recorded_questions_and_reports_on_the_rest(tmp_path, monkeypatch, capsys) -> None:
    listed = list(replay.questions([str(RECORDED), str(RECORDED)]))
    assert len(listed) == 60, "each question once"
    data = tmp_path / "questions.jsonl"
    data.write_text("".join(json.dumps(question) + "\n" for question in listed))
    monkeypatch.chdir(tmp_path)
    model = f"python:{Path(replay.__file__)}:reply"
    tried = ["--alpha", "0.3", "--beta", "3", "--min-support", "1"]
    arguments = ["--data", str(data), "--model", model, "--defense", "keyword", "consensus", *tried, "--final", "never"]
    assert main(["tune", *arguments, "--no-cache"]) == 0
    assert "30 questions that had no say" in capsys.readouterr().out
    rows = [json.loads(line) for line in Path("tune.jsonl").read_text().splitlines()[1:]]
    assert {row["error"] for row in rows} == {None}
    assert len(rows) == 30 * 2 + 30
