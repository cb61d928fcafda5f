"""The service: defences by name, and the documents that they answer from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from robustrag_integrations._util.display import printable
from robustrag_integrations.corpus.retrieval import Library
from robustrag_integrations.defenses.base import Defense
from robustrag_integrations.defenses.vanilla import VANILLA
from robustrag_integrations.grouping.passages import Passage
from robustrag_integrations.serve.errors import RequestError
from robustrag_integrations.serve.limits import Limits

if TYPE_CHECKING:
    from robustrag_integrations.serve.chat_request import ChatRequest


@dataclass(frozen=True)
class Service:
    """Everything that answers need.

    Attributes:
        library: the server's documents.
        models: the defences, by the name that clients ask for.
        limits: bounds.
        documents_allowed: True if requests may bring documents.
    """

    library: Library
    models: Mapping[str, Defense]
    limits: Limits = field(default_factory=Limits)
    documents_allowed: bool = False

    def defense(self, name: str) -> Defense:
        """Return the defence behind a model's name.

        Raises:
            RequestError: there is no such model.
        """
        if name not in self.models:
            names = ", ".join(self.models)
            message = f"there is no model {printable(name, 100)!r} here; ask for {names}"
            raise RequestError(404, message, code="model_not_found", param="model")
        return self.models[name]

    def passages_for(self, request: ChatRequest) -> list[Passage]:
        """Return the passages that answer a request, best first; its own documents are the first of them."""
        return [*request.documents, *(self.library.search(request.question) if request.retrieve else [])]

    def notes_for(self, request: ChatRequest) -> tuple[str, ...]:
        """Return warnings about the answer that the defence cannot know of."""
        undefended = self.models[request.model].method.name == VANILLA.name
        return (*request.notes, *(["no defence: any passage may decide this answer"] if undefended else []))
