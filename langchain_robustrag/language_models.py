"""Finds the language models inside LangChain's wrappers.

`.bind`, `.with_retry`, `.with_fallbacks`, `.with_config` and configurable fields all put a Runnable around the model;
`ChatHuggingFace` puts itself around a `HuggingFacePipeline`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from langchain_core.language_models import BaseLanguageModel, LanguageModelLike
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableAssign, RunnableConfig, RunnableParallel, RunnableSequence
from langchain_core.runnables.base import RunnableBindingBase, coerce_to_runnable
from langchain_core.runnables.config import merge_configs
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.runnables.retry import RunnableRetry
from pydantic import BaseModel

from robustrag_integrations.answers.determinism import Repeats
from robustrag_integrations.audit.hosted import hosted_in
from robustrag_integrations.models.base import DecodingModel, TextModel

AnyModel: TypeAlias = LanguageModelLike | TextModel | DecodingModel


def as_runnable(llm: Any, name: str = "llm") -> Runnable[Any, Any]:
    """Return the model as a Runnable that answers without repeating its prompt; TypeError if it is none."""
    if isinstance(llm, (TextModel, DecodingModel)):
        raise TypeError(
            f"{name} is a {type(llm).__name__}, which LangChain cannot call; give one of LangChain's. A TextModel of "
            "the core is taken as llm= alone, without final_llm= and output_schema="
        )
    if isinstance(llm, BaseRetriever) or (not isinstance(llm, (Runnable, Mapping)) and not callable(llm)):
        raise TypeError(
            f"{name} must be a language model, a Runnable or a function, got {llm!r:.60}; give a chat model, such as "
            "init_chat_model('...')"
        )
    if (chain := _chain_in(llm)) is not None:
        raise TypeError(
            f"{name} must be the language model, got a chain over documents ({chain}); give what that chain was made "
            "from: create_robust_retrieval_chain(retriever, llm, prompt), or LangChain's "
            "create_retrieval_chain(retriever, create_robust_documents_chain(llm, prompt))"
        )
    refuse_hosted_tools(llm, name)
    runnable: Runnable[Any, Any] = rebuilt(coerce_to_runnable(llm), _answer_only)
    return runnable


def _chain_in(llm: Any) -> str | None:
    """Return the class of a chain that takes a dict of documents and a question, and is no model; None for a model."""
    while isinstance(llm, (RunnableBindingBase, RunnableSequence)) and "answering" not in type(llm).model_fields:
        llm = llm.first if isinstance(llm, RunnableSequence) else llm.bound
    fields = type(llm).model_fields if isinstance(llm, BaseModel) else {}
    ours = "answering" in fields or "document_variable_name" in fields
    return type(llm).__name__ if ours or isinstance(llm, (RunnableAssign, RunnableParallel)) else None


def wrapped_models(runnable: Any, bound: Mapping[str, Any] | None = None) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield the models inside a Runnable, each with the arguments bound to it on the way."""
    arguments = {**(dict(runnable.kwargs) if isinstance(runnable, RunnableBindingBase) else {}), **(bound or {})}
    inside = _inside(runnable)
    if not inside:
        yield runnable, arguments
    for inner in inside:
        yield from wrapped_models(inner, arguments)


def refuse_hosted_tools(llm: Any, name: str = "llm") -> None:
    """Raise ValueError for a reader that is not asked about its documents alone."""
    if hosted := hosted_tools_of(llm):
        raise ValueError(
            f"{name} has a tool that its provider runs ({', '.join(hosted)}): what that finds reaches the model beside "
            "the isolated documents; give the model without it"
        )


def hosted_tools_of(llm: Any) -> list[str]:
    """Return the tools of the provider's own that are bound to a model, or among its settings."""
    found: list[str] = []
    for model, bound in wrapped_models(llm):
        fields = () if is_open_model(model) else ("model_kwargs", "extra_body")
        found += [*hosted_in(bound), *hosted_in({name: getattr(model, name, None) for name in fields})]
    return list(dict.fromkeys(found))


def rebuilt(runnable: Any, change: Callable[[Any], Any]) -> Any:
    """Return a copy with `change` applied to the Runnable or, where that changes nothing, to the Runnables inside."""
    changed = change(runnable)
    if changed is not runnable:
        return changed
    updates: dict[str, Any] = {}
    for name, value in _fields(runnable):
        if isinstance(value, (list, tuple)):
            items = [rebuilt(v, change) if isinstance(v, Runnable) else v for v in value]
            if any(new is not old for new, old in zip(items, value, strict=True)):
                updates[name] = items
        elif isinstance(value, Runnable) and (new := rebuilt(value, change)) is not value:
            updates[name] = new
    return runnable.model_copy(update=updates) if updates else runnable


def configured(llm: Any, config: RunnableConfig) -> Any:
    """Return the model with its configurable fields and alternatives resolved, and any `init_chat_model` built."""

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
        if not is_open_model(runnable):
            return runnable
        if not {**runnable._default_config, **runnable._model_params(config)}.get("model"):
            raise ValueError(
                "init_chat_model was given no model, and the config names none: give "
                'config={"configurable": {"model": "..."}}, or name one in init_chat_model'
            )
        made = runnable._model(config)
        refuse_hosted_tools(made)
        return configured(made, config)

    return rebuilt(llm, chosen)


