"""Resolves the model that one call's config chooses, and copies it without the parameters that it refuses."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import Runnable, RunnableConfig, RunnablePassthrough
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.config import merge_configs
from langchain_core.runnables.configurable import DynamicRunnable

from langchain_robustrag.language_models import is_open_model, rebuilt, wrapped_models
from robustrag_integrations.models.client_errors import LIMITS, PARAMETERS, SYSTEM

_OWN = (*LIMITS, SYSTEM, "stop")  # the user's and the framework's: never left out here
_LEFT_OUT = tuple(name for name in PARAMETERS if name not in _OWN)
_HOLDERS = ("model_kwargs", "extra_body", "additional_model_request_fields", "pipeline_kwargs")


def configured(llm: Any, config: RunnableConfig) -> Any:
    """Return the model with its configurable fields and alternatives resolved, and any `init_chat_model` built.

    Raises:
        ValueError: `init_chat_model` was given no model, and the config names none.
    """

    def chosen(runnable: Any) -> Any:
        if isinstance(runnable, DynamicRunnable):
            inner, inside = runnable.prepare(config)
            inner = configured(inner, inside)
            return inner.with_config(runnable.config) if runnable.config else inner
        if isinstance(runnable, RunnableBindingBase):
            inside = merge_configs(runnable.config, config)
            inside = merge_configs(inside, *(make(inside) for make in runnable.config_factories))
            inner = configured(runnable.bound, inside)
            return runnable if inner is runnable.bound else runnable.model_copy(update={"bound": inner})
        return configured(_made(runnable, config), config) if is_open_model(runnable) else runnable

    return rebuilt(llm, chosen)


def _made(llm: Any, config: RunnableConfig) -> Any:
    named = {**llm._default_config, **llm._model_params(config)}
    if not named.get("model"):
        raise ValueError(
            "init_chat_model was given no model, and the config names none: give "
            'config={"configurable": {"model": "..."}}, or name one in init_chat_model'
        )
    return llm._model(config)


def drawable(llm: Any) -> Any:
    """Return the model in a form that a graph can draw: one that configs choose has no name before."""

    def named(runnable: Any) -> Any:
        shown: Runnable[Any, Any] = RunnablePassthrough[Any]().with_config(run_name="model_of_the_config")
        return shown if is_open_model(runnable) else runnable

    return rebuilt(llm, named)


def model_name(llm: Any) -> str:
    """Return the classes, names and addresses of the models inside, as a key for what is remembered of them."""
    names = ("model", "model_name", "model_id", "openai_api_base", "base_url", "deployment_name", "thinking")
    return "; ".join(
        f"{type(model).__qualname__} {[str(getattr(model, name, None))[:200] for name in names]}"
        for model, _ in wrapped_models(llm)
        if not is_open_model(model)
    )


def parameters_sent(llm: Any) -> tuple[str, ...]:
    """Return the optional parameters that the models inside send."""
    found: set[str] = set()
    for model, bound in wrapped_models(llm):
        holders = [bound, *(bound.get(name) for name in _HOLDERS)]
        if isinstance(model, BaseLanguageModel):
            holders += [vars(model), *(vars(model).get(name) for name in _HOLDERS)]
        for holder in holders:
            if isinstance(holder, Mapping):
                found |= {name for name in _LEFT_OUT if holder.get(name) is not None}
    return tuple(name for name in _LEFT_OUT if name in found)


def without_parameters(llm: Any, refused: Collection[str]) -> Any:
    """Return the model without these parameters, wherever they were set; the given one stays as it is."""

    def change(runnable: Any) -> Any:
        updates: dict[str, Any] = {}
        if isinstance(runnable, RunnableBindingBase):
            if (kwargs := _stripped(runnable.kwargs, refused)) != runnable.kwargs:
                updates["kwargs"] = kwargs
            if (inner := rebuilt(runnable.bound, change)) is not runnable.bound:
                updates["bound"] = inner
        elif isinstance(runnable, BaseLanguageModel):
            held = vars(runnable)
            updates = {name: None for name in refused if held.get(name) is not None}
            for name in _HOLDERS:
                if isinstance(inside := held.get(name), Mapping) and inside.keys() & set(refused):
                    updates[name] = {key: value for key, value in inside.items() if key not in refused}
        return runnable.model_copy(update=updates) if updates else runnable

    return rebuilt(llm, change) if refused else llm


def _stripped(kwargs: Mapping[str, Any], refused: Collection[str]) -> dict[str, Any]:
    kept = {name: value for name, value in kwargs.items() if name not in refused}
    for name in _HOLDERS:
        if isinstance(inside := kept.get(name), Mapping):
            kept[name] = {key: value for key, value in inside.items() if key not in refused}
    return kept
