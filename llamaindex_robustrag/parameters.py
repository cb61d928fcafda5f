"""Lists the parameters that an LLM sends beside the prompt, and copies an LLM without those that its model refuses."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.llms import LLM

from robustrag_integrations.models.capabilities import sent_parameters, without
from robustrag_integrations.models.client_errors import LIMITS, PARAMETERS, SYSTEM

_BUILDERS = ("_get_model_kwargs", "_get_all_kwargs")  # methods with which integrations build a request's parameters
_FIELDS = tuple(name for name in PARAMETERS if name not in (*LIMITS, SYSTEM, "stop"))


def parameters_sent(llm: LLM, call_kwargs: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the optional parameters that a call holds."""
    for name in _BUILDERS:
        build = getattr(llm, name, None)
        if callable(build):
            try:
                return sent_parameters({k: v for k, v in build(**call_kwargs).items() if v is not None})
            except Exception:  # noqa: S112 - a builder of another form: the fields say enough
                continue
    held = {**_fields(llm), **(getattr(llm, "additional_kwargs", None) or {}), **call_kwargs}
    return tuple(name for name in _FIELDS if held.get(name) is not None)


def without_parameters(
    llm: LLM, call_kwargs: Mapping[str, Any], refused: Collection[str]
) -> tuple[LLM, dict[str, Any]]:
    """Return the LLM and the arguments of a call without these parameters; the given ones stay as they are."""
    if not refused:
        return llm, dict(call_kwargs)
    kept = {name: value for name, value in call_kwargs.items() if name not in refused}
    builders = {name: build for name in _BUILDERS if callable(build := getattr(type(llm), name, None))}
    if builders:
        copied = llm.model_copy()
        for name, build in builders.items():
            vars(copied)[name] = functools.partial(_built, build, copied, frozenset(refused))
        return copied, dict(call_kwargs)
    updates: dict[str, Any] = {name: None for name in refused if _fields(llm).get(name) is not None}
    if isinstance(extra := getattr(llm, "additional_kwargs", None), Mapping):
        updates["additional_kwargs"] = {name: value for name, value in extra.items() if name not in refused}
    return llm.model_copy(update=updates), kept


def without_system(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return the messages with each system message put in front of the text of the next one."""
    first: list[str] = []
    kept = []
    for message in messages:
        if message.role == MessageRole.SYSTEM:
            first.append(message.content or "")
        else:
            text = "\n\n".join((*first, message.content or ""))
            kept.append(ChatMessage(role=message.role, content=text) if first else message)
            first = []
    return kept


def retries_itself(llm: LLM) -> bool:
    """True if the LLM's client retries by itself."""
    return getattr(llm, "max_retries", 0) != 0


def _built(build: Any, llm: LLM, refused: frozenset[str], **kwargs: Any) -> dict[str, Any]:
    return without(build(llm, **kwargs), refused)


def _fields(llm: LLM) -> dict[str, Any]:
    return {name: value for name, value in vars(llm).items() if name in _FIELDS}
