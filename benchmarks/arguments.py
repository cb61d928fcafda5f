"""Numbers on the command lines of the benchmarks, checked before anything is measured."""

from __future__ import annotations

from robustrag_integrations.cli.arguments import whole_number

count = whole_number(1, 1_000_000)  # more of anything would not end
