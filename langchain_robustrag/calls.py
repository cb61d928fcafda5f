"""A model of LangChain as a model of the core, for one question.

Isolated calls are child runs `source:0`, `source:1`, ..., that about trusted documents is `trusted`, and the last one
`final`. All carry the tag `nostream` and keep
their tokens to themselves: front ends are shown the answer (`callbacks.as_run`), and never what a single source says.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, BaseCallbackHandler, CallbackManagerForChainRun
from langchain_core.prompt_values import PromptValue, StringPromptValue
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig, RunnablePassthrough

from langchain_robustrag.audit import announced
from langchain_robustrag.callbacks import NOSTREAM, in_loop, without_tokens
from langchain_robustrag.language_models import Traits, wrapped_models
from langchain_robustrag.prompts import FilledPrompt
from langchain_robustrag.replies import Seen, Streamed, response_of
from langchain_robustrag.structured import Structured
from robustrag_integrations._util.checks import check_at_least, check_flag
from robustrag_integrations._util.steps import closed_after
from robustrag_integrations.answers.determinism import Repeats
from robustrag_integrations.models.base import Response, limit_among
from robustrag_integrations.models.callable import Call, CalledModel
from robustrag_integrations.models.caller import CallLimits, checked_timeout
from robustrag_integrations.models.reply import Piece
from robustrag_integrations.models.threads import acalled

ISOLATED = "robustrag:isolated"
_PLAIN = (ChatPromptTemplate, PromptTemplate)  # which do nothing but fill in values

RunManager: TypeAlias = CallbackManagerForChainRun | AsyncCallbackManagerForChainRun


@dataclass(frozen=True)
class CallOptions:
    """How a chain calls its model.

    Attributes:
        max_concurrency: model calls of the chain under way at a time, over all its questions; that of the config
            lowers it. None: ten for each question, which waits for no other one's calls. A
            `HuggingFacePipeline` is always asked one by one.
        timeout: seconds for one call from beginning to end, None for no limit. A source that takes longer has failed.
            The model's own time-out usually is for one read: a server that trickles never exceeds it. A synchronous
            call cannot be stopped from outside; it is given up, and its thread ends when the model returns.
        attempts: tries of one call in all where the server says that it is busy (429, or 500 and above), after as long
            as its Retry-After says. A model that tries again by itself (`max_retries`, `.with_retry`) is left to it.
        accept_sampling: you know that the model may answer otherwise another time: no warning repeats it, while
            `robustness.determinism` still says what holds.
    """

    max_concurrency: int | None = None
    timeout: float | None = None
    attempts: int = 3
    accept_sampling: bool = False

    def __post_init__(self) -> None:
        if self.max_concurrency is not None:
            check_at_least(1, max_concurrency=self.max_concurrency)
        check_at_least(1, attempts=self.attempts)
        check_flag(accept_sampling=self.accept_sampling)
        object.__setattr__(self, "timeout", checked_timeout(self.timeout))


class LangChainModel(CalledModel):
    """A model of LangChain, whose calls are children of one run of a chain."""

    def __init__(
        self,
        llm: Runnable[Any, Any],
        traits: Traits,
        limits: CallLimits,
        attempts: int,
        config: RunnableConfig,
        run_manager: RunManager,
        structured: Structured | None = None,
    ) -> None:
        super().__init__(
            limits,
            type(llm).__name__,
            self._invoke,
            self._ainvoke,
            stream=self._streamed,
            astream=self._astreamed,
            clients=(llm,),
            cap=config.get("max_concurrency"),
            attempts=1 if traits.retries else attempts,
        )
        self._traits, self._config, self._run_manager = traits, config, run_manager
        self._heard = bool(run_manager.handlers)
        self._asked = llm if structured is None else structured.around(llm)
        self._by_tool = structured is not None
        fields = (getattr(type(model), "model_fields", ()) for model, _ in wrapped_models(self._asked))
        self.limit = limit_among(name for names in fields for name in names)

    @property
    def repeats(self) -> Repeats:
        """The model's reproducibility, by its settings."""
        return self._traits.repeats

    def _invoke(self, call: Call) -> Response:
        asking, value = self._asking(call)
        return response_of(asking.invoke(value, self._child(call, seen := Seen(self._by_tool))), seen.ending)

    async def _ainvoke(self, call: Call) -> Response:
        asking, value = self._asking(call)
        return response_of(
            await asking.ainvoke(value, self._child(call, in_loop(seen := Seen(self._by_tool)))), seen.ending
        )

    def _streamed(self, call: Call) -> Iterator[Piece]:
        streamed = Streamed(seen := Seen(self._by_tool))
        asking, value = self._asking(call, streamed=True)
        for chunk in asking.stream(value, self._child(call, seen)):
            yield from streamed.pieces_of(chunk)
        yield from streamed.end()

    async def _astreamed(self, call: Call) -> AsyncGenerator[Piece, None]:
        streamed = Streamed(seen := Seen(self._by_tool))
        asking, value = self._asking(call, streamed=True)
        async with closed_after(asking.astream(value, self._child(call, in_loop(seen)))) as chunks:
            async for chunk in chunks:
                for piece in streamed.pieces_of(chunk):
                    yield piece
        for piece in streamed.end():
            yield piece

    def _asking(self, call: Call, *, streamed: bool = False) -> tuple[Runnable[Any, Any], Any]:
        """Return the runnable to invoke, and its input.

        Where nobody learns of the runs of a source and of its prompt, there are none.
        """
        prompt = call.prompt
        if not isinstance(prompt, FilledPrompt):
            return RunnablePassthrough() | self._asked, StringPromptValue(text=prompt.text)
        if not (streamed or self._heard) and type(prompt.template) in _PLAIN:
            return self._asked, prompt.requesting(prompt.template.format_prompt(**prompt.values))
        asked = _Requesting(self._asked, prompt) if prompt.request or not streamed else self._asked
        return prompt.template | asked, dict(prompt.values)

    def _child(self, call: Call, watching: BaseCallbackHandler) -> RunnableConfig:
        """Return the config of a call: the chain's own, built once, as LangChain copies it often enough."""
        tags, metadata = set(self._config.get("tags") or ()), dict(self._config.get("metadata") or {})
        name: str = call.role
        if call.role == "isolated":
            name = f"source:{call.index}"
            tags, metadata = tags | {ISOLATED}, {**metadata, "robustrag_source": call.index}
        if name == metadata.get("langgraph_node"):
            name += " call"  # a graph shows the message that a run with its node's name returns
        callbacks = self._run_manager.get_child(name)
        without_tokens(callbacks)
        callbacks.add_handler(watching)
        config: RunnableConfig = {
            **self._config,
            "callbacks": callbacks,
            "run_name": name,
            "tags": sorted({*tags, NOSTREAM}),
            "metadata": metadata,
        }
        config.pop("run_id", None)
        return announced(config, call.prompt)


@dataclass(frozen=True)
class _Requesting(Runnable[PromptValue, Any]):
    """A model whose prompts get a request; it has no run of its own."""

    llm: Runnable[Any, Any]
    prompt: FilledPrompt

    def invoke(self, input: PromptValue, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return self.llm.invoke(self.prompt.requesting(input), config, **kwargs)

    async def ainvoke(self, input: PromptValue, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Ask the model within the sequence's task, which a SystemExit would leave, and with it the loop."""
        return await acalled(self.llm.ainvoke(self.prompt.requesting(input), config, **kwargs))

    def stream(self, input: PromptValue, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        yield from self.llm.stream(self.prompt.requesting(input), config, **kwargs)

    async def astream(
        self, input: PromptValue, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncGenerator[Any, None]:
        async with closed_after(self.llm.astream(self.prompt.requesting(input), config, **kwargs)) as pieces:
            async for piece in pieces:
                yield piece
