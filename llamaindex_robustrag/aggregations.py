"""Which of the core's methods a synthesizer runs, and with which settings."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from robustrag_integrations.checks import nearest_of
from robustrag_integrations.defenses.base import MethodSettings
from robustrag_integrations.defenses.registry import METHODS, Method, default_method, method_of

_OF_STOCK = {
    **dict.fromkeys(
        ("response_mode", "use_async", "structured_answer_filtering", "program_factory"),
        "every document is asked alone, in one way; leave it out",
    ),
    **dict.fromkeys(
        (
            *("refine_template", "summary_template", "simple_template"),
            *("context_template", "context_refine_template", "context_prompt", "context_refine_prompt"),
        ),
        "the one prompt is text_qa_template",
    ),
    **dict.fromkeys(
        ("similarity_top_k", "top_k", "k"), "it belongs to the retriever: index.as_retriever(similarity_top_k=10)"
    ),
    "verbose": "the report says more: response.metadata['robustrag'], or robust_answer(response).explain()",
    "return_source_documents": "response.source_nodes has them",
}


def method_and_settings(
    aggregation: str | MethodSettings | None, given: Mapping[str, Any], others: Collection[str] = ()
) -> tuple[Method, MethodSettings]:
    """The core's method and its settings.

    Args:
        aggregation: a method's name, or finished settings; None for the one that takes all that is given.
        given: the settings by name, `task` and `prompts` among them; None for the default.
        others: the names of what else was given that not every method takes.

    Raises:
        ValueError, TypeError: an unknown method or argument, or an invalid one.
    """
    if aggregation is None:
        aggregation = default_method(given.get("task"), [*given, *others])
    if not isinstance(aggregation, str):
        if given:
            raise TypeError(f"{', '.join(sorted(given))}: put these into the settings passed as aggregation=")
        return _method_of_settings(aggregation), aggregation
    method = method_of(aggregation)
    known = [*(setting.name for setting in method.settings), "task", "prompts"]
    if unknown := sorted(set(given) - set(known)):
        near = nearest_of(unknown[0], [*known, *(s.name for other in METHODS.values() for s in other.settings)])
        hint = (
            f"did you mean {near}?"
            if near not in (None, unknown[0])
            else f"{method.name} aggregation takes {', '.join(known)}"
        )
        hint = _OF_STOCK.get(unknown[0], hint)
        raise TypeError(f"unknown arguments {', '.join(unknown)}; {hint}")
    return method, method.settings_of(given)


def _method_of_settings(settings: MethodSettings) -> Method:
    for method in METHODS.values():
        if type(settings) is method.load().settings_type:
            return method
    raise TypeError(
        f"aggregation must be one of {', '.join(map(repr, METHODS))} or the settings of one, got "
        f"{type(settings).__name__}"
    )
