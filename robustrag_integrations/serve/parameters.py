"""Which parameters of a chat completion are followed, ignored, ignored with a warning, or refused.

What would change the meaning of the answer is refused, and so is what nobody has heard of.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from robustrag_integrations.serve.refusals import RefusedError

READ = frozenset({"model", "messages", "stream", "stream_options", "robustrag"})
# About the account, the bill or the cache of a provider; the answer is the same.
IGNORED = frozenset({
    "metadata", "parallel_tool_calls", "prompt_cache_key", "prompt_cache_retention", "safety_identifier",
    "service_tier", "store", "user",
})  # fmt: skip
# How the model is asked is the server's business: the radius was counted for that.
WARNED = frozenset({
    "frequency_penalty", "max_completion_tokens", "max_tokens", "min_p", "presence_penalty", "reasoning_effort",
    "repetition_penalty", "seed", "temperature", "top_k", "top_p", "verbosity",
})  # fmt: skip
# Refused, but for the values that ask for nothing.
NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "audio": (),
    "function_call": ("none", "auto"),
    "functions": ([],),
    "logit_bias": ({},),
    "logprobs": (False,),
    "modalities": (["text"],),
    "n": (1,),
    "prediction": (),
    "response_format": ({"type": "text"},),
    "stop": ([], ""),
    "tool_choice": ("none", "auto"),
    "tools": ([],),
    "top_logprobs": (0,),
    "web_search_options": (),
}


def check_parameters(body: Mapping[str, Any]) -> tuple[str, ...]:
    """What the client should know of its parameters, in words.

    Raises:
        RefusedError: one would change what the answer means, or is unknown.
    """
    given = [name for name, value in body.items() if value is not None]
    for name in given:
        if name in READ or name in IGNORED or name in WARNED:
            continue
        if name not in NEUTRAL:
            raise RefusedError(400, f"unknown parameter: {name}", code="unknown_parameter", param=name)
        if not _is_one_of(body[name], NEUTRAL[name]):
            raise RefusedError(
                400,
                f"{name} is not supported: answers are aggregated from the documents; leave it out",
                code="unsupported_parameter",
                param=name,
            )
    ignored = sorted(WARNED.intersection(given))
    return (f"ignored: {', '.join(ignored)}; the server decides how its model is asked",) if ignored else ()


def _is_one_of(value: Any, allowed: tuple[Any, ...]) -> bool:
    return any(value == one and type(value) is type(one) for one in allowed)
