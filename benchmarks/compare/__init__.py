"""Comparing defences: other papers' beside ours, the paper's tables and figures, and tests over the rows of a run.

`import benchmarks.compare` makes the baselines known to `robustrag eval` and `ask` by their names. From the root of the
repository:

    python -m benchmarks.compare eval benchmarks/compare/studies/paper-table1.yaml --data questions.json.gz --limit 20
    python -m benchmarks.compare ask "Who runs the mill?" --docs notes/ --method mis
    python -m benchmarks.compare paired paper-table1.jsonl        is one better than the other on the same questions?
    python -m benchmarks.compare confidence paper-table1.jsonl    does the model know when it is right?
"""

from __future__ import annotations

from robustrag_integrations.defenses.registry import BASELINES, Method
from robustrag_integrations.text.prompts import Task

_SHORT: tuple[Task, ...] = ("short_answer", "multiple_choice")
_ALL: tuple[Task, ...] = (*_SHORT, "long_form")

BASELINES.update(
    {
        name: Method(name, summary, tasks, "text", f"benchmarks.compare.{place}")
        for name, tasks, place, summary in (
            ("mis", _SHORT, "peers:IndependentSet", "ReliabilityRAG: read what does not contradict each other"),
            ("radar", _SHORT, "peers:MinCut", "RADAR: read what a smallest cut leaves with those that agree"),
            ("trustrag", _ALL, "peers:ClusterFilter", "TrustRAG: drop what was written alike, add knowledge"),
            ("instruction", _ALL, "base:InstructionPrompt", "a prompt that says to ignore instructions"),
            ("no-rag", _ALL, "base:NoRetrieval", "the model without passages"),
        )
    }
)
