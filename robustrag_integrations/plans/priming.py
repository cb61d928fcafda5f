"""One call that fills a server's cache of prompts before the groups are asked.

Servers cache a prompt's beginning, and read it at a lower price for the prompts that follow; but it is cached only once
a first reply to it has begun. Groups that are asked all at once would each pay for all of it. So the question is asked
once without any passage, and its reply is dropped. That call holds no passage, no passage waits for another, and the
groups are then asked the same whether it succeeds, fails or takes so long that it is given up.
"""

from __future__ import annotations

from collections.abc import Sequence

from robustrag_integrations._util.checks import is_whole_number
from robustrag_integrations.models.base import Until
from robustrag_integrations.plans.requests import Ask, Plan, Relay, Request, relayed
from robustrag_integrations.prompts import Prompt

PAYS_FROM = 4_000  # characters that all groups' prompts share; about the 1,024 tokens below which APIs cache nothing
PATIENCE = 10.0  # seconds; a reply to a prompt without passages is short
_FEWEST = 3  # groups


def prime_from(prime: bool | int) -> int:
    """Return the number of shared characters from which a cache is primed; 0 for never.

    Raises:
        ValueError: neither a bool nor a number of characters.
    """
    if isinstance(prime, bool):
        return PAYS_FROM if prime else 0
    if not is_whole_number(prime, 1):
        raise ValueError(f"prime={prime!r} must be True, False or the least number of shared characters, from 1 on")
    return prime


def primed(plan: Plan, least: int) -> Plan:
    """Wrap a plan: a priming call goes before groups that share enough.

    Args:
        plan: a plan that asks groups.
        least: the number of characters that their prompts must have in common at the beginning.
    """

    def relay(request: Request) -> Relay:
        if isinstance(request, Ask) and request.role == "isolated" and _pays(request.prompts, least):
            until = Until(lambda _: False, patience=PATIENCE)
            yield Ask((request.prompts[0].without_context(),), "isolated", prime=True, until=until)
        return (yield request)

    return relayed(plan, relay)


def _pays(prompts: Sequence[Prompt], least: int) -> bool:
    """Tell whether priming pays, by the part that all groups share, which holds no passage."""
    return len(prompts) >= _FEWEST and prompts[0].shared >= least
