"""Models by name, as it is typed or written into a file: one entry for each kind in `PROVIDERS`.

Command line, evaluation, cache and certificates read nothing else.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robustrag_integrations._util.checks import check_at_least
from robustrag_integrations._util.errors import ModelError
from robustrag_integrations._util.plugins import load_object, see_working_folder
from robustrag_integrations.models.base import TextModel

DTYPES = ("float32", "bfloat16", "float16", "float64", "auto")
SETTINGS = ("base_url", "max_context_tokens", "max_new_tokens", "dtype", "max_concurrency")
_COUNTS = ("max_context_tokens", "max_new_tokens", "max_concurrency")
_OF_REPLIES = ("dtype", "max_context_tokens", "max_new_tokens")
_WHOLE_FILE = 1 << 28  # bytes; of larger files the fingerprint takes size, time and beginning


@dataclass(frozen=True)
class Provider:
    """One kind of model."""

    form: str  # of its names, such as `openai:NAME`; what stands before the first capital is the prefix
    help: str  # on the command line
    takes: frozenset[str]  # those of `SETTINGS` that go with it
    load: Callable[[str, Mapping[str, Any]], TextModel]  # from the name behind the prefix and the given settings
    parts: Callable[[str, Mapping[str, Any]], Iterator[bytes]]  # what decides its answers
    pattern: str = ".*"  # of the name behind the prefix
    gives_probabilities: bool = True  # for decoding aggregation; true where that is known only once it is loaded

    @property
    def prefix(self) -> str:
        """The prefix of its names; empty where a name is taken as it is."""
        before, colon, _ = self.form.partition(":")
        return before + colon if colon else ""

    def owns(self, name: str) -> bool:
        """Tell whether a name is one of its own."""
        if self.prefix:
            return name.startswith(self.prefix)
        return name == self.form or (self.form == "PATH" and os.path.isdir(name))


def provider_of(name: str) -> Provider | None:
    """Return the provider of a model of this name; None if there is none."""
    return next((provider for provider in PROVIDERS if provider.owns(name)), None)


def forms_that_take(setting: str) -> str:
    """Return the forms of the names that take a setting, as a phrase."""
    return " or ".join(provider.form for provider in PROVIDERS if setting in provider.takes)


def described(default: str) -> str:
    """Describe every provider in a phrase, for the command line."""
    return "; ".join(f"{p.form}{' (default)' if p.form == default else ''}: {p.help}" for p in PROVIDERS)


def takes(name: str, setting: str) -> bool:
    """Tell whether a model of this name takes a setting."""
    provider = provider_of(name)
    return provider is not None and setting in provider.takes


def silence_transformers() -> None:
    """Turn off the library's progress bars and advice; what matters is in the answer's own warnings."""
    from transformers.utils import logging

    library: Any = logging  # its functions have no types
    library.set_verbosity_error()
    library.disable_progress_bar()


def _folder_of(name: str) -> Path:
    from robustrag_integrations.reader import reader_path

    return reader_path() if name == "bundled" else Path(name)


def _load_local(name: str, settings: Mapping[str, Any]) -> TextModel:
    from robustrag_integrations.models.local.model import LocalModel

    silence_transformers()
    try:
        if not (_folder_of(name) / "config.json").is_file():
            raise ModelError(f"the folder {name!r} holds no transformers model: there is no config.json in it")
        return LocalModel.bundled(**settings) if name == "bundled" else LocalModel.from_pretrained(name, **settings)
    except (ModelError, ImportError):
        raise
    except Exception as error:  # a broken folder may raise nearly anything inside the libraries
        raise ModelError(f"cannot load the model {name!r}: {type(error).__name__}: {error}") from error


def _local_parts(name: str, _: Mapping[str, Any]) -> Iterator[bytes]:
    for file in sorted(_folder_of(name).iterdir()):
        if file.suffix in (".json", ".safetensors", ".model", ".jinja") and file.name != "scores.json":  # about it
            yield file.name.encode()
            with file.open("rb") as opened:
                yield opened.read(_WHOLE_FILE)
            if (status := file.stat()).st_size > _WHOLE_FILE:
                yield f"{status.st_size} {status.st_mtime_ns}".encode()


def _load_chat(model: str, settings: Mapping[str, Any]) -> TextModel:
    from robustrag_integrations.models.server.model import OpenAIModel

    return OpenAIModel(model, **_of_server(settings))


def _load_completions(name: str, settings: Mapping[str, Any]) -> TextModel:
    from robustrag_integrations.models.server.decoding import RemoteDecodingModel

    model, _, tokenizer = name.partition("@")
    return RemoteDecodingModel(model, tokenizer=tokenizer or None, **_of_server(settings))


def _of_server(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {{"max_new_tokens": "max_tokens"}.get(name, name): value for name, value in settings.items()}


def _served_parts(name: str, settings: Mapping[str, Any]) -> Iterator[bytes]:
    yield name.encode()
    yield b"" if "base_url" in settings else os.environ.get("OPENAI_BASE_URL", "").encode()


def _load_function(name: str, settings: Mapping[str, Any]) -> TextModel:
    from robustrag_integrations.models.callable import CallableModel

    try:
        loaded = load_object(name)
    except ValueError as error:
        raise ModelError(f"cannot load the model 'python:{name}': {error}") from error
    if isinstance(loaded, TextModel):
        return loaded
    if not callable(loaded):
        raise ModelError(
            f"the model 'python:{name}' is a {type(loaded).__name__}; it must be a function or a TextModel"
        )
    functions = (None, loaded) if inspect.iscoroutinefunction(loaded) else (loaded,)
    return CallableModel(*functions, name=f"python:{name}", **settings)


def _function_parts(name: str, _: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the name and the function's source file, without what that file imports."""
    yield name.encode()
    see_working_folder()
    spec = importlib.util.find_spec(name.removeprefix("python:").rpartition(":")[0])
    yield Path(str(spec and spec.origin)).read_bytes()


