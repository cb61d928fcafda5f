"""A bounded run of every fuzz target: the same inputs each time. The long run is `python -m tests.fuzz.long`."""

from __future__ import annotations

import pytest

from tests.fuzz.long import attempt, targets, watched
from tests.fuzz.source import Target

ROUNDS = 100  # times a target's share: some 40,000 inputs in all


@pytest.mark.parametrize("target", targets(), ids=lambda target: target.name)
def test_hostile_inputs_break_nothing(target: Target) -> None:
    with watched(240):
        for number in range(ROUNDS * target.share):
            failure = attempt(target, f"ci:{number}")
            assert failure is None, failure
