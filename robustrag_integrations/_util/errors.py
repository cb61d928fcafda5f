"""Errors raised while an answer is made. Bad arguments raise ValueError or TypeError instead."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from concurrent import futures
from typing import Any

_NAME = "robustrag-integrations"


class RobustRAGError(Exception):
    """Base class of the project's own exceptions."""


class UndefendedError(RobustRAGError, AssertionError):
    """Retrieved text can reach a model without isolation, or just would have.

    Attributes:
        findings: every place, each a `robustrag_integrations.audit.findings.Finding`.
    """

    def __init__(self, findings: Sequence[Any]) -> None:
        self.findings = list(findings)
        places = "place" if len(findings) == 1 else "places"
        super().__init__("\n".join([f"not defended in {len(findings)} {places}:", *(f"- {f}" for f in findings)]))

    def __reduce__(self) -> Any:
        return UndefendedError, (self.findings,)


# What is not a failure and is never made one. Any other exception is, also those of libraries in Rust, which raise
# `PanicException`, a `BaseException`.
INTERRUPTS = (KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError, UndefendedError)
_OF_PROGRAMS = (  # modules, and what they raise to steer a program: a graph's interrupt, a workflow's step that waits
    ("langgraph.errors", "GraphBubbleUp"),
    ("workflows.runtime.types.results", "WaitingForEvent"),
)


def steers(error: BaseException) -> bool:
    """True if an exception is no failure: an interrupt, a cancellation, one of the audit, or what steers a program."""
    kinds = (getattr(sys.modules.get(module), name, None) for module, name in _OF_PROGRAMS)
    return isinstance(error, (*INTERRUPTS, futures.CancelledError, *(kind for kind in kinds if kind is not None)))


class ModelError(RobustRAGError):
    """A language model cannot be used, or returned something that is not text.

    Attributes:
        sources: one `SourceReport` per source, where they were asked.
        robustness: the failure as a `RobustAnswer`, an abstention that names every source; None outside of an answer.
    """

    sources: tuple[Any, ...] = ()
    robustness: Any = None


class QuorumError(ModelError):
    """Too few calls succeeded for a meaningful answer.

    Attributes:
        causes: source index (0-based) to what went wrong there.
        failed_alike: every source that was asked failed, with exceptions of one class, one of which is the `__cause__`.
    """

    failed_alike = False

    def __init__(
        self,
        succeeded: int,
        total: int,
        needed: int,
        causes: Mapping[int, str],
        sources: tuple[Any, ...] = (),
    ) -> None:
        self.causes = dict(causes)
        self.sources = sources
        alike = dict.fromkeys(cause for _, cause in sorted(self.causes.items()))
        super().__init__(
            f"only {succeeded} of {total} calls succeeded, {needed} are needed (quorum). "
            f"{'; '.join(list(alike)[:5])}{'. Lower `quorum` to answer from fewer.' if succeeded else ''}"
        )


class TrustedError(ModelError):
    """The trusted passages gave no answer that can be read, and nobody else may answer in their place.

    Attributes:
        robustness: the report, a `RobustAnswer` that abstains; its `trusted` says why.
    """

    def __init__(self, why: str, robustness: Any) -> None:
        self.robustness = robustness
        super().__init__(why)

    def __reduce__(self) -> Any:
        return TrustedError, (str(self), self.robustness)


class TooFewVotesError(RobustRAGError):
    """There are fewer sources than `min_sources`, or the radius is below `min_radius`, and `below` is `"raise"`.

    Attributes:
        robustness: the report, a `RobustAnswer` that abstains.
    """

    def __init__(self, why: str, robustness: Any) -> None:
        self.robustness = robustness
        super().__init__(why)


def was_cancelled(kind: type[BaseException]) -> bool:
    """True if the stream was closed or the task cancelled, which is not a failure."""
    return issubclass(kind, (asyncio.CancelledError, GeneratorExit))


def missing(need: str, extra: str) -> ImportError:
    """Return an error that says what needs an extra, and how to install it from where this package came."""
    return ImportError(f"{need}: pip install {shlex.quote(f'{_NAME}[{extra}]{_origin()}')}")


def _origin() -> str:
    """Return the folder, file or repository that pip recorded; nothing for the package index."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        recorded = json.loads(distribution(_NAME).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return ""
    scheme = f"{vcs['vcs']}+" if (vcs := recorded.get("vcs_info")) else ""
    return f" @ {scheme}{recorded['url']}" if recorded.get("url") else ""
