"""The settings of the baselines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from robustrag_integrations.checks import check_at_least
from robustrag_integrations.defenses.peers.alike import hashed_words
from robustrag_integrations.defenses.peers.contradiction import differ, share_said
from robustrag_integrations.defenses.peers.functions import function_of, name_of
from robustrag_integrations.defenses.peers.phrases import speaks_to_the_reader
from robustrag_integrations.defenses.registry import DETECTOR, INSTRUCTION, MIS, MIS_SAMPLING, RADAR, TRUSTRAG, Method
from robustrag_integrations.prompts import PromptSet, Task, chosen_prompts
from robustrag_integrations.replies.reading import CutReplies, check_cut_replies

Asked = Callable[..., Any]


@dataclass(frozen=True)
class PeerSettings:
    """What all baselines have."""

    task: Task
    prompts: PromptSet
    cut_replies: CutReplies

    def as_dict(self) -> dict[str, Any]:
        """The settings, JSON-safe; a function by its name."""
        own = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "prompts"}
        return {name: name_of(value) if callable(value) else value for name, value in own.items()}


def _shared(
    method: Method, task: Task | None, prompts: PromptSet | None, cut: CutReplies | None
) -> tuple[Task, PromptSet, CutReplies]:
    chosen = method.check_task(task)
    return chosen, chosen_prompts(prompts, chosen), check_cut_replies(method.value("cut_replies", cut))


@dataclass(frozen=True)
class InstructionSettings(PeerSettings):
    """Of the prompt that says to ignore instructions."""

    @classmethod
    def of(
        cls, *, task: Task | None = None, prompts: PromptSet | None = None, cut_replies: CutReplies | None = None
    ) -> InstructionSettings:
        """From user arguments; see `InstructionPrompt`."""
        return cls(*_shared(INSTRUCTION, task, prompts, cut_replies))


@dataclass(frozen=True)
class DetectorSettings(PeerSettings):
    """Of the injection detector."""

    detector: Asked

    @classmethod
    def of(
        cls,
        *,
        task: Task | None = None,
        prompts: PromptSet | None = None,
        cut_replies: CutReplies | None = None,
        detector: Asked | str | None = None,
    ) -> DetectorSettings:
        """From user arguments; see `InjectionDetector`."""
        shared = _shared(DETECTOR, task, prompts, cut_replies)
        return cls(*shared, function_of("detector", detector, speaks_to_the_reader))


@dataclass(frozen=True)
class MISSettings(PeerSettings):
    """Of the largest set of answers without a contradiction."""

    contradicts: Asked

    @classmethod
    def of(
        cls,
        *,
        task: Task | None = None,
        prompts: PromptSet | None = None,
        cut_replies: CutReplies | None = None,
        contradicts: Asked | str | None = None,
    ) -> MISSettings:
        """From user arguments; see `IndependentSet`."""
        return cls(*_shared(MIS, task, prompts, cut_replies), function_of("contradicts", contradicts, differ))


@dataclass(frozen=True)
class SamplingSettings(PeerSettings):
    """Of the sampling form."""

    contradicts: Asked
    samples: int
    sample_size: int
    decay: float
    seed: int

    @classmethod
    def of(
        cls,
        *,
        task: Task | None = None,
        prompts: PromptSet | None = None,
        cut_replies: CutReplies | None = None,
        contradicts: Asked | str | None = None,
        samples: int | None = None,
        sample_size: int | None = None,
        decay: float | None = None,
        seed: int | None = None,
    ) -> SamplingSettings:
        """From user arguments; see `SampledIndependentSet`."""
        from robustrag_integrations.defenses.peers.independent_set import LARGEST

        value = MIS_SAMPLING.value
        count, size = value("samples", samples), value("sample_size", sample_size)
        share, start = value("decay", decay), value("seed", seed)
        check_at_least(1, samples=count, sample_size=size)
        check_at_least(0, seed=start)
        if count > LARGEST:
            raise ValueError(f"samples={count} must be at most {LARGEST}: the largest set of them is searched exactly")
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share <= 1:
            raise ValueError(f"decay={share!r} must lie in (0, 1]")
        shared = _shared(MIS_SAMPLING, task, prompts, cut_replies)
        return cls(*shared, function_of("contradicts", contradicts, differ), count, size, share, start)


@dataclass(frozen=True)
class RadarSettings(PeerSettings):
    """Of the smallest cut between answers that are trusted and those that are not."""

    contradicts: Asked
    entails: Asked

    @classmethod
    def of(
        cls,
        *,
        task: Task | None = None,
        prompts: PromptSet | None = None,
        cut_replies: CutReplies | None = None,
        contradicts: Asked | str | None = None,
        entails: Asked | str | None = None,
    ) -> RadarSettings:
        """From user arguments; see `MinCut`."""
        return cls(
            *_shared(RADAR, task, prompts, cut_replies),
            function_of("contradicts", contradicts, differ),
            function_of("entails", entails, share_said),
        )


@dataclass(frozen=True)
class TrustSettings(PeerSettings):
    """Of the filter for passages that were written alike."""

    embed: Asked

    @classmethod
    def of(
        cls,
        *,
        task: Task | None = None,
        prompts: PromptSet | None = None,
        cut_replies: CutReplies | None = None,
        embed: Asked | str | None = None,
    ) -> TrustSettings:
        """From user arguments; see `ClusterFilter`."""
        return cls(*_shared(TRUSTRAG, task, prompts, cut_replies), function_of("embed", embed, hashed_words))
