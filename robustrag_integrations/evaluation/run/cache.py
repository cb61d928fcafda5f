"""A cache of model calls on disk, so that no prompt is sent twice, neither under another setting nor in the next run.

An entry's key is the hash of the model's fingerprint, the role and the prompt: of ten prompts with one new among them
that one is asked alone. A run is consistent in itself, since every row has the same reply to the same prompt. Failed
calls, models that sample and decoding sessions are not kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

from robustrag_integrations._util.errors import RobustRAGError
from robustrag_integrations._util.json_values import plain, restored
from robustrag_integrations.evaluation.run.journal import canonical
from robustrag_integrations.models.base import (
    AroundModel,
    DecodingModel,
    DecodingSession,
    Response,
    Role,
    TextModel,
    Until,
)
from robustrag_integrations.models.reply import Piece
from robustrag_integrations.text.prompts import Prompt

Result = TypeVar("Result")
logger = logging.getLogger(__name__)

_FILE = "calls.sqlite3"
_TABLE = "CREATE TABLE IF NOT EXISTS calls (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID"
_KEPT = ("text", "truncated", "finish", "refusal", "reasoning_chars", "logprobs", "usage")
_PATIENCE = 30.0  # seconds to wait for another process that writes


class CacheError(RobustRAGError):
    """An unusable cache folder; the message names it and what to do."""


CACHED_CALLS: ContextVar[list[Prompt] | None] = ContextVar("robustrag_cached_calls", default=None)
"""The prompts of one answer that the cache answered."""


class CallCache:
    """Responses by key, in one SQLite file that threads and processes may share.

    The file holds responses in plain text. Only its owner can read it, and the folder if this makes it.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._path = Path(folder) / _FILE
        self._lock = threading.RLock()
        self._warned = False
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make_private(self._path)
            self._db = sqlite3.connect(self._path, timeout=_PATIENCE, check_same_thread=False)
            for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL", _TABLE):
                self._db.execute(statement)
        except (OSError, sqlite3.Error) as error:
            raise CacheError(
                f"cannot use the cache {str(self._path)!r}: {error}; delete it, give another --cache, or --no-cache"
            ) from error

    def get(self, keys: Sequence[str]) -> list[Response | None]:
        """Return the responses of these keys; None where there is none, or it is of another version."""
        statement = "SELECT value FROM calls WHERE key = ?"
        rows = self._run(lambda: [self._db.execute(statement, (key,)).fetchone() for key in keys])
        return [None if row is None else _response(row[0]) for row in rows or [None] * len(keys)]

    def put(self, responses: Mapping[str, Response]) -> None:
        """Keep the texts of responses, how they ended, and what they took."""
        rows = [(key, canonical({name: plain(getattr(r, name)) for name in _KEPT})) for key, r in responses.items()]

        def write() -> None:
            with self._db:
                self._db.executemany("INSERT OR REPLACE INTO calls VALUES (?, ?)", rows)

        self._run(write)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _run(self, action: Callable[[], Result]) -> Result | None:
        """Return the action's result. A file that fails slows the run down and never stops it: None, logged once."""
        with self._lock:
            try:
                return action()
            except (sqlite3.Error, UnicodeDecodeError) as error:  # the second where a damaged file makes up the message
                if not self._warned:
                    logger.warning("the cache %r keeps no calls: %s", str(self._path), error)
                self._warned = True
                return None


def _make_private(path: Path) -> None:
    """Let nobody but the owner read the file, which is made when it is not there; SQLite's side files follow it."""
    for found in (path, *(Path(f"{path}{end}") for end in ("-wal", "-shm", "-journal"))):
        if found.is_symlink() or (found.exists() and not found.is_file()):
            raise CacheError(f"cannot use the cache: {str(found)!r} is a link or no regular file; remove it")
    path.touch(0o600)
    with contextlib.suppress(PermissionError):  # another user's file is that user's to close
        path.chmod(0o600)


