"""The audit at run time: finds prompts of a LangChain program that hold texts of several sources."""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast
from uuid import UUID, uuid4

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, FunctionMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tracers.context import register_configure_hook

from langchain_robustrag.callbacks import REPORT_EVENT
from langchain_robustrag.messages import MARK, mark_of
from langchain_robustrag.prompts import FilledPrompt
from langchain_robustrag.retrieved import UnreadableError, documents_in, parsed_texts, parts_of, records_in
from robustrag_integrations.audit.audit import Audit, Message, On, Runs, texts_in
from robustrag_integrations.audit.findings import Finding
from robustrag_integrations.audit.hosted import hosted_in, hosted_result, hosted_tool
from robustrag_integrations.grouping.passages import Passage
from robustrag_integrations.text.prompts import Prompt

_LOG = logging.getLogger(__name__)
_MOST_ANNOUNCED = 10_000
FIX = (
    "answer with create_robust_documents_chain(llm, prompt) or create_robust_retrieval_chain(retriever, llm); give an "
    "agent create_robust_retriever_tool, or RobustRetrievalMiddleware"
)
_GAP = "\ue000"  # where a template has its values
_CALL = re.compile(r"(web_search|file_search|code_interpreter|mcp|image_generation)_call|(\w+)_tool_result")
_STANDARD = ("server_tool_use", "server_tool_call", "server_tool_result")


