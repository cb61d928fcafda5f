"""Resolves the model that one call's config chooses."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.config import merge_configs
from langchain_core.runnables.configurable import DynamicRunnable

from langchain_robustrag.language_models import is_open_model, rebuilt, refuse_hosted_tools, wrapped_models


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
    made = llm._model(config)
    refuse_hosted_tools(made)
    return made


def model_name(llm: Any) -> str:
    """Return the classes, names and addresses of the models inside, as a key for what is remembered of them."""
    names = ("model", "model_name", "model_id", "openai_api_base", "base_url", "deployment_name", "thinking")
    return "; ".join(
        f"{type(model).__qualname__} {[str(getattr(model, name, None))[:200] for name in names]}"
        for model, _ in wrapped_models(llm)
        if not is_open_model(model)
    )
