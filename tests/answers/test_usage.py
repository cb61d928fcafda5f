"""Sums of tokens keep the unknown unknown."""

from __future__ import annotations

from robustrag_integrations.answers.usage import Usage, together, told


def test_what_one_call_does_not_tell_is_unknown_in_the_sum_and_never_0() -> None:
    calls = [Usage(100, 40, 5, 2), Usage(200, None, 7), Usage()]
    assert together(calls[:2]) == Usage(300, None, 12, None)
    assert together(calls) == Usage()
    assert told(calls) == Usage(300, 40, 12, 2)
    assert told([Usage()]) == Usage()
    assert together([]) == Usage(0, 0, 0, 0)
