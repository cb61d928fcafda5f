"""Embedding models for retrieval by meaning: one of sentence-transformers here, or one behind a server."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING

from packaging.version import Version

from robustrag_integrations._util.errors import ModelError
from robustrag_integrations._util.extras import missing
from robustrag_integrations._util.redaction import in_one_line
from robustrag_integrations.models.providers import silence_transformers

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from robustrag_integrations.models.server.embedding import ServedEmbedding

    Vectors = NDArray[np.float32]

SERVED = "openai:"
_LOWEST = "6.0"  # of sentence-transformers: older ones run the code of a model's folder, whatever they are told


def embedding_of(name: str, base_url: str | None = None) -> SentenceEmbedding | ServedEmbedding:
    """Load an embedding model: a sentence-transformers folder or name, or `openai:NAME` of a server.

    Raises:
        ModelError: it cannot be loaded, or the server needs a key.
        ImportError: its extra is not installed.
    """
    if not name.startswith(SERVED):
        return SentenceEmbedding(name)
    from robustrag_integrations.models.server.embedding import ServedEmbedding

    return ServedEmbedding(name[len(SERVED) :], base_url)


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
