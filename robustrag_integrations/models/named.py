"""From a model's name, as it is typed or written into a file, to the model."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.base import TextModel

SERVED = "openai:"
COMPLETIONS = "openai-completions:"
FUNCTION = "python:"
BUNDLED = "bundled"

_WHOLE_FILE = 1 << 28  # bytes; of larger files the fingerprint takes size, time and both ends


@dataclass(frozen=True)
class NamedModel:
    """A model by its name, and how to run it.

    Attributes:
        name: `bundled`, a folder with a transformers model, `openai:NAME`, `openai-completions:NAME` (a server that
            gives token probabilities; `NAME@TOKENIZER` where the tokenizer is not found under the model's name), or
            `python:MODULE:OBJECT`, where the object is a function from prompt to text or a `TextModel`.
        base_url: the server of `openai:NAME` and `openai-completions:NAME`.
        max_context_tokens: how many tokens of passages a group may have; local models only, None for their default.
        max_new_tokens: the longest text; local and served models only, None for their default.

    Raises:
        ValueError: there is no such model, or a setting does not go with it; the message says what does.
    """

    name: str
    base_url: str | None = None
    max_context_tokens: int | None = None
    max_new_tokens: int | None = None

    def __post_init__(self) -> None:
        if problem := check_name(self.name):
            raise ValueError(problem)
        if self.base_url is not None and not self.served:
            raise ValueError(f"base_url goes with openai:NAME, not with {self.name!r}")
        if self.base_url is not None and not self.base_url.startswith(("http://", "https://")):
            raise ValueError(f"base_url={self.base_url!r} must start with http:// or https://")
        if self.max_context_tokens is not None and not self.local:
            raise ValueError(f"max_context_tokens goes with local models, not with {self.name!r}")
        if self.max_new_tokens is not None and self.name.startswith(FUNCTION):
            raise ValueError(f"max_new_tokens is up to the function in {self.name!r}")

    @property
    def served(self) -> bool:
        """Whether it is behind a server."""
        return self.name.startswith((SERVED, COMPLETIONS))

    @property
    def gives_probabilities(self) -> bool:
        """Whether it may serve decoding aggregation; of a function nobody knows until it is loaded."""
        return not self.name.startswith(SERVED)

    @property
    def local(self) -> bool:
        """Whether it is a transformers model in this process."""
        return not self.name.startswith((SERVED, COMPLETIONS, FUNCTION))

    def load(self) -> TextModel:
        """The model.

        Raises:
            ModelError: it cannot be loaded, or has no key.
            ImportError: an extra is missing.
        """
        limit: dict[str, Any] = {} if self.max_new_tokens is None else {"max_tokens": self.max_new_tokens}
        if self.name.startswith(COMPLETIONS):
            from robustrag_integrations.models.server.decoding import RemoteDecodingModel

            model, _, tokenizer = self.name[len(COMPLETIONS) :].partition("@")
            return RemoteDecodingModel(model, self.base_url, tokenizer=tokenizer or None, **limit)
        if self.served:
            from robustrag_integrations.models.server.model import OpenAIModel

            return OpenAIModel(self.name[len(SERVED) :], self.base_url, **limit)
        if self.name.startswith(FUNCTION):
            return _from_python(self.name)
        given = {"max_context_tokens": self.max_context_tokens, "max_new_tokens": self.max_new_tokens}
        return _local(self.name, {key: value for key, value in given.items() if value is not None})

    def fingerprint(self) -> str:
        """What decides the model's answers, as a hash: weights and settings of a local model, a function's module, a
        server's address and the model's name there.

        Raises:
            ModelError: its files cannot be read.
        """
        digest = hashlib.sha256(repr((self.base_url, self.max_context_tokens, self.max_new_tokens)).encode())
        for part in self._parts():
            digest.update(part)
        return digest.hexdigest()[:16]

    def _parts(self) -> Iterator[bytes]:
        if self.served:
            yield self.name.encode()
            yield os.environ.get("OPENAI_BASE_URL", "").encode() if self.base_url is None else b""
            return
        if self.name.startswith(FUNCTION):
            yield self.name.encode()
            yield from _file_parts(Path(_module_file(self.name)))
            return
        folder = _bundled_folder() if self.name == BUNDLED else Path(self.name)
        try:
            files = sorted(f for f in folder.iterdir() if f.suffix in (".json", ".safetensors", ".model", ".jinja"))
        except OSError as error:
            raise ModelError(f"cannot read the model {self.name!r}: {error.strerror}") from error
        for file in files:
            if file.name != "scores.json":  # about the model, not of it
                yield file.name.encode()
                yield from _file_parts(file)


def check_name(name: str) -> str | None:
    """What is wrong with a model's name; None if nothing is."""
    if name.startswith(SERVED):
        return None if name[len(SERVED) :].strip() else "openai: needs a model's name, as in openai:gpt-4o-mini"
    if name.startswith(COMPLETIONS):
        if name[len(COMPLETIONS) :].partition("@")[0].strip():
            return None
        return f"{COMPLETIONS} needs a model's name, as in {COMPLETIONS}meta-llama/Llama-3.1-8B"
    if name.startswith(FUNCTION):
        module, _, thing = name[len(FUNCTION) :].partition(":")
        if module and thing.isidentifier():
            return None
        return f"{name!r} must be python:MODULE:OBJECT, as in python:my_models:answer"
    if name == BUNDLED or os.path.isdir(name):
        return None
    return (
        f"unknown model {name!r}: give bundled, a folder with a transformers model, openai:NAME, "
        "openai-completions:NAME, or python:MODULE:FUNCTION"
    )


def _from_python(name: str) -> TextModel:
    from robustrag_integrations.models.callable import CallableModel

    module, _, thing = name[len(FUNCTION) :].partition(":")
    _see_working_folder()
    try:
        found: Any = getattr(importlib.import_module(module), thing)
    except (ImportError, AttributeError) as error:
        raise ModelError(f"cannot load the model {name!r}: {error}") from error
    if isinstance(found, TextModel):
        return found
    if not callable(found):
        raise ModelError(f"the model {name!r} is a {type(found).__name__}; it must be a function or a TextModel")
    import inspect

    if inspect.iscoroutinefunction(found):
        return CallableModel(async_fn=found, name=name)
    return CallableModel(found, name=name)


def _see_working_folder() -> None:
    """Modules in the working folder can be named, as with `python -m`; console scripts do not look there."""
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())


