"""What an interrupted run lacks is named, and nothing is made up from headers that do not say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from robustrag_integrations.evaluation.run.config import read_config
from robustrag_integrations.evaluation.run.runner import evaluate
from robustrag_integrations.evaluation.score.planned import missing_rows, planned_rows
from robustrag_integrations.evaluation.score.run_file import read_run
from robustrag_integrations.evaluation.show.report import write_report
from tests.evaluation.rows import PIA, failed, row
from tests.evaluation.worlds import LIGHT, write_questions


def test_rows_that_are_planned_and_not_there_are_counted_per_setup_and_attack() -> None:
    planned = [row(i, attack=attack) for attack in ({"name": "none"}, PIA) for i in range(4)]
    header = json.loads(json.dumps({"planned": planned_rows(planned)}))
    rows = [*planned[:4], planned[4], failed(1, attack=PIA)]
    [missing] = missing_rows(header, rows)
    assert (missing.setup, str(missing.attack), missing.rows, missing.planned) == ("keyword", "pia @first k'=1", 2, 4)
    assert missing_rows(header, planned) == ()
    other = [row(i, attack=PIA, settings={"alpha": 0.9}) for i in range(9)]  # of another configuration, same label
    assert missing_rows(header, [*rows, *other]) == (missing,)


@pytest.mark.parametrize(
    "planned", [None, 3, {}, [3], [{}], [{"rows": 5}], [{**row(1), "rows": -1}], [{**row(1), "rows": "x"}],
                [{**row(1), "rows": 5, "attack": {"name": "pia"}}]],
)  # fmt: skip
def test_a_header_that_does_not_say_names_nothing(planned: Any) -> None:
    assert missing_rows({"planned": planned}, []) == ()
    assert missing_rows({}, []) == ()


def test_the_report_of_an_interrupted_run_says_what_is_missing(tmp_path: Path) -> None:
    class Stopped(Exception):
        pass

    class Watcher:
        def start(self, *given: Any) -> None:
            self.left = 4

        def job(self, job: Any) -> None:
            pass

        def row(self, made: Any) -> None:
            self.left -= 1
            if not self.left:
                raise Stopped

    given = {"data": [write_questions(tmp_path)], "models": [LIGHT], "top_k": [4], "defenses": ["vanilla", "voting"]}
    config = read_config({**given, "tasks": ["mc"], "attacks": ["pia"]})
    output = tmp_path / "run.jsonl"
    with pytest.raises(Stopped):
        evaluate(config, output=str(output), watcher=Watcher())
    run = read_run(output)
    missing = missing_rows(run.header, run.rows)
    page = write_report(run, tmp_path / "run.html").read_text()
    assert sum(m.rows for m in missing) + len(run.rows) == sum(m["rows"] for m in run.header["planned"])
    assert f"Not finished, {sum(m.rows for m in missing):,} rows are missing." in page
    assert f"{missing[-1].rows} of {missing[-1].planned} of voting, pia @first k&#39;=1" in page
    evaluate(config, output=str(output))
    run = read_run(output)
    assert missing_rows(run.header, run.rows) == ()
    assert "Not finished" not in write_report(run, tmp_path / "run.html").read_text()

    larger = read_config({**given, "tasks": ["mc"], "attacks": ["pia", "poison"]})
    with pytest.raises(Stopped):
        evaluate(larger, output=str(output), watcher=Watcher())
    run = read_run(output)
    assert {m.attack.name for m in missing_rows(run.header, run.rows)} == {"poison"}
    evaluate(larger, output=str(output))
    assert len([line for line in output.read_text().splitlines() if '"planned"' in line]) == 1
