"""Language models: the interface that the defences use, and its providers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from robustrag_integrations.models.base import (
    DecodingModel,
    DecodingSession,
    Distributions,
    Opening,
    Response,
    TextModel,
    TokenCodec,
)
from robustrag_integrations.models.callable import CallableModel

if TYPE_CHECKING:
    from robustrag_integrations.models.local.model import LocalModel
    from robustrag_integrations.models.server.model import OpenAIModel

__all__ = [
    "CallableModel",
    "DecodingModel",
    "DecodingSession",
    "Distributions",
    "LocalModel",
    "OpenAIModel",
    "Opening",
    "Response",
    "TextModel",
    "TokenCodec",
]


def __getattr__(name: str) -> Any:
    if name == "LocalModel":
        from robustrag_integrations.models.local.model import LocalModel

        return LocalModel
    if name == "OpenAIModel":
        from robustrag_integrations.models.server.model import OpenAIModel

        return OpenAIModel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
