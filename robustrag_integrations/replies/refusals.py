"""Removes keys from the text of a refusal before reports show it."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from robustrag_integrations._util.redaction import redacted, secrets_of
from robustrag_integrations.replies.reply import Ending

AnyEnding = TypeVar("AnyEnding", bound=Ending)


def without_secrets(reply: AnyEnding, *clients: object) -> AnyEnding:
    """Return the reply without the clients' keys in its refusal: servers echo what they were sent."""
    if reply.refusal is None:
        return reply
    return replace(reply, refusal=redacted(reply.refusal, secrets_of(*clients)))
