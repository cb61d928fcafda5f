"""The service: defences by name, and the documents that they answer from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from robustrag_integrations._util.display import printable
from robustrag_integrations.answers.usage import Prices
from robustrag_integrations.corpus.retrieval import BM25Index
from robustrag_integrations.defenses.base import Defense
from robustrag_integrations.defenses.vanilla import VANILLA
from robustrag_integrations.grouping.passages import ORIGIN, Passage
from robustrag_integrations.serve.errors import RequestError
from robustrag_integrations.serve.limits import Limits

if TYPE_CHECKING:
    from robustrag_integrations.serve.chat_request import ChatRequest


@dataclass(frozen=True)
class Library:
    """Documents with their index and retrieval settings.

    Attributes:
        index: over their passages.
        top_k: number of sources that are asked; with `per_source` None, how many passages.
        per_source: maximum number of passages of one source.
        group_by: what a source is.
    """

    index: BM25Index
    top_k: int = 10
    per_source: int | None = 2
    group_by: str = ORIGIN

    def search(self, question: str) -> list[Passage]:
        """Return the passages that fit the question, best first."""
        return self.index.search(question, self.top_k, per_source=self.per_source, by=self.group_by)


@dataclass(frozen=True)
class Served:
    """A model name that clients can ask for.

    Attributes:
        defense: the defence's name.
        short: answers questions; None if it only votes on options.
        choice: answers multiple-choice questions; None if it cannot.
    """

    defense: str
    short: Defense | None
    choice: Defense | None


@dataclass(frozen=True)
class Service:
    """Everything that answers need.

    Attributes:
        library: the server's documents.
        models: what is served, by the name that clients ask for.
        limits: bounds.
        documents_allowed: True if requests may bring documents.
        prices: what tokens cost, for reports.
    """

    library: Library
    models: Mapping[str, Served]
    limits: Limits = field(default_factory=Limits)
    documents_allowed: bool = False
    prices: Prices | None = None

    @property
    def defenses(self) -> list[Defense]:
        """All defences that answer."""
        return [made for served in self.models.values() for made in (served.short, served.choice) if made is not None]

    def served(self, name: str) -> Served:
        """Return the defence behind a model's name.

        Raises:
            RequestError: there is no such model.
        """
        if name not in self.models:
            names = ", ".join(self.models)
            message = f"there is no model {printable(name, 100)!r} here; ask for {names}"
            raise RequestError(404, message, code="model_not_found", param="model")
        return self.models[name]

    def defense_for(self, request: ChatRequest) -> Defense:
        """Return the defence for a request.

        Raises:
            RequestError: there is no such model, or it does not answer such a question.
        """
        served = self.served(request.model)
        defense = served.short if request.choices is None else served.choice
        if defense is not None:
            return defense
        message = "takes no robustrag.choices" if served.choice is None else "votes on options: give robustrag.choices"
        raise RequestError(400, f"{request.model} {message}", param="robustrag.choices")

    def passages_for(self, request: ChatRequest) -> list[Passage]:
        """Return the passages that answer a request, best first."""
        passages = self.library.search(request.question) if request.retrieve else []
        return [*passages[: request.rank - 1], *request.documents, *passages[request.rank - 1 :]]

    def notes_for(self, request: ChatRequest) -> tuple[str, ...]:
        """Return warnings about the answer that the defence cannot know of."""
        undefended = self.models[request.model].defense == VANILLA.name
        return (*request.notes, *(["no defence: any passage may decide this answer"] if undefended else []))