def _module_file(name: str) -> str:
    module = name[len(FUNCTION) :].partition(":")[0]
    _see_working_folder()
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError) as error:
        raise ModelError(f"cannot load the model {name!r}: {error}") from error
    if spec is None:
        raise ModelError(f"cannot load the model {name!r}: there is no module {module!r} here")
    return spec.origin or ""


def _file_parts(file: Path) -> Iterator[bytes]:
    try:
        found = file.stat()
        with file.open("rb") as opened:
            if found.st_size <= _WHOLE_FILE:
                yield opened.read()
                return
            yield f"{found.st_size} {found.st_mtime_ns}".encode()
            yield opened.read(1 << 20)
            opened.seek(-(1 << 20), os.SEEK_END)
            yield opened.read()
    except OSError as error:
        raise ModelError(f"cannot read {str(file)!r}: {error.strerror}") from error


def _bundled_folder() -> Path:
    from robustrag_integrations.reader import reader_path

    try:
        return reader_path()
    except FileNotFoundError as error:
        raise ModelError(str(error)) from error


def _local(name: str, settings: Mapping[str, Any]) -> TextModel:
    from robustrag_integrations.models.local.model import LocalModel

    _silence_transformers()
    if name == BUNDLED:
        _bundled_folder()
        return LocalModel.bundled(**settings)
    if not os.path.isfile(os.path.join(name, "config.json")):
        raise ModelError(f"the folder {name!r} holds no transformers model: there is no config.json in it")
    try:
        return LocalModel.from_pretrained(name, **settings)
    except (ModelError, ImportError):
        raise
    except Exception as error:  # a broken folder may raise nearly anything inside the libraries
        raise ModelError(f"cannot load the model {name!r}: {type(error).__name__}: {error}") from error


def _silence_transformers() -> None:
    """No progress bars and no advice from the library; what matters is in the answer's own warnings."""
    from transformers.utils import logging

    library: Any = logging  # its functions have no types
    library.set_verbosity_error()
    library.disable_progress_bar()
