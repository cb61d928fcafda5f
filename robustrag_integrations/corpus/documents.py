"""Documents are passages of whole files; how they are cut to a size that a model can read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib import import_module
from types import ModuleType
from typing import Any

from robustrag_integrations._util.errors import RobustRAGError, missing
from robustrag_integrations.grouping.passages import Passage

CHUNK_SIZE = 600  # characters

_BLOCK = 100_000  # characters
# Markdown headings, paragraphs, lines, sentences, words, none between a label and its value; anywhere when nothing
# else helps.
_ENDS = (r"\n(?=#{1,6} )", r"(?<!:)\n\n", r"(?<![:\n])\n", r"(?<=[.!?]) ", r"(?<![:\s]) ", "")


class CorpusError(RobustRAGError):
    """A file or folder cannot be read as documents; the message names it and the fix."""


@dataclass(frozen=True)
class Skipped:
    """A file of a folder, a row of a file, or hidden text in it, that was not read, and the reason."""

    path: str
    reason: str
    whole: bool = True  # False where the rest of the file was read


def needed(module: str, purpose: str) -> ModuleType:
    """Import an optional module; an ImportError says what it is for and what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise missing(f"{purpose} needs {module}", "cli") from error


def split(documents: Iterable[Passage], chunk_size: int = CHUNK_SIZE) -> list[Passage]:
    """Cut documents into passages of at most `chunk_size` characters, at paragraph, line, sentence or word ends.

    Passages do not overlap: a text that stood in two of them would have two votes. A document that fits stays whole
    and keeps its id; otherwise its passages are `id#1`, `id#2`, ... All of them keep its source.
    """
    library = needed("langchain_text_splitters", "splitting documents")
    splitter = library.RecursiveCharacterTextSplitter(
        chunk_size=chunk_size, chunk_overlap=0, separators=list(_ENDS), is_separator_regex=True, keep_separator="end"
    )
    return [p for d in documents for p in _passages(d, splitter, chunk_size)]


def _passages(document: Passage, splitter: Any, chunk_size: int) -> list[Passage]:
    whole = document.text.strip()
    if len(whole) <= chunk_size:
        return [replace(document, text=whole)] if whole else []
    # The splitter cuts a word that is too long letter by letter, which is slow; it is cut here first. Blocks bound the
    # splitter's memory.
    cut = re.sub(rf"\S{{{chunk_size - 1}}}(?=\S)", r"\g<0> ", whole)
    blocks = [cut[i : i + _BLOCK] for i in range(0, len(cut), _BLOCK)]
    chunks = [chunk for block in blocks for chunk in splitter.split_text(block)]
    return [replace(document, text=chunk, id=f"{document.id}#{n}") for n, chunk in enumerate(chunks, start=1)]
