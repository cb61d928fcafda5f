"""Defences of other papers, to compare with: each re-reads raw passages in the end, so none has a radius."""

from __future__ import annotations

from robustrag_integrations.defenses.registry import BASELINES, Method
from robustrag_integrations.prompts import Task

_SHORT: tuple[Task, ...] = ("short_answer", "multiple_choice")
_ALL: tuple[Task, ...] = (*_SHORT, "long_form")
_TABLE: tuple[tuple[str, str, tuple[Task, ...], str], ...] = (
    (
        "mis",
        "mis:IndependentSet",
        _SHORT,
        " (ReliabilityRAG): read the largest set of passages whose answers do not contradict each other",
    ),
    (
        "mis-sampling",
        "mis:SampledIndependentSet",
        _SHORT,
        " (ReliabilityRAG, for many passages): the same over small random draws of passages",
    ),
    (
        "radar",
        "radar:MinCut",
        _SHORT,
        " (RADAR): read the passages that a smallest cut leaves on the side of those that agree",
    ),
    (
        "trustrag",
        "trustrag:ClusterFilter",
        _ALL,
        " (TrustRAG): drop passages that were written alike, add what the model knows",
    ),
    (
        "instruction",
        "filters:InstructionPrompt",
        _ALL,
        ": one prompt with all passages that says to ignore instructions in them",
    ),
    ("detector", "filters:InjectionDetector", _ALL, ": drop the passages in which a detector finds an injection"),
)
BASELINES.update(
    {
        name: Method(name, f"baseline{summary}", tasks, "text", f"{__name__}.{place}")
        for name, place, tasks, summary in _TABLE
    }
)
