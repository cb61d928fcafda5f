"""A server that misbehaves on command, asked through the core, LangChain and LlamaIndex.

Seven sources agree, and three are enough: radius 2. A source whose request fails counts as an abstention; the answer
stays, the radius falls with the number of sources that are left, and below the quorum there is an error instead of an
answer, however it is asked: at once or as a stream, synchronously or not. It ends, and leaves no thread, task, socket
or file behind.
"""

from __future__ import annotations

import pytest

from tests.faults.clients import CLIENTS
from tests.faults.matrix import PLACES, check, observe, styles_of
from tests.faults.misbehaviour import FAULTS, LARGE
from tests.helpers.leaks import nothing_left

pytest.importorskip("httpx", reason="needs the extra openai")
pytestmark = pytest.mark.usefixtures("no_server_settings")

AT_ONCE = [name for name, fault in FAULTS.items() if fault.effect != "hangs"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("fault", AT_ONCE)
@pytest.mark.parametrize("kind", CLIENTS)
def test_a_fault_costs_radius_or_is_an_error_and_leaves_nothing_behind(kind: str, fault: str, place: str) -> None:
    for style in styles_of(place)[-1:] if fault == LARGE else styles_of(place):
        with nothing_left():
            outcome = observe(kind, fault, place, style)
        check(outcome, kind, fault, place)
