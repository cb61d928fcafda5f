"""What is served: defences by name, and the documents that they answer from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from robustrag_integrations.corpus.retrieval import BM25Index
from robustrag_integrations.defenses.base import Defense
from robustrag_integrations.defenses.registry import VANILLA
from robustrag_integrations.display import printable
from robustrag_integrations.grouping.passages import ORIGIN, Passage
from robustrag_integrations.serve.asked import Asked
from robustrag_integrations.serve.limits import Limits
from robustrag_integrations.serve.refusals import RefusedError
from robustrag_integrations.usage import Prices


@dataclass(frozen=True)
class Library:
    """Documents and how they are searched.

    Attributes:
        index: over their passages.
        top_k: how many sources are asked; with `per_source` None, how many passages.
        per_source: how many passages of one source are read at most.
        group_by: what a source is.
    """

    index: BM25Index
    top_k: int = 10
    per_source: int | None = 2
    group_by: str = ORIGIN

    def search(self, question: str) -> list[Passage]:
        """What fits the question, best first."""
        return self.index.search(question, self.top_k, per_source=self.per_source, by=self.group_by)


@dataclass(frozen=True)
class Served:
    """A name that clients can ask for.

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
        documents_allowed: whether requests may bring documents.
        prices: what tokens cost, for reports.
    """

    library: Library
    models: Mapping[str, Served]
    limits: Limits = field(default_factory=Limits)
    documents_allowed: bool = False
    prices: Prices | None = None

    @property
    def defenses(self) -> list[Defense]:
        """All that answer."""
        return [made for served in self.models.values() for made in (served.short, served.choice) if made is not None]

    def served(self, name: str) -> Served:
        """What answers to a model's name.

        Raises:
            RefusedError: there is no such model.
        """
        if name not in self.models:
            names = ", ".join(self.models)
            wrong = f"there is no model {printable(name, 100)!r} here; ask for {names}"
            raise RefusedError(404, wrong, code="model_not_found", param="model")
        return self.models[name]

    def defense_for(self, asked: Asked) -> Defense:
        """The defence that a request asks for.

        Raises:
            RefusedError: there is no such model, or it does not answer such a question.
        """
        served = self.served(asked.model)
        found = served.short if asked.choices is None else served.choice
        if found is not None:
            return found
        wrong = "takes no robustrag.choices" if served.choice is None else "votes on options: give robustrag.choices"
        raise RefusedError(400, f"{asked.model} {wrong}", param="robustrag.choices")

    def passages_for(self, asked: Asked) -> list[Passage]:
        """What is read to answer a request, best first."""
        found = self.library.search(asked.question) if asked.retrieve else []
        return [*found[: asked.rank - 1], *asked.documents, *found[asked.rank - 1 :]]

    def notes_for(self, asked: Asked) -> tuple[str, ...]:
        """What weakens the answer that the defence cannot know."""
        undefended = self.models[asked.model].defense == VANILLA.name
        return (*asked.notes, *(["no defence: any passage may decide this answer"] if undefended else []))
