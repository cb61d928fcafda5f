"""Models by name, as it is typed or written into a file: one entry for each kind in `PROVIDERS`.

An entry says how such a name is written, which settings go with it, whether it may give token probabilities, how the
model is loaded, and what decides its answers. Command line, evaluation, cache and certificates read nothing else.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from robustrag_integrations._util.checks import check_at_least
from robustrag_integrations._util.plugins import load_object, see_working_folder
from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.base import TextModel

_COUNTS = ("max_context_tokens", "max_new_tokens", "max_concurrency")
DTYPES = ("float32", "bfloat16", "float16", "float64", "auto")
_OF_REPLIES = ("dtype", "max_context_tokens", "max_new_tokens")
SETTINGS = ("base_url", "max_context_tokens", "max_new_tokens", "dtype", "max_concurrency")

_WHOLE_FILE = 1 << 28  # bytes; of larger files the fingerprint takes size, time and both ends


@dataclass(frozen=True)
class Provider:
    """One kind of model.

    Attributes:
        form: the form of its names, such as `openai:NAME`; what stands before the first capital is the prefix.
        help: a description for the command line.
        takes: those of `SETTINGS` that go with it.
        gives_probabilities: True if it may serve decoding aggregation; true where that is known only once it is loaded.
        in_process: True if it computes in this process, with torch.
        load: loads the model, from the name behind the prefix and the given settings.
        parts: everything besides the settings that decides its answers, as bytes, from the same arguments.
        problem: checks the name behind the prefix, and returns what is wrong with it; None if nothing is.
        owns: tells whether a name is one of its own; None: by the prefix.
    """

    form: str
    help: str
    takes: frozenset[str]
    gives_probabilities: bool
    in_process: bool
    load: Callable[[str, Mapping[str, Any]], TextModel] = field(repr=False)
    parts: Callable[[str, Mapping[str, Any]], Iterator[bytes]] = field(repr=False)
    problem: Callable[[str], str | None] = field(repr=False, default=lambda rest: None)
    owns: Callable[[str], bool] | None = field(repr=False, default=None)

    @property
    def prefix(self) -> str:
        """The prefix of its names; empty where a name is taken as it is."""
        before, colon, _ = self.form.partition(":")
        return before + colon if colon else ""

    def rest(self, name: str) -> str:
        """Return one of its names without the prefix."""
        return name[len(self.prefix) :]


def provider_of(name: str) -> Provider | None:
    """Return the provider of a model of this name; None if there is none."""
    return next((p for p in PROVIDERS if (p.owns(name) if p.owns else name.startswith(p.prefix))), None)


def forms() -> tuple[str, ...]:
    """Return the forms of models' names."""
    return tuple(p.form for p in PROVIDERS)


def forms_that_take(setting: str) -> str:
    """Return the forms of the names that take a setting, as a phrase."""
    return " or ".join(p.form for p in PROVIDERS if setting in p.takes)


def described(default: str) -> str:
    """Describe every provider in a phrase, for the command line."""
    return "; ".join(f"{p.form}{' (default)' if p.form == default else ''}: {p.help}" for p in PROVIDERS)


def takes(name: str, setting: str) -> bool:
    """Tell whether a model of this name takes a setting."""
    provider = provider_of(name)
    return provider is not None and setting in provider.takes


# --- models of this process


def _load_bundled(_: str, settings: Mapping[str, Any]) -> TextModel:
    from robustrag_integrations.models.local.model import LocalModel

    silence_transformers()
    _bundled_folder()
    return LocalModel.bundled(**settings)


def _load_folder(folder: str, settings: Mapping[str, Any]) -> TextModel:
    from robustrag_integrations.models.local.model import LocalModel

    silence_transformers()
    if not os.path.isfile(os.path.join(folder, "config.json")):
        raise ModelError(f"the folder {folder!r} holds no transformers model: there is no config.json in it")
    try:
        return LocalModel.from_pretrained(folder, **settings)
    except (ModelError, ImportError):
        raise
    except Exception as error:  # a broken folder may raise nearly anything inside the libraries
        raise ModelError(f"cannot load the model {folder!r}: {type(error).__name__}: {error}") from error


def _bundled_folder() -> Path:
    from robustrag_integrations.reader import reader_path

    try:
        return reader_path()
    except FileNotFoundError as error:
        raise ModelError(str(error)) from error


