"""A fourth method, as small as one can be: the answer that every answering group gave word for word."""

from __future__ import annotations

from typing import Annotated, TypedDict

from robustrag_integrations.defenses.registry import Method, Setting


class UnanimityOptions(TypedDict, total=False):
    """The settings of unanimity."""

    at_least: Annotated[int | None, Setting(2, "how many groups must answer", least=1, threshold=True)]


UNANIMITY = Method(
    name="toy",
    summary="the answer that all groups give word for word",
    tasks=("short_answer",),
    needs="text",
    defense=f"{__name__}.defense:Unanimity",
    options=UnanimityOptions,
)