class IsolationAudit(BaseCallbackHandler):
    """A callback handler that checks every prompt of its runs: no prompt may hold texts of two sources.

    Nor may it hold a robust answer which no two sources agree on, nor a model be offered tools that its provider runs.

    It learns what was retrieved from retrievers, from tools (their documents, as objects or JSON), and from documents
    in inputs and outputs of steps. It sees text of 30 characters or more as it was retrieved, up to spacing and JSON
    escapes; several copies of one text count as one source. What it does not see: text that a function fetches without
    an event (a vector store or an HTTP client called directly: tell it with `learn`), text that was reworded,
    translated or cut shorter, and prompts of what is no LangChain model.

    Args:
        on: `"log"` warns of a finding; `"raise"` raises an `UndefendedError`, so that the model is never asked. A
            document that quotes a prompt of yours can then stop an answer.
        pass_through: names of tools whose results nobody else writes, or which the provider runs.

    Examples:
        ```python
        chain.invoke(question, config={"callbacks": [IsolationAudit(on="raise")]})
        ```
    """

    def __init__(self, on: On = "log", pass_through: Collection[str] = ()) -> None:
        self._audit = Audit(on, FIX, pass_through)
        self.raise_error = on == "raise"
        self._runs = Runs[UUID]()
        self._own: OrderedDict[UUID, Sequence[str]] = OrderedDict()

    @property
    def findings(self) -> list[Finding]:
        """The findings so far, each place once."""
        return self._audit.findings

    def learn(self, documents: Sequence[Document]) -> None:
        """Register documents that no event shows."""
        self._audit.learn(Passage(d.page_content, id=d.id, metadata=d.metadata or {}) for d in documents)

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        """Note the input of a step."""
        self._begin(serialized, kwargs)
        self._look_for_documents(inputs)
        node = (kwargs.get("metadata") or {}).get("langgraph_node")
        if node and self._audit.canaries is not None:
            self._audit.canaries.ran(f"node {node}")

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Note the output of a step."""
        self._end(run_id)
        self._look_for_documents(outputs)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Forget a run that failed."""
        self._end(run_id)

    on_retriever_error = on_tool_error = on_llm_error = on_chain_error

    def on_tool_start(self, serialized: Any, input_str: str, **kwargs: Any) -> None:
        """Note the input of a tool or retriever."""
        self._begin(serialized, kwargs)

    on_retriever_start: Any = on_tool_start
    on_retriever_end: Any = on_chain_end

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Note the output of a tool."""
        _, name, _ = self._path(run_id)
        self._end(run_id)
        self._look_for_documents(output, tool=name)

    def on_chat_model_start(self, serialized: Any, messages: list[list[BaseMessage]], **kwargs: Any) -> None:
        """Check the messages to a chat model, and the tools that it is offered."""
        settings = kwargs.get("invocation_params") or {}
        self._begin(serialized, kwargs)
        path, component, _ = self._path(kwargs["run_id"])
        passed = self._audit.pass_through
        if found := hosted_in(settings, passed):
            self._audit.add(hosted_tool(found, path, component))
        if (canaries := self._audit.canaries) is not None:
            canaries.offered(name for tool in settings.get("tools") or () if (name := _name_of(tool)))
            for name in passed.intersection(hosted_in(settings)):
                canaries.ran(name)
        for prompt in messages:
            for message in prompt:
                if (mark := mark_of(message)) and message.text != mark["for_prompt"]:
                    self._audit.keep_from_prompts([message.text])
                if found := hosted_results(message, passed):
                    self._audit.add(hosted_result(found, path, component))
            self._audit.look_at_results(_messages_of(prompt), path, component)
            self._look(serialized, [text for m in prompt for text in _texts_of(m)], kwargs)

    def on_llm_start(self, serialized: Any, prompts: list[str], **kwargs: Any) -> None:
        """Check the text prompts to a model."""
        for prompt in prompts:
            self._look(serialized, [prompt], kwargs)

    def on_llm_end(self, response: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Check a model's reply for results of tools that its provider ran."""
        path, component, _ = self._path(run_id)
        self._end(run_id)
        messages = [getattr(generation, "message", None) for row in response.generations for generation in row]
        if found := [name for message in messages for name in hosted_results(message, self._audit.pass_through)]:
            self._audit.add(hosted_result(found, path, component))

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        """Note a robust answer."""
        if name == REPORT_EVENT:
            self._audit.release(data)

    def _begin(self, serialized: Any, known: Mapping[str, Any]) -> None:
        name = known.get("name") or (serialized or {}).get("name") or (serialized or {}).get("id", ["?"])[-1]
        self._runs.begin(known["run_id"], known.get("parent_run_id"), str(name))

    def expect(self, run_id: UUID, own: Sequence[str]) -> None:
        """Announce a run that will send a prompt of ours, made of these pieces."""
        self._own[run_id] = own
        if len(self._own) > _MOST_ANNOUNCED:
            self._own.popitem(last=False)

    def _end(self, run_id: UUID) -> None:
        self._runs.end(run_id)
        self._own.pop(run_id, None)

    def _look(self, serialized: Any, texts: Sequence[str], known: Mapping[str, Any]) -> None:
        self._begin(serialized, known)
        path, component, own = self._path(known["run_id"])
        self._audit.look(texts, path, component, own)

    def component_of(self, run: UUID) -> str:
        """Return the name of a run that has not ended."""
        return self._path(run)[1]

    def _path(self, run: UUID | None) -> tuple[str, str, Sequence[str] | None]:
        """Return the runs that lead to a run, the name of the run itself, and the pieces of a prompt of ours."""
        around = self._runs.around(run)
        names = [name for _, name in around]
        own = next((self._own[known] for known, _ in around if known in self._own), None)
        return " > ".join(reversed(names)), names[0] if names else "?", own

    def _look_for_documents(self, value: Any, tool: str | None = None) -> None:
        try:
            self.learn(documents_in(value))
            if tool is not None:
                for parsed in (value, parsed_texts(value)):
                    self.learn([*documents_in(parsed), *records_in(parsed, sourced=True)])
                if self._audit.canaries is not None and tool not in self._audit.pass_through and not _is_robust(value):
                    self._audit.learn(Passage(part) for part in parts_of(value) if isinstance(part, str))
        except UnreadableError as error:
            _LOG.warning("the audit did not look for documents in a step's values: %s", error)


class _OpenAudits:
    """The innermost open `audit_isolation`. No `ContextVar`, which threads of a program's own do not inherit."""

    def __init__(self) -> None:
        self.open: list[IsolationAudit] = []

    def get(self) -> IsolationAudit | None:
        return self.open[-1] if self.open else None


_OPEN = _OpenAudits()
register_configure_hook(cast(Any, _OPEN), inheritable=True)


@contextmanager
def audit_isolation(on: On = "log", pass_through: Collection[str] = ()) -> Iterator[IsolationAudit]:
    """Check every prompt of every LangChain model in this process while the block runs.

    Args:
        on: see `IsolationAudit`.
        pass_through: see there.

    Examples:
        ```python
        with audit_isolation() as audit:
            app.invoke({"input": "Who won?"})
        assert not audit.findings
        ```
    """
    with listening(IsolationAudit(on, pass_through)) as audit:
        yield audit