def silence_transformers() -> None:
    """Turn off the library's progress bars and advice; what matters is in the answer's own warnings."""
    from transformers.utils import logging

    library: Any = logging  # its functions have no types
    library.set_verbosity_error()
    library.disable_progress_bar()


def _bundled_parts(_: str, settings: Mapping[str, Any]) -> Iterator[bytes]:
    return _folder_parts(str(_bundled_folder()), settings)


def _folder_parts(folder: str, _: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the names and contents of a transformers model's files."""
    try:
        files = sorted(f for f in Path(folder).iterdir() if f.suffix in (".json", ".safetensors", ".model", ".jinja"))
    except OSError as error:
        raise ModelError(f"cannot read the model {folder!r}: {error.strerror}") from error
    for file in files:
        if file.name != "scores.json":  # about the model, not of it
            yield file.name.encode()
            yield from _file_parts(file)


def _file_parts(file: Path) -> Iterator[bytes]:
    try:
        status = file.stat()
        with file.open("rb") as opened:
            if status.st_size <= _WHOLE_FILE:
                yield opened.read()
                return
            yield f"{status.st_size} {status.st_mtime_ns}".encode()
            yield opened.read(1 << 20)
            opened.seek(-(1 << 20), os.SEEK_END)
            yield opened.read()
    except OSError as error:
        raise ModelError(f"cannot read {str(file)!r}: {error.strerror}") from error


# --- models behind a server


def _load_chat(model: str, settings: Mapping[str, Any]) -> TextModel:
    from robustrag_integrations.models.server.model import OpenAIModel

    return OpenAIModel(model, **_of_server(settings))


def _load_completions(name: str, settings: Mapping[str, Any]) -> TextModel:
    from robustrag_integrations.models.server.decoding import RemoteDecodingModel

    model, _, tokenizer = name.partition("@")
    return RemoteDecodingModel(model, tokenizer=tokenizer or None, **_of_server(settings))


def _of_server(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings under the names that served models have for them."""
    return {{"max_new_tokens": "max_tokens"}.get(name, name): value for name, value in settings.items()}


def _served_parts(prefix: str) -> Callable[[str, Mapping[str, Any]], Iterator[bytes]]:
    def parts(model: str, settings: Mapping[str, Any]) -> Iterator[bytes]:
        yield (prefix + model).encode()
        yield b"" if "base_url" in settings else os.environ.get("OPENAI_BASE_URL", "").encode()

    return parts


def _no_name(example: str) -> Callable[[str], str | None]:
    prefix = example.partition(":")[0]

    def problem(name: str) -> str | None:
        return None if name.partition("@")[0].strip() else f"{prefix}: needs a model's name, as in {example}"

    return problem


# --- functions


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
    if inspect.iscoroutinefunction(loaded):
        return CallableModel(async_fn=loaded, name=f"python:{name}", **settings)
    return CallableModel(loaded, name=f"python:{name}", **settings)


def _function_parts(name: str, _: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the name and the function's source file, without what that file imports."""
    yield f"python:{name}".encode()
    module = name.rpartition(":")[0]
    if module.endswith(".py"):
        if not Path(module).is_file():
            raise ModelError(f"cannot load the model 'python:{name}': there is no file {module!r}")
        yield from _file_parts(Path(module))
        return
    see_working_folder()
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError) as error:
        raise ModelError(f"cannot load the model 'python:{name}': {error}") from error
    if spec is None:
        raise ModelError(f"cannot load the model 'python:{name}': there is no module {module!r} here")
    yield from _file_parts(Path(spec.origin or ""))


def _not_an_object(name: str) -> str | None:
    module, _, thing = name.partition(":")
    if module and thing.isidentifier():
        return None
    return f"'python:{name}' must be python:MODULE:OBJECT, as in python:my_models:answer"


_OF_SERVERS = frozenset({"base_url", "max_new_tokens", "max_concurrency"})
_OF_TRANSFORMERS = frozenset({"max_context_tokens", "max_new_tokens", "dtype"})

PROVIDERS: tuple[Provider, ...] = (
    Provider(
        "bundled",
        "the small reader that comes with the package, a demonstration that reads simple English facts and knows "
        "nothing",
        _OF_TRANSFORMERS,
        gives_probabilities=True,
        in_process=True,
        load=_load_bundled,
        parts=_bundled_parts,
        owns=lambda name: name == "bundled",
    ),
    Provider(
        "openai:NAME",
        "a model behind an OpenAI-compatible server, with the key in OPENAI_API_KEY",
        _OF_SERVERS,
        gives_probabilities=False,
        in_process=False,
        load=_load_chat,
        parts=_served_parts("openai:"),
        problem=_no_name("openai:gpt-4o-mini"),
    ),
    Provider(
        "openai-completions:NAME",
        "one behind a server that gives token probabilities (NAME@PATH where its tokenizer has another name)",
        _OF_SERVERS,
        gives_probabilities=True,
        in_process=False,
        load=_load_completions,
        parts=_served_parts("openai-completions:"),
        problem=_no_name("openai-completions:meta-llama/Llama-3.1-8B"),
    ),
    Provider(
        "python:MODULE:FUNCTION",
        "a function from prompt to text",
        frozenset({"max_concurrency"}),
        gives_probabilities=True,
        in_process=False,
        load=_load_function,
        parts=_function_parts,
        problem=_not_an_object,
    ),
    Provider(
        "PATH",
        "a folder with a transformers model",
        _OF_TRANSFORMERS,
        gives_probabilities=True,
        in_process=True,
        load=_load_folder,
        parts=_folder_parts,
        owns=os.path.isdir,
    ),
)


@dataclass(frozen=True)
class NamedModel:
    """A model by its name, and how to run it.

    Attributes:
        name: `bundled`, a folder with a transformers model, `openai:NAME`, `openai-completions:NAME` (a server that
            gives token probabilities; `NAME@TOKENIZER` where the tokenizer is not found under the model's name), or
            `python:MODULE:OBJECT`, where the object is a function from prompt to text or a `TextModel`: whatever
            `PROVIDERS` has an entry for.
        base_url: the server of a served model.
        max_context_tokens: the most tokens of passages of a group; local models only, None for their default.
        max_new_tokens: the longest text; local and served models only, None for their default.
        dtype: the precision of a local model, one of `DTYPES`; None for its default.
        max_concurrency: the most calls under way; not for local models, None for the default of the others.

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
        for setting in self._settings:
            if setting not in self._provider.takes:
                raise ValueError(f"{setting} goes with {forms_that_take(setting)}, not with {self.name!r}")
        check_at_least(1, **{name: n for name in _COUNTS if (n := getattr(self, name)) is not None})
        if self.dtype is not None and self.dtype not in DTYPES:
            raise ValueError(f"dtype={self.dtype!r:.80} must be one of {', '.join(DTYPES)}")
        if self.base_url is not None and not str(self.base_url).startswith(("http://", "https://")):
            raise ValueError(f"base_url={self.base_url!r:.200} must start with http:// or https://")

    @property
    def label(self) -> str:
        """The model's name in tables: with the given settings that decide its replies."""
        given = {name: value for name in _OF_REPLIES if (value := getattr(self, name)) is not None}
        return f"{self.name} ({', '.join(f'{k}={v}' for k, v in given.items())})" if given else self.name

    @property
    def gives_probabilities(self) -> bool:
        """True if it may serve decoding aggregation; for a function, that is known only once it is loaded."""
        return self._provider.gives_probabilities

    @property
    def local(self) -> bool:
        """True if it is a transformers model in this process."""
        return self._provider.in_process

    def load(self) -> TextModel:
        """Load the model.

        Raises:
            ModelError: it cannot be loaded, or has no key.
            ImportError: an extra is missing.
        """
        return self._provider.load(self._provider.rest(self.name), self._settings)

    def fingerprint(self) -> str:
        """Hash everything that decides the model's answers.

        That is a local model's weights and settings, a function's module, or a server's address and the model's name
        there.

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
        """The settings that were given."""
        return {name: value for name in SETTINGS if (value := getattr(self, name)) is not None}


def check_name(name: str) -> str | None:
    """Return what is wrong with a model's name; None if nothing is."""
    provider = provider_of(name)
    if provider is None:
        *others, last = forms()
        return f"unknown model {name!r}: give {', '.join(others)}, or {last}"
    return provider.problem(provider.rest(name))