def is_open_model(runnable: Any) -> bool:
    """True for an `init_chat_model` whose model configs choose. Reading an attribute of it would create a model."""
    return type(runnable).__name__ == "_ConfigurableModel"


def is_pipeline(model: Any) -> bool:
    """True for a `HuggingFacePipeline` (of langchain-huggingface, or the older one of langchain-community)."""
    return any(cls.__name__ == "HuggingFacePipeline" for cls in type(model).__mro__)


def has_pipeline(runnable: Any) -> bool:
    """True if a `HuggingFacePipeline` is inside."""
    return any(is_pipeline(model) for model, _ in wrapped_models(runnable))


@dataclass(frozen=True)
class Traits:
    """What the settings of a model, and of the models inside, say about its calls.

    `retries`: it tries again by itself; `repeats`: whether answers are reproducible.
    """

    retries: bool
    repeats: Repeats


def traits_of(runnable: Any) -> Traits:
    """Return the traits of a model whose configurable fields are resolved."""
    reasons = (_sampling(model, arguments) for model, arguments in wrapped_models(runnable))
    why = dict.fromkeys(r for r in reasons if r is not None)
    repeats = Repeats("samples", "; ".join(why)) if why else Repeats()
    return Traits(_retries_itself(runnable), repeats)


def is_configurable(runnable: Any) -> bool:
    """True if the config of a call chooses a model inside, or one of its fields."""
    return (
        is_open_model(runnable) or isinstance(runnable, DynamicRunnable) or any(map(is_configurable, _inside(runnable)))
    )


def _retries_itself(runnable: Any) -> bool:
    """True if a model inside, or a wrapper around it, retries by itself (`max_retries`, `with_retry`)."""
    return (
        isinstance(runnable, RunnableRetry)
        or any(
            isinstance(model, BaseLanguageModel) and getattr(model, "max_retries", 0) != 0
            for model, _ in wrapped_models(runnable)
        )
        or any(map(_retries_itself, _inside(runnable)))
    )


def decoding_model(llm: Any) -> DecodingModel:
    """Return a model that gives next-token probabilities; TypeError for any other."""
    if isinstance(llm, DecodingModel):
        return llm
    names = " in ".join(dict.fromkeys(type(m).__name__ for m in (*[m for m, _ in wrapped_models(llm)], llm)))
    raise TypeError(
        f"decoding aggregation needs next-token probabilities, which {names} does not give. Use method='keyword', "
        "which works with any model, or a LocalModel: of a HuggingFacePipeline, "
        "LocalModel(llm.pipeline.model, llm.pipeline.tokenizer)"
    )


def _answer_only(model: Any) -> Any:
    """Have a pipeline leave its prompt out of its answer, where keywords would be read out of the passage."""
    if not is_pipeline(model):
        return model
    pipeline_class: Any = type(model)

    class AnswerOnly(pipeline_class):  # type: ignore[misc]
        def _generate(self, *args: Any, **kwargs: Any) -> Any:
            settings = {**(kwargs.get("pipeline_kwargs") or {}), "return_full_text": False}
            return super()._generate(*args, **{**kwargs, "pipeline_kwargs": settings, "skip_prompt": False})

        def _stream(self, *args: Any, **kwargs: Any) -> Any:
            yield from super()._stream(*args, **{**kwargs, "skip_prompt": True})

    AnswerOnly.__name__ = AnswerOnly.__qualname__ = pipeline_class.__name__
    return AnswerOnly(**{name: getattr(model, name) for name in pipeline_class.model_fields})


def _sampling(model: Any, arguments: Mapping[str, Any]) -> str | None:
    if is_pipeline(model):
        samples = _pipeline_samples(model.pipeline, arguments.get("pipeline_kwargs") or {})
        return "the pipeline was not given do_sample=False" if samples else None
    if is_open_model(model) or ("temperature" not in arguments and not hasattr(model, "temperature")):
        return None
    temperature = arguments.get("temperature", getattr(model, "temperature", None))
    if temperature is None:
        return "no temperature is set, and most servers then sample"
    return f"its temperature is {temperature}" if temperature else None


def _pipeline_samples(pipeline: Any, asked: Mapping[str, Any]) -> bool:
    """True if a text-generation pipeline samples; it does unless told otherwise."""
    for settings in (asked, getattr(pipeline, "_generate_kwargs", {}), getattr(pipeline, "_forward_params", {})):
        if "do_sample" in settings:
            return bool(settings["do_sample"])
        if settings.get("generation_config") is not None:
            return bool(settings["generation_config"].do_sample)
    return bool(getattr(getattr(pipeline, "generation_config", None), "do_sample", True))


def _fields(runnable: Any) -> list[tuple[str, Any]]:
    """Return a Runnable's fields with their values; none if it is not a pydantic model, such as a function."""
    if not isinstance(runnable, BaseModel):
        return []
    return [(name, getattr(runnable, name, None)) for name in cast("Any", type(runnable)).model_fields]


def _inside(runnable: Any) -> list[Any]:
    values = [value if isinstance(value, (list, tuple)) else [value] for _, value in _fields(runnable)]
    return [item for items in values for item in items if isinstance(item, (Runnable, BaseLanguageModel))]
