"""What the LangChain examples share: a small library to search, a small model to read, and somebody who lies.

Everything here works offline: the texts are the demonstration world that comes with robustrag-integrations, the reader
is the bundled model. In your program these are your own retriever and your own model.

    pip install '.[langchain,local]' langchain-huggingface
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections import Counter
from importlib.resources import files

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseLLM
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore

from robustrag_integrations.evaluation.attacks import prompt_injection

WIDTH = 1024


def library() -> list[Document]:
    """The demonstration texts, each with the site it comes from."""
    rows = _rows("world.jsonl")
    return [Document(id=r["id"], page_content=r["text"], metadata={"source": r["source"]}) for r in rows]


def questions() -> list[dict[str, str]]:
    """Questions about them: `question`, `answer`, and `incorrect`, what an attacker would like to be answered."""
    return _rows("questions.jsonl")


def planted(question: str, lie: str) -> Document:
    """A document that tells whoever reads it what to answer."""
    return Document(page_content=prompt_injection(question, lie), metadata={"source": "planted.example"})


class WordEmbeddings(Embeddings):
    """Texts as counts of their words, rare words counting more: no model, no download, the same for everybody."""

    def __init__(self, texts: list[str]) -> None:
        seen = Counter(word for text in texts for word in set(_words(text)))
        self._weights = {word: math.log(len(texts) / count) for word, count in seen.items()}
        self._unseen = math.log(len(texts) or 1)

    def embed_query(self, text: str) -> list[float]:
        """A vector of length `WIDTH`."""
        vector = [0.0] * WIDTH
        for word in _words(text):
            vector[zlib.crc32(word.encode()) % WIDTH] += self._weights.get(word, self._unseen)
        return vector

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """A vector per text."""
        return [self.embed_query(text) for text in texts]


def retriever(*more: Document, k: int = 10) -> BaseRetriever:
    """A vector store's retriever over the library, with more documents put in by whoever may publish."""
    documents = [*library(), *more]
    store = InMemoryVectorStore(WordEmbeddings([d.page_content for d in documents]))
    store.add_documents(documents)
    return store.as_retriever(search_kwargs={"k": k})


def reader() -> BaseLLM:
    """The bundled reader as a LangChain model."""
    from langchain_huggingface import HuggingFacePipeline
    from transformers import AutoModelForCausalLM, AutoTokenizer, pipeline

    from robustrag_integrations.reader import reader_path

    folder = str(reader_path())
    model = AutoModelForCausalLM.from_pretrained(folder, dtype="float32")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    generate = pipeline("text-generation", model=model, tokenizer=tokenizer, max_new_tokens=24, do_sample=False)
    return HuggingFacePipeline(pipeline=generate)


def _rows(name: str) -> list[dict[str, str]]:
    text = (files("robustrag_integrations") / "evaluation" / "world" / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