@contextmanager
def listening(audit: IsolationAudit) -> Iterator[IsolationAudit]:
    """Let an audit hear all of LangChain in this process while the block runs."""
    _OPEN.open.append(audit)
    try:
        yield audit
    finally:
        _OPEN.open.remove(audit)


def announced(config: RunnableConfig, prompt: Prompt) -> RunnableConfig:
    """Return the config of a call of ours, announced to the audits among its handlers."""
    audits = [h for h in getattr(config.get("callbacks"), "handlers", ()) if isinstance(h, IsolationAudit)]
    if audits:
        run_id, pieces = uuid4(), _pieces_of(prompt)
        config["run_id"] = run_id
        for audit in audits:
            audit.expect(run_id, pieces)
    return config


def _pieces_of(prompt: Prompt) -> list[str]:
    """Return the pieces of a prompt: passages or agreed words, the question, and the words of its template."""
    if not isinstance(prompt, FilledPrompt):
        return [prompt.text]
    values: dict[str, Any] = {name: [] if isinstance(v, list) else _GAP for name, v in prompt.values.items()}
    pieces = [prompt.text, str(prompt.values.get("query", ""))]
    try:
        words = prompt.template.format_prompt(**values)
        return [*pieces, *(piece for m in words.to_messages() for t in _texts_of(m) for piece in t.split(_GAP))]
    except Exception:  # a template of a kind that takes no such values: its words are looked at like any others
        return pieces


def _messages_of(prompt: Sequence[BaseMessage]) -> list[Message]:
    """Return the messages of a prompt as the audit takes them; results of ours say what they are."""
    calls = [call for message in prompt for call in getattr(message, "tool_calls", ())]
    names = {str(call["id"]): call["name"] for call in calls}
    found = []
    for message in prompt:
        is_result = isinstance(message, (ToolMessage, FunctionMessage)) and not mark_of(message)
        tool = (message.name or names.get(getattr(message, "tool_call_id", ""), "")) if is_result else None
        found.append(Message(str(message.text), isinstance(message, HumanMessage), tool))
    return found


def _name_of(tool: Any) -> str | None:
    """Return the name of a tool that the program runs, in a provider's format."""
    inner = tool.get("function") or tool.get("toolSpec") or tool if isinstance(tool, Mapping) else {}
    return inner.get("name") if isinstance(inner, Mapping) else getattr(tool, "name", None)


def _texts_of(message: BaseMessage) -> Iterator[str]:
    """Return all text of a message that a model may be shown. Nothing reads our own mark to it."""
    extra = {name: value for name, value in message.additional_kwargs.items() if name != MARK}
    return texts_in([message.content, getattr(message, "tool_calls", None), extra])


def _is_robust(output: Any) -> bool:
    return isinstance(output, ToolMessage) and isinstance(output.artifact, Mapping) and "robustness" in output.artifact


def hosted_results(message: object, pass_through: Collection[str] = ()) -> list[str]:
    """Return the hosted tools that ran while a model made its message, but for the named ones."""
    if not isinstance(message, AIMessage):
        return []
    blocks = [b for b in message.content if isinstance(b, Mapping)] if isinstance(message.content, list) else []
    ran = [name for block in blocks if (name := _tool_of(block)) is not None]
    named = [name for name in ran if name not in _STANDARD] or ran
    named += ["grounding_metadata"] if message.response_metadata.get("grounding_metadata") else []
    # "web_search_20250305" is the tool, "web_search" its name in the blocks.
    return [n for n in dict.fromkeys(named) if not any(t == n or t.startswith(f"{n}_") for t in pass_through)]


def _tool_of(block: Mapping[str, object]) -> str | None:
    """Return the hosted tool that a block is of, or the block's type where it names none; None for other blocks."""
    kind = str(block.get("type"))
    if (found := _CALL.fullmatch(kind)) is None and kind not in _STANDARD:
        return None
    return str(block.get("name") or "") or (kind if found is None or kind in _STANDARD else found[1] or found[2])
