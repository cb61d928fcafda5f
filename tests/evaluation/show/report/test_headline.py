"""The sentence at the head of a page claims no more than the run shows."""

from __future__ import annotations

from typing import Any

from robustrag_integrations.evaluation.score.run_file import Run
from robustrag_integrations.evaluation.score.summary import summarise
from robustrag_integrations.evaluation.show.report.overview import finding
from robustrag_integrations.evaluation.show.report.page import report_page
from tests.evaluation.rows import PIA, certificate, row


def attacked(setup: str, hijacked: int, abstained: int, count: int = 10, **more: Any) -> list[dict[str, Any]]:
    """Answers under attack, of which the first so many are the attacker's and the last so many abstentions."""
    scores = [{"hijacked": i < hijacked, "abstained": i >= count - abstained, "correct": 0.0} for i in range(count)]
    return [row(i, setup=setup, defense=setup, attack=PIA, scores=s, **more) for i, s in enumerate(scores)]


def test_a_defence_that_always_abstains_is_not_said_to_have_resisted() -> None:
    said = finding(summarise(attacked("vanilla", 8, 0) + attacked("keyword", 0, 10) + attacked("voting", 0, 0)))
    assert said == "Under attack, vanilla gave the attacker’s answer to 80% of the questions, voting to 0%, " \
        "keyword abstained always."  # fmt: skip
    assert finding(summarise(attacked("keyword", 0, 10))) == "Under attack, keyword abstained always."


def test_many_abstentions_stand_beside_the_rate() -> None:
    said = finding(summarise(attacked("vanilla", 8, 0) + attacked("keyword", 0, 7)))
    assert said.endswith("keyword to 0% (it abstained on 70%).")
    clean = [row(i, setup=s, defense=s, scores={"abstained": s == "keyword", "correct": float(s != "keyword")})
             for s in ("vanilla", "keyword") for i in range(3)]  # fmt: skip
    assert finding(summarise(clean)) == "Without an attacker, vanilla was right about 100% of the questions, " \
        "keyword abstained always."  # fmt: skip


def test_models_are_not_averaged() -> None:
    rows = attacked("vanilla", 10, 0, model="a") + [
        {**r, "key": r["key"] + "b"} for r in attacked("vanilla", 0, 0, model="b")
    ]
    said = finding(summarise(rows))
    assert said == (
        "With a: under attack, vanilla gave the attacker’s answer to 100% of the questions. "
        "With b: under attack, vanilla gave the attacker’s answer to 0% of the questions."
    )
    many = [{**r, "model": f"m{i}", "key": f"{r['key']}{i}"} for i in range(5) for r in attacked("vanilla", i, 0)]
    assert finding(summarise(many)) == "5 models, each in tables of its own."


def test_of_many_setups_the_range_is_said_and_the_silent_are_named() -> None:
    rows = [r for i in range(6) for r in attacked(f"keyword {i}", i, 0)] + attacked("vanilla", 10, 0)
    rows += attacked("mute", 0, 10)
    said = finding(summarise(rows))
    assert said.endswith("100% of the questions, the other 6 setups to between 0% and 50%, mute abstained always.")


def page(rows: list[dict[str, Any]], **config: Any) -> str:
    return report_page(Run("run.jsonl", {"config": config}, tuple(rows)))


def test_the_page_has_the_papers_table_of_the_runs_layout(made_rows: list[dict[str, Any]]) -> None:
    shown = page(made_rows, layout="paper-table2")
    assert "Accuracy and attack success under attack" in shown
    assert "racc / asr" in shown
    assert "racc / asr" not in page(made_rows)
    for hostile in ("__class__", "<script>", 3, None, ["paper-table2"]):
        assert "racc / asr" not in page(made_rows, layout=hostile)


def test_the_page_has_paired_tests_and_warnings(made_rows: list[dict[str, Any]]) -> None:
    answered = [r for r in made_rows if r["error"] is None]
    rows = [{**r, "answer": {**r["answer"], "warnings": ["<b>beware of 3"]}} for r in answered]
    shown = page(rows)
    assert "Differences between setups on the same questions" in shown
    assert "p (Holm)" in shown
    assert f"warning of {len(rows)} of {len(rows)} answers: &lt;b&gt;beware of 3" in shown
    assert "exact for 0/n and n/n" in shown


def test_tokens_and_money_in_all_stand_at_the_head_of_the_page() -> None:
    rows = [row(i, metric="contains", certificates=[certificate(1.0)]) for i in range(3)]
    from robustrag_integrations.answers.usage import Prices
    from robustrag_integrations.evaluation.show.report.overview import _spent  # the page itself needs whole rows

    rows[2]["timing"] |= {"cached_calls": 11, "cached_tokens": rows[2]["cost"] | {"prompt": 100, "completion": 10}}
    assert _spent(summarise(rows), Prices(10.0, 100.0)) == (
        "200 tokens in, 20 out; 0.004 in money (3 of 3 answers told; calls out of the cache and certificates are not "
        "counted)"
    )
    silent = [row(i, cost={"prompt_tokens": None, "completion_tokens": None}) for i in range(3)]
    assert _spent(summarise(silent), None) == ""
