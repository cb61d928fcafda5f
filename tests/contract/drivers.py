"""The two integrations behind one face: a model, an engine over passages, and four ways to ask it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from robustrag_integrations import Passage, RobustAnswer
from tests.contract.script import QUESTION, Script

STYLES = ["ask", "aask", "stream", "astream"]
Template = Sequence[tuple[str, str]]  # roles and texts, with {context} and {question}, and with {choices}


@dataclass(frozen=True)
class Said:
    """An answer as it came back.

    Attributes:
        pieces: its text, as it was streamed; in one piece where it was not.
        answer: the report.
        passages: the texts that came back with it.
    """

    pieces: list[str]
    answer: RobustAnswer
    passages: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class Driver:
    """A framework.

    Attributes:
        name: as tests and people call it.
        blocking: its scripted model has no asynchronous calls.
        chat: its scripted model takes messages.
        prefix: what its prompts show in front of a message of the user's.
    """

    name: str
    blocking = False
    chat = True

    def model(self, script: Script, **fields: Any) -> Any:
        """Make the framework's own model that plays a script; `fields` are those of the class."""
        raise NotImplementedError

    def served(self, url: str, **fields: Any) -> Any:
        """Make the framework's client of an OpenAI-compatible server."""
        raise NotImplementedError

    def local(self, folder: Path, max_new_tokens: int = 16, sample: bool = False) -> Any:
        """Make the framework's model of this process from the weights in a folder."""
        raise NotImplementedError

    def raw(self, reply: Callable[[str], Any]) -> Any:
        """Make a model whose replies are objects of the framework's."""
        raise NotImplementedError

    def template(self, messages: Template) -> Any:
        """Make a prompt template."""
        raise NotImplementedError

    def calls(self, **options: Any) -> Any:
        """Make the options of calls; `workers` is the number of calls under way."""
        raise NotImplementedError

    def retriever(self, found: Sequence[Any] | Exception) -> Any:
        """Make a retriever that finds these passages, or fails; `asked` are the questions that it got."""
        raise NotImplementedError

    def engine(self, model: Any, found: Sequence[Passage], template: Template | None = None, **settings: Any) -> Engine:
        """Make what answers from these passages.

        `schema` is the class of the answer, `retriever` a framework's in place of the passages, `trusted` what the
        trusted one finds; a script is a model, and options of calls may be a dictionary.
        """
        raise NotImplementedError

    def _model_of(self, model: Any) -> Any:
        return self.model(model) if isinstance(model, Script) else model

    def _settings(self, settings: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
        made = {names.get(name, name): value for name, value in settings.items()}
        if "final_llm" in made:
            made["final_llm"] = self._model_of(made["final_llm"])
        if "trusted" in made:
            made["trusted_retriever"] = self.retriever(made.pop("trusted"))
        if isinstance(made.get("calls"), dict):
            made["calls"] = self.calls(**made["calls"])
        return made


class Engine:
    """What answers questions.

    Attributes:
        made: the framework's own object.
    """

    made: Any

    def ask(self, question: str = QUESTION, **more: Any) -> Said:
        raise NotImplementedError

    async def aask(self, question: str = QUESTION, **more: Any) -> Said:
        raise NotImplementedError

    def stream(self, question: str = QUESTION, **more: Any) -> Iterator[str]:
        """Stream an answer; at its end, `streamed` has the rest."""
        raise NotImplementedError

    def astream(self, question: str = QUESTION, **more: Any) -> AsyncIterator[str]:
        raise NotImplementedError

    streamed: Callable[[list[str]], Said]

    async def asked(self, style: str, question: str = QUESTION, **more: Any) -> Said:
        """Ask in one of the four ways."""
        if style == "ask":
            return self.ask(question, **more)
        if style == "aask":
            return await self.aask(question, **more)
        if style == "stream":
            return self.streamed(list(self.stream(question, **more)))
        return self.streamed([piece async for piece in self.astream(question, **more)])

    async def every_way(self, question: str = QUESTION, **more: Any) -> list[Said]:
        return [await self.asked(style, question, **more) for style in STYLES]


def driver(name: str) -> Driver:
    """The driver of this name; the test is skipped without its framework."""
    framework, _, kind = name.partition(" ")
    if framework == "langchain":
        pytest.importorskip("langchain_core", reason="needs langchain-core")
        from tests.contract import langchain

        return langchain.Completions() if kind else langchain.LangChain()
    pytest.importorskip("llama_index.core", reason="needs llama-index-core")
    from tests.contract import llamaindex

    return llamaindex.Completions() if kind else llamaindex.LlamaIndex()


FRAMEWORKS = ["langchain", "llamaindex"]
KINDS = ["langchain", "langchain completions", "llamaindex", "llamaindex completions"]
