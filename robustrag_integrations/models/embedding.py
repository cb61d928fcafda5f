"""Embedding models for retrieval by meaning: one of sentence-transformers here, or one behind a server."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from packaging.version import Version

from robustrag_integrations._util.errors import ModelError, missing
from robustrag_integrations._util.redaction import in_one_line, presentable, secrets_of
from robustrag_integrations.models.caller import await_within, retried
from robustrag_integrations.models.providers import silence_transformers
from robustrag_integrations.models.server.connection import Connection, ServerError, may_pass, parsed
from robustrag_integrations.models.threads import BACKGROUND

Vectors = NDArray[np.float32]

_SERVED = "openai:"
_AT_ONCE = 64  # texts of one request
_LARGEST_REPLY = 64 << 20  # bytes
_SECONDS = 60.0  # for one request
_ATTEMPTS = 3
_LARGEST = 1e15  # number of a vector, whose square single precision still holds
_LONGEST = 1 << 16  # numbers of a vector; models have a tenth of them
_LOWEST = "6.0"  # of sentence-transformers: older ones run the code of a model's folder, whatever they are told


def embedding_of(name: str, base_url: str | None = None) -> SentenceEmbedding | ServedEmbedding:
    """Load an embedding model: a sentence-transformers folder or name, or `openai:NAME` of a server.

    Raises:
        ModelError: it cannot be loaded, or the server needs a key.
        ImportError: its extra is not installed.
    """
    if not name.startswith(_SERVED):
        return SentenceEmbedding(name)
    return ServedEmbedding(name[len(_SERVED) :], base_url)


class SentenceEmbedding:
    """A model of sentence-transformers; code that a model brings is not run, and its weights are no pickles."""

    def __init__(self, name: str) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise missing("an embedding model on this machine needs sentence-transformers", "embedding") from error
        if Version(found := version("sentence-transformers")) < Version(_LOWEST):
            raise missing(
                f"sentence-transformers {found} runs code that a model brings; {_LOWEST} or newer is needed",
                "embedding",
            )
        silence_transformers()
        if not os.path.isdir(name) and (os.path.isabs(name) or name.startswith(("./", "../", "~"))):
            raise ModelError(f"cannot load the embedding model {name!r}: there is no such folder")
        try:
            self._model = SentenceTransformer(
                name, trust_remote_code=False, model_kwargs={"use_safetensors": True}, backend="torch"
            )
        except Exception as error:  # a broken folder may raise nearly anything inside the libraries
            raise ModelError(f"cannot load the embedding model {name!r}: {in_one_line(error)}") from error

    def of_passages(self, texts: Sequence[str]) -> Vectors:
        """Return a row for each text."""
        rows: Vectors = self._model.encode_document(list(texts), normalize_embeddings=True, show_progress_bar=False)
        return rows

    def of_question(self, text: str) -> Vectors:
        """Return the vector of a question."""
        row: Vectors = self._model.encode_query(text, normalize_embeddings=True, show_progress_bar=False)
        return row


class ServedEmbedding:
    """A model behind an OpenAI-compatible server (`POST /embeddings`), with the key in OPENAI_API_KEY."""

    def __init__(self, model: str, base_url: str | None = None) -> None:
        if not model.strip():
            raise ModelError("the embedding model has no name: give openai:NAME, as the server calls it")
        self._model = model
        self._connection = Connection(model, base_url, None, path="/embeddings")

    def of_passages(self, texts: Sequence[str]) -> Vectors:
        """Return a row for each text; one that the server refuses, such as one too long, is nowhere near a question."""
        rows: list[Any] = []
        for start in range(0, len(texts), _AT_ONCE):
            rows += self._rows(list(texts[start : start + _AT_ONCE]))
        found = [row for row in rows if row is not None]
        if rows and not found:
            raise ModelError("the embedding model refuses every passage: shorter ones may help")
        if len({len(row) for row in found}) > 1:
            raise ModelError("the embedding server sent vectors of different lengths")
        nothing = np.zeros(len(found[0]) if found else 0, dtype=np.float32)
        return _normal(np.array([nothing if row is None else row for row in rows], dtype=np.float32))

    def of_question(self, text: str) -> Vectors:
        """Return the vector of a question."""
        [row] = self._asked([text])
        return _normal(row)

    def _rows(self, texts: list[str]) -> list[Any]:
        try:
            return self._asked(texts)
        except ServerError as error:
            if error.status not in (400, 413, 422):
                raise
        return [None] if len(texts) == 1 else [row for text in texts for row in self._rows([text])]

    def _asked(self, texts: list[str]) -> list[Vectors]:
        request = {"model": self._model, "input": texts, "encoding_format": "float"}
        read = partial(_vectors, count=len(texts))

        async def asked() -> list[Vectors]:
            return await await_within(_SECONDS, self._connection.reply(request, read, largest=_LARGEST_REPLY))

        try:
            return BACKGROUND.run(retried(asked, _ATTEMPTS, may_pass))
        except TimeoutError:
            failure: Exception = ModelError(f"the embedding server did not answer within {_SECONDS:g} s")
        except ModelError as error:
            failure = presentable(error, secrets_of(self._connection))  # servers echo what they get
        raise failure


def _vectors(body: bytes, count: int) -> list[Vectors]:
    """Read a reply of as many vectors, in the order of the texts; raises ModelError for anything else."""
    data = parsed(body).get("data")
    rows = {
        index: each.get("embedding")
        for place, each in enumerate(data if isinstance(data, list) else [])
        if isinstance(each, Mapping) and isinstance(index := each.get("index", place), int)
    }
    found = [rows.get(place) for place in range(count)]
    if any(isinstance(row, list) and len(row) > _LONGEST for row in found):
        raise ModelError(f"the embedding server sent vectors of more than {_LONGEST:,} numbers")
    for row in found:
        if not (isinstance(row, list) and row and all(isinstance(n, (int, float)) and abs(n) < _LARGEST for n in row)):
            raise ModelError(f"the embedding server sent no {count} vectors of numbers")
    return [np.array(row, dtype=np.float32) for row in found]


def _normal(rows: Vectors) -> Vectors:
    length = np.linalg.norm(rows, axis=-1, keepdims=True)
    return (rows / np.where(length == 0, 1, length)).astype(np.float32)
