"""Defences of other papers, to compare with: each re-reads raw passages in the end, so none has a radius."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from robustrag_integrations._util.settings import Setting
from robustrag_integrations.defenses.registry import BASELINES, Method, register
from robustrag_integrations.defenses.vanilla import VanillaOptions
from robustrag_integrations.prompts import Task

Function = Callable[..., Any] | str | None


class ContradictionOptions(TypedDict, total=False):
    """Of baselines that compare answers."""

    contradicts: Annotated[
        Function, Setting(None, "tells if two answers contradict each other; None compares words", is_function=True)
    ]


class MISOptions(ContradictionOptions, VanillaOptions, total=False):
    """The settings of the exact form of ReliabilityRAG."""


class SamplingOptions(MISOptions, total=False):
    """The settings of the sampling form of ReliabilityRAG."""

    samples: Annotated[
        int | None, Setting(20, "number of draws; the set of them is searched exactly", least=1, most=20)
    ]
    sample_size: Annotated[int | None, Setting(2, "number of passages of a draw", least=1)]
    decay: Annotated[float | None, Setting(0.9, "weight of a rank relative to the one above it", least=0.01, most=1)]
    seed: Annotated[int | None, Setting(0, "of the draws", least=0)]


class RadarOptions(ContradictionOptions, VanillaOptions, total=False):
    """The settings of RADAR."""

    entails: Annotated[
        Function, Setting(None, "tells if an answer implies another; None compares words", is_function=True)
    ]


class TrustOptions(VanillaOptions, total=False):
    """The settings of TrustRAG."""

    embed: Annotated[Function, Setting(None, "from texts to vectors; None counts words", is_function=True)]


class DetectorOptions(VanillaOptions, total=False):
    """The settings of the injection detector."""

    detector: Annotated[
        Function, Setting(None, "tells if a passage holds an injection; None looks for phrases", is_function=True)
    ]


def _baseline(
    name: str,
    defense: str,
    summary: str,
    options: type,
    tasks: tuple[Task, ...] = ("short_answer", "multiple_choice", "long_form"),
) -> Method:
    return register(Method(name, f"baseline{summary}", tasks, "text", f"{__name__}.{defense}", options), BASELINES)


_SHORT: tuple[Task, ...] = ("short_answer", "multiple_choice")
MIS = _baseline(
    "mis",
    "mis:IndependentSet",
    " (ReliabilityRAG): read the largest set of passages whose answers do not contradict each other",
    MISOptions,
    _SHORT,
)
MIS_SAMPLING = _baseline(
    "mis-sampling",
    "mis:SampledIndependentSet",
    " (ReliabilityRAG, for many passages): the same over small random draws of passages",
    SamplingOptions,
    _SHORT,
)
RADAR = _baseline(
    "radar",
    "radar:MinCut",
    " (RADAR): read the passages that a smallest cut leaves on the side of those that agree",
    RadarOptions,
    _SHORT,
)
TRUSTRAG = _baseline(
    "trustrag",
    "trustrag:ClusterFilter",
    " (TrustRAG): drop passages that were written alike, add what the model knows",
    TrustOptions,
)
INSTRUCTION = _baseline(
    "instruction",
    "filters:InstructionPrompt",
    ": one prompt with all passages that says to ignore instructions in them",
    VanillaOptions,
)
DETECTOR = _baseline(
    "detector",
    "filters:InjectionDetector",
    ": drop the passages in which a detector finds an injection",
    DetectorOptions,
)
