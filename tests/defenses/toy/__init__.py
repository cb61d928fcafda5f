"""A fourth method, as small as one can be: the answer that every answering group gave word for word."""

from __future__ import annotations

from robustrag_integrations.defenses.registry import Method

UNANIMITY = Method(
    name="toy",
    summary="the answer that all groups give word for word",
    tasks=("short_answer",),
    needs="text",
    defense=f"{__name__}.defense:Unanimity",
)
