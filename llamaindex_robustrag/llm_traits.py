"""What the settings of a LlamaIndex LLM say: whether it samples, blocks the event loop, or runs tools by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llama_index.core.llms import LLM, CustomLLM
from llama_index.core.llms.structured_llm import StructuredLLM

from llamaindex_robustrag.local import TextModelLLM
from robustrag_integrations.answers.determinism import Repeats
from robustrag_integrations.audit.hosted import hosted_in
from robustrag_integrations.models.base import repeats_of

_FIELDS = ("built_in_tools", "built_in_tool", "additional_kwargs")  # of LlamaIndex's LLMs, with what every call sends


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
    own = {field: getattr(llm, field, None) for field in _FIELDS}
    return list(dict.fromkeys([*hosted_in(own), *hosted_in(call or {})]))


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
