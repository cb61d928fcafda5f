"""From a model's name, as it is typed or written into a file, to the model."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from robustrag_integrations.checks import check_at_least
from robustrag_integrations.models.base import TextModel
from robustrag_integrations.models.providers import SETTINGS, Provider, forms, forms_that_take, provider_of

_COUNTS = ("max_context_tokens", "max_new_tokens", "max_concurrency")
DTYPES = ("float32", "bfloat16", "float16", "float64", "auto")


@dataclass(frozen=True)
class NamedModel:
    """A model by its name, and how to run it.

    Attributes:
        name: `bundled`, a folder with a transformers model, `openai:NAME`, `openai-completions:NAME` (a server that
            gives token probabilities; `NAME@TOKENIZER` where the tokenizer is not found under the model's name), or
            `python:MODULE:OBJECT`, where the object is a function from prompt to text or a `TextModel`: whatever
            `PROVIDERS` has an entry for.
        base_url: the server of a served model.
        max_context_tokens: how many tokens of passages a group may have; local models only, None for their default.
        max_new_tokens: the longest text; local and served models only, None for their default.
        dtype: what a local model computes in, one of `DTYPES`; None for its default.
        max_concurrency: how many calls may be under way; not for local models, None for the default of the others.

    Raises:
        ValueError: there is no such model, or a setting does not go with it; the message says what does.
    """

    name: str
    base_url: str | None = None
    max_context_tokens: int | None = None
    max_new_tokens: int | None = None
    dtype: str | None = None
    max_concurrency: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ValueError(f"name={self.name!r:.80} must be a text")
        if problem := check_name(self.name):
            raise ValueError(problem)
        check_at_least(1, **{name: n for name in _COUNTS if (n := getattr(self, name)) is not None})
        if self.dtype is not None and self.dtype not in DTYPES:
            raise ValueError(f"dtype={self.dtype!r:.80} must be one of {', '.join(DTYPES)}")
        for setting in self._settings:
            if setting not in self._provider.takes:
                raise ValueError(f"{setting} goes with {forms_that_take(setting)}, not with {self.name!r}")
        if self.base_url is not None and not str(self.base_url).startswith(("http://", "https://")):
            raise ValueError(f"base_url={self.base_url!r:.200} must start with http:// or https://")

    @property
    def gives_probabilities(self) -> bool:
        """Whether it may serve decoding aggregation; of a function that is known only once it is loaded."""
        return self._provider.gives_probabilities

    @property
    def local(self) -> bool:
        """Whether it is a transformers model in this process."""
        return self._provider.in_process

    def load(self) -> TextModel:
        """The model.

        Raises:
            ModelError: it cannot be loaded, or has no key.
            ImportError: an extra is missing.
        """
        return self._provider.load(self._provider.rest(self.name), self._settings)

    def fingerprint(self) -> str:
        """What decides the model's answers, as a hash: weights and settings of a local model, a function's module, a
        server's address and the model's name there.

        Raises:
            ModelError: its files cannot be read.
        """
        digest = hashlib.sha256(
            repr((self.base_url, self.max_context_tokens, self.max_new_tokens, self.dtype)).encode()
        )
        for part in self._provider.parts(self._provider.rest(self.name), self._settings):
            digest.update(part)
        return digest.hexdigest()[:16]

    @property
    def _provider(self) -> Provider:
        provider = provider_of(self.name)
        assert provider is not None  # noqa: S101 - the name has been checked
        return provider

    @property
    def _settings(self) -> dict[str, Any]:
        """What was given."""
        return {name: value for name in SETTINGS if (value := getattr(self, name)) is not None}


def check_name(name: str) -> str | None:
    """What is wrong with a model's name; None if nothing is."""
    provider = provider_of(name)
    if provider is None:
        *others, last = forms()
        return f"unknown model {name!r}: give {', '.join(others)}, or {last}"
    return provider.problem(provider.rest(name))
