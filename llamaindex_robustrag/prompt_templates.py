"""The core's prompts as LlamaIndex prompt templates, and back, for `get_prompts` and `update_prompts`."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from llama_index.core.prompts import BasePromptTemplate, PromptTemplate
from llama_index.core.prompts.base import SelectorPromptTemplate

from llamaindex_robustrag.user_prompts import VARIABLES
from robustrag_integrations.prompts import PromptSet, Task, agreed_prompt, prompts_for
from robustrag_integrations.prompts import PromptTemplate as CoreTemplate

_KEYS = {
    "isolated_template": "isolated",
    "keyword_template": "keyword",
    "phrases_template": "phrases",
    "no_retrieval_template": "no_retrieval",
}
_FIELD = re.compile(r"\{([A-Za-z_]\w*)\}")


def prompts_dict(prompts: PromptSet) -> dict[str, BasePromptTemplate]:
    """The templates under LlamaIndex's names: `{context_str}`, `{query_str}`, `{keywords_str}`, `{choices_str}`."""
    found = {key: getattr(prompts, name) for key, name in _KEYS.items()}
    return {key: _to_llama_index(template) for key, template in found.items() if template is not None}


def with_prompts(prompts: PromptSet, updates: dict[str, BasePromptTemplate], task: Task) -> PromptSet:
    """The prompts with some of them replaced. Keys with a colon belong to other modules and are passed over.

    A new isolated prompt is the final one as well, with the agreed keywords for the passages, unless a keyword prompt
    comes with it or the final one was changed before.

    Raises:
        ValueError: an unknown key, a template without a variable that it needs, or with an unknown one.
        TypeError: a template with messages, functions or a parser, which cannot be isolated as one text.
    """
    own = {key: template for key, template in updates.items() if ":" not in key}
    if unknown := sorted(set(own) - set(_KEYS)):
        raise ValueError(f"unknown prompts {', '.join(unknown)}; known here: text_qa_template, {', '.join(_KEYS)}")
    changes: dict[str, Any] = {}
    for key, template in own.items():
        current: CoreTemplate | None = getattr(prompts, _KEYS[key])
        if current is None:
            raise ValueError(f"{key} is not used by these prompts; known here: {', '.join(prompts_dict(prompts))}")
        changes[_KEYS[key]] = _to_core(key, template, current.fields)
    isolated = changes.get("isolated")
    if isolated is not None and "keyword" not in changes and prompts.keyword in _finals(prompts, task):
        changes["keyword"] = agreed_prompt(isolated, task)
    return replace(
        prompts, ours=prompts.ours and _same(changes.get("keyword", prompts.keyword), prompts.keyword), **changes
    )


def _same(one: CoreTemplate | None, other: CoreTemplate | None) -> bool:
    """Whether two prompts ask in the same words."""
    texts = [None if t is None else t.instruction + t.body for t in (one, other)]
    return texts[0] == texts[1]


def _finals(prompts: PromptSet, task: Task) -> list[CoreTemplate | None]:
    """The final prompts that nobody wrote for themselves."""
    return [prompts_for(task).keyword, agreed_prompt(prompts.isolated, task)] if prompts.keyword is not None else []


def _to_llama_index(template: CoreTemplate) -> PromptTemplate:
    shown = {name: f"{{{VARIABLES[name]}}}" for name in template.fields}
    return PromptTemplate(template.render(**shown).text)


def _to_core(key: str, template: BasePromptTemplate, fields: tuple[str, ...]) -> CoreTemplate:
    if isinstance(template, SelectorPromptTemplate):
        template = template.default_template
    if not isinstance(template, PromptTemplate) or template.function_mappings or template.output_parser:
        raise TypeError(
            f"{key} must be a plain PromptTemplate without functions or parser, got {type(template).__name__}; pass "
            "other templates as text_qa_template or keyword_prompt"
        )
    names = {(template.template_var_mappings or {}).get(v, v): field for field, v in VARIABLES.items()}
    names |= {field: field for field in fields}

    def piece(match: re.Match[str]) -> str:
        name = match.group(1)
        if name in template.kwargs:
            return _literal(str(template.kwargs[name]))
        return f"{{{names[name]}}}" if name in names else _literal(match.group())

    text, body, at = template.template, "", 0
    for match in _FIELD.finditer(text):
        body += _literal(text[at : match.start()]) + piece(match)
        at = match.end()
    return CoreTemplate("", body + _literal(text[at:]), fields)


def _literal(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