_SERVED = frozenset({"base_url", "max_new_tokens", "max_concurrency"})
_CALLED = frozenset({"max_concurrency"})
_LOCAL = frozenset({"max_context_tokens", "max_new_tokens", "dtype"})
_NAME = r"\s*[^\s@].*"
_OBJECT = r".+:[^\W\d]\w*"

_BUNDLED = "the small reader that comes with the package, a demonstration that reads simple English facts"
_CHAT = "a model behind an OpenAI-compatible server, with the key in OPENAI_API_KEY"
_COMPLETIONS = "one behind a server that gives token probabilities (NAME@PATH where its tokenizer has another name)"
_FUNCTION = "a function from prompt to text"
_FOLDER = "a folder with a transformers model"

PROVIDERS: tuple[Provider, ...] = (
    Provider("bundled", _BUNDLED, _LOCAL, _load_local, _local_parts),
    Provider("openai:NAME", _CHAT, _SERVED, _load_chat, _served_parts, _NAME, gives_probabilities=False),
    Provider("openai-completions:NAME", _COMPLETIONS, _SERVED, _load_completions, _served_parts, _NAME),
    Provider("python:MODULE:FUNCTION", _FUNCTION, _CALLED, _load_function, _function_parts, _OBJECT),
    Provider("PATH", _FOLDER, _LOCAL, _load_local, _local_parts),
)


@dataclass(frozen=True)
class NamedModel:
    """A model by its name, in one of the forms of `PROVIDERS`, and how to run it; None for a model's own default.

    Raises:
        ValueError: there is no such model, or a setting does not go with it; the message says what does.
    """

    name: str
    base_url: str | None = None
    max_context_tokens: int | None = None  # of the passages of a source
    max_new_tokens: int | None = None
    dtype: str | None = None  # one of `DTYPES`
    max_concurrency: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ValueError(f"name={self.name!r:.80} must be a text")
        provider = provider_of(self.name)
        if provider is None:
            *others, last = (provider.form for provider in PROVIDERS)
            known = f"{', '.join(others)}, or {last}"
            raise ValueError(
                f"unknown model {self.name!r}: there is no folder of that name here. Give {known} (a model's folder)"
            )
        if not re.fullmatch(provider.pattern, self.name.removeprefix(provider.prefix)):
            raise ValueError(f"{self.name!r} must be {provider.form}")
        for setting in self._settings:
            if setting not in provider.takes:
                raise ValueError(f"{setting} goes with {forms_that_take(setting)}, not with {self.name!r}")
        check_at_least(1, **{name: n for name in _COUNTS if (n := getattr(self, name)) is not None})
        if self.dtype not in (None, *DTYPES):
            raise ValueError(f"dtype={self.dtype!r:.80} must be one of {', '.join(DTYPES)}")
        if self.base_url is not None and not str(self.base_url).startswith(("http://", "https://")):
            raise ValueError(f"base_url={self.base_url!r:.200} must start with http:// or https://")

    @property
    def label(self) -> str:
        """The model's name in tables: with the given settings that decide its replies."""
        given = ", ".join(f"{name}={value}" for name in _OF_REPLIES if (value := getattr(self, name)) is not None)
        return f"{self.name} ({given})" if given else self.name

    @property
    def gives_probabilities(self) -> bool:
        """True if it may serve decoding aggregation; for a function, that is known only once it is loaded."""
        return self._provider.gives_probabilities

    @property
    def local(self) -> bool:
        """True if it is a transformers model in this process."""
        return "dtype" in self._provider.takes

    def load(self) -> TextModel:
        """Load the model; raises ModelError where it cannot be loaded, or has no key, ImportError without its extra."""
        return self._provider.load(self.name.removeprefix(self._provider.prefix), self._settings)

    def fingerprint(self) -> str:
        """Hash what decides its answers: weights and settings, a function's module, or a server's address and name."""
        digest = hashlib.sha256(
            repr((self.base_url, self.max_context_tokens, self.max_new_tokens, self.dtype)).encode()
        )
        try:
            for part in self._provider.parts(self.name, self._settings):
                digest.update(part)
        except (OSError, ImportError, ValueError) as error:
            raise ModelError(f"cannot read the model {self.name!r}: {error}") from error
        return digest.hexdigest()[:16]

    @property
    def _provider(self) -> Provider:
        provider = provider_of(self.name)
        assert provider is not None  # noqa: S101 - the name has been checked
        return provider

    @property
    def _settings(self) -> dict[str, Any]:
        return {name: value for name in SETTINGS if (value := getattr(self, name)) is not None}