def _response(text: Any) -> Response | None:
    try:
        return restored(Response, json.loads(text))
    except (ValueError, TypeError, RecursionError):
        return None


class MeteredModel(AroundModel):
    """A text model that looks each call up in a cache first."""

    def __init__(self, model: TextModel, fingerprint: str, cache: CallCache | None) -> None:
        super().__init__(model)
        self._fingerprint = fingerprint
        self._cache = cache

    def generate(self, prompts: Sequence[Prompt], role: Role, until: Until | None = None) -> list[Response]:
        """Answer from the cache where it can, and ask the model for the rest."""
        keys, known, wanted = self._look_up(prompts, role)
        made = self._model.generate([prompts[i] for i in wanted], role) if wanted else []
        return self._merged(prompts, keys, known, dict(zip(wanted, made, strict=True)))

    async def agenerate(self, prompts: Sequence[Prompt], role: Role, until: Until | None = None) -> list[Response]:
        """`generate` without blocking the event loop."""
        keys, known, wanted = self._look_up(prompts, role)
        made = await self._model.agenerate([prompts[i] for i in wanted], role) if wanted else []
        return self._merged(prompts, keys, known, dict(zip(wanted, made, strict=True)))

    def stream(self, prompt: Prompt, role: Role = "final") -> Iterator[Piece]:
        """The model's stream, neither counted nor kept."""
        return self._model.stream(prompt, role)

    def astream(self, prompt: Prompt, role: Role = "final") -> AsyncIterator[Piece]:
        """The model's stream, neither counted nor kept."""
        return self._model.astream(prompt, role)

    def _look_up(self, prompts: Sequence[Prompt], role: Role) -> tuple[list[str], list[Response | None], list[int]]:
        """The keys, what is known of them, and the indices of the prompts to ask: of equal ones the first."""
        if self._cache is None or not prompts or not self.deterministic:
            return [""] * len(prompts), [None] * len(prompts), [*range(len(prompts))]
        about = (canonical([self._fingerprint, role, p.text, p.context]) for p in prompts)
        keys = [hashlib.sha256(text.encode()).hexdigest() for text in about]
        known = self._cache.get(keys)
        return keys, known, [i for i, entry in enumerate(known) if entry is None and keys.index(keys[i]) == i]

    def _merged(
        self,
        prompts: Sequence[Prompt],
        keys: Sequence[str],
        known: Sequence[Response | None],
        made: Mapping[int, Response],
    ) -> list[Response]:
        new = {keys[i]: response for i, response in made.items() if response.text is not None}
        if self._cache is not None and self.deterministic and new:
            self._cache.put(new)
        same = {keys[i]: response for i, response in made.items()}
        if (cached := CACHED_CALLS.get()) is not None:
            cached += [prompt for i, prompt in enumerate(prompts) if i not in made]
        return [made.get(i) or entry or same[keys[i]] for i, entry in enumerate(known)]


class MeteredLocalModel(MeteredModel, DecodingModel):
    """A metered model that gives next-token probabilities as well; its sessions are neither counted nor kept."""

    def __init__(self, model: Any, fingerprint: str, cache: CallCache | None) -> None:
        super().__init__(model, fingerprint, cache)
        self._decoder: DecodingModel = model
        self.codec = self._decoder.codec

    async def in_thread(self, call: Callable[..., Result], *args: Any) -> Result:
        """As the model does it."""
        return await self._decoder.in_thread(call, *args)

    def open_session(self, prompts: Sequence[Prompt], no_retrieval: Prompt, max_new_tokens: int) -> DecodingSession:
        """The model's session."""
        return self._decoder.open_session(prompts, no_retrieval, max_new_tokens)


def metered(model: TextModel, fingerprint: str, cache: CallCache | None) -> MeteredModel:
    """The model with counting and caching around it."""
    kind = MeteredLocalModel if isinstance(model, DecodingModel) else MeteredModel
    return kind(model, fingerprint, cache)
