"""Reading files and folders into documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from robustrag_integrations.corpus.documents import CorpusError, Document
from robustrag_integrations.corpus.files import SUFFIXES, find_files
from robustrag_integrations.corpus.readers import read_file


@dataclass(frozen=True)
class Skipped:
    """A file found in a folder that could not be read, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class Reading:
    """What was read, and what was not."""

    documents: tuple[Document, ...]
    skipped: tuple[Skipped, ...] = ()


def read_documents(paths: Iterable[str], *, on_file: Callable[[int, int], None] | None = None) -> Reading:
    """Read text, Markdown, PDF and JSONL files, and folders of them.

    A file that was named must be readable. One found in a folder is skipped when it is not, and reported: whoever may
    write one file into the folder must not be able to stop every answer.

    Args:
        paths: files and folders.
        on_file: told before each file how many are done, and how many there are.

    Raises:
        CorpusError: a path or a named file cannot be read, or there is no text at all.
        ImportError: reading PDF files needs pypdf.
    """
    given = list(paths)
    files = find_files(given)
    documents: list[Document] = []
    skipped: list[Skipped] = []
    for done, file in enumerate(files):
        if on_file is not None:
            on_file(done, len(files))
        try:
            documents += read_file(file)
        except CorpusError as error:
            if file.named:
                raise
            skipped.append(Skipped(file.path, str(error)))
    if not any(d.text.strip() for d in documents):
        raise CorpusError(_nothing(given, skipped))
    return Reading(tuple(documents), tuple(skipped))


def _nothing(paths: list[str], skipped: list[Skipped]) -> str:
    reason = f"no text in {', '.join(paths)}; {', '.join(SUFFIXES)} are read"
    return f"{reason} (skipped: {skipped[0].reason})" if skipped else reason
