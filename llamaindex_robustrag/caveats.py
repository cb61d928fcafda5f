"""Warnings about a LlamaIndex LLM that weaken the answers made with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.constants import DEFAULT_SIMILARITY_TOP_K
from llama_index.core.llms import LLM

from llamaindex_robustrag.local import TextModelLLM
from robustrag_integrations._util.words import condensed_warnings, shown_warnings
from robustrag_integrations.answers.determinism import Repeats
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.grouping.quotas import few_sources_warning
from robustrag_integrations.models.base import repeats_of


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


def decoding_caveats(llm: LLM, conversation: Sequence[ChatMessage]) -> tuple[str, ...]:
    """Return warnings for what decoding aggregation leaves out: it asks the model itself, not the LLM around it."""
    found = []
    if llm.system_prompt:
        found.append("decoding aggregation does not read the LLM's system_prompt; put it into prompts=")
    if conversation:
        found.append("decoding aggregation does not read the conversation so far; condense it into the question")
    return tuple(found)


def conversation_caveats(conversation: Sequence[ChatMessage], *, condensed: bool = False) -> tuple[str, ...]:
    """Return warnings for a conversation before every prompt, or one that the question was condensed from."""
    roles = [message.role for message in conversation]
    tools = sum(map(roles.count, (MessageRole.TOOL, MessageRole.FUNCTION)))
    return (condensed_warnings if condensed else shown_warnings)(roles.count(MessageRole.ASSISTANT), tools)


def few_nodes_caveats(groups: Sequence[PassageGroup]) -> tuple[str, ...]:
    """Return warnings where a retriever found only LlamaIndex's default number of nodes, or a single source."""
    found = few_sources_warning(groups, DEFAULT_SIMILARITY_TOP_K, "as_retriever(similarity_top_k=10)")
    return () if found is None else (found,)


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
