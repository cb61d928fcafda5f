"""What the settings of a LlamaIndex LLM say: whether it samples, blocks the event loop, or runs tools by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llama_index.core.llms import LLM, CustomLLM
from llama_index.core.llms.structured_llm import StructuredLLM

from llamaindex_robustrag.local import TextModelLLM
from robustrag_integrations.answers.determinism import Repeats
from robustrag_integrations.models.base import repeats_of

_FIELDS = ("built_in_tools", "built_in_tool")  # of LlamaIndex's LLMs
_ARGUMENTS = ("web_search_options", "built_in_tools", "tools")  # of their calls and `additional_kwargs`


def plain_llm(llm: LLM) -> LLM:
    """Return the LLM inside structured ones."""
    while isinstance(llm, StructuredLLM):
        llm = llm.llm
    return llm


def blocks_the_loop(llm: LLM, method: str) -> bool:
    """True if the LLM's asynchronous method is `CustomLLM`'s, which calls the synchronous one on the event loop."""
    return next((c for c in type(llm).__mro__ if method in c.__dict__), None) is CustomLLM


def llm_repeats(llm: LLM, call_kwargs: Mapping[str, Any]) -> Repeats:
    """Return what the settings of an LLM say about reproducible answers.

    Args:
        llm: a plain LLM.
        call_kwargs: the arguments of every call.
    """
    if isinstance(llm, TextModelLLM):
        return repeats_of(llm.model)
    if temperature := _temperature(llm, call_kwargs):
        advice = "" if temperature == 1 else "; set temperature=0"  # reasoning models are fixed to 1
        return Repeats("samples", f"temperature {temperature:g}{advice}")
    if temperature is None:
        return Repeats("samples", "no temperature is set, and most servers then sample")
    if _samples_locally(llm):
        return Repeats("samples", 'do_sample; pass generate_kwargs={"do_sample": False}')
    return Repeats()


def hosted_tools(llm: LLM, call: Mapping[str, Any] | None = None) -> list[str]:
    """Return the names of the tools that an LLM's provider runs.

    Args:
        llm: the LLM; its fields and `additional_kwargs` count.
        call: the arguments of a call.
    """
    found = [name for field in _FIELDS for name in _named(getattr(llm, field, None), field)]
    for holder in (getattr(llm, "additional_kwargs", None) or {}, call or {}):
        found += [name for field in _ARGUMENTS for name in _named(holder.get(field), field)]
    return list(dict.fromkeys(found))


def _named(value: Any, field: str) -> list[str]:
    if not value:
        return []
    if field == "tools":  # functions are the program's own
        tools = [tool for tool in value if isinstance(tool, Mapping)] if isinstance(value, (list, tuple)) else []
        return [str(tool["type"])[:60] for tool in tools if tool.get("type") not in (None, "function", "custom")]
    listed = value if isinstance(value, (list, tuple)) else [value]
    return [str(tool["type"])[:60] if isinstance(tool, Mapping) and "type" in tool else field for tool in listed]


def _temperature(llm: LLM, call_kwargs: Mapping[str, Any]) -> float | None:
    """Return the temperature of the next call; None if it has one that nobody set, 0 if it has none."""
    if hasattr(llm, "generate_kwargs"):  # local transformers ignore a temperature unless they sample
        return 0.0
    for value in (
        call_kwargs.get("temperature"),
        (getattr(llm, "additional_kwargs", None) or {}).get("temperature"),
        getattr(llm, "temperature", None),
    ):
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
    return None if "temperature" in type(llm).model_fields else 0.0


def _samples_locally(llm: LLM) -> bool:
    given = getattr(llm, "generate_kwargs", None)
    if isinstance(given, Mapping) and "do_sample" in given:
        return bool(given["do_sample"])
    config = getattr(getattr(llm, "_model", None), "generation_config", None)
    return bool(getattr(config, "do_sample", False))
