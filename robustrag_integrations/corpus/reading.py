"""Reads files and folders into documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from robustrag_integrations._util.words import count_of
from robustrag_integrations.corpus.documents import CorpusError, Document, Skipped
from robustrag_integrations.corpus.files import SUFFIXES, SourceFile, find_files
from robustrag_integrations.corpus.readers import FileReader

LARGEST_READING = 512 * 1024 * 1024  # bytes of all files together


@dataclass(frozen=True)
class Reading:
    """The documents that were read, and the files, rows and hidden texts that were skipped."""

    documents: tuple[Document, ...]
    skipped: tuple[Skipped, ...] = ()


def read_documents(
    paths: Iterable[str], *, hidden_text: bool = False, on_file: Callable[[int, int], None] | None = None
) -> Reading:
    """Read text, Markdown, PDF and JSONL files, and folders of them.

    A file that was named must be readable. One found in a folder is skipped when it is not, and reported, since
    one bad file must not stop every answer. So is a bad row of a JSONL file in which others are good, and a file
    without text. When a folder's files are too many bytes, the largest ones are skipped.
    How many files of folders are of other kinds is reported, too.

    Args:
        paths: files and folders.
        hidden_text: True to read what nobody can see as well. Else texts of a PDF in no ink, in the colour of what they
            stand on, smaller than two points or off the page, comments and hidden elements of Markdown and of JSONL
            rows, tag characters and variation selectors are left out, and the report names the files.
        on_file: called before each file with the number that are done and the number of all files.

    Raises:
        CorpusError: a path or a named file cannot be read, or there is no text at all.
        ImportError: reading PDF files needs pypdf.
    """
    given = list(paths)
    documents: list[Document] = []
    with ExitStack() as held:
        search = find_files(given, held)
        files = search.files
        too_large = _beyond(files, LARGEST_READING)
        skipped = list(search.skipped)
        if search.unread:
            unread = f"{count_of(search.unread, 'file')} of folders: links, or not of {', '.join(SUFFIXES)}"
            skipped.insert(0, Skipped(", ".join(given), unread))
        reader = FileReader(LARGEST_READING, hidden_text=hidden_text)
        for done, file in enumerate(files):
            if on_file is not None:
                on_file(done, len(files))
            try:
                if file in too_large:
                    raise CorpusError(f"{file.label} is one of the largest of more than {LARGEST_READING >> 20} MiB")
                found, bad_rows = reader.read(file)
            except CorpusError as error:
                if file.named:
                    raise
                skipped.append(Skipped(file.path, str(error)))
            else:
                documents += found
                skipped += bad_rows
                if not bad_rows and not any(d.text.strip() for d in found):
                    skipped.append(Skipped(file.path, f"{file.label} holds no text"))
    if not any(d.text.strip() for d in documents):
        raise CorpusError(_nothing(given, skipped))
    return Reading(tuple(documents), tuple(skipped))


def _beyond(files: Sequence[SourceFile], limit: int) -> set[SourceFile]:
    """Return the largest files, without which the rest is within a limit of bytes; named ones are never among them."""
    left, out = sum(file.size for file in files), set()
    for file in sorted(files, key=lambda file: file.size, reverse=True):
        if left <= limit:
            break
        if not file.named:
            out.add(file)
            left -= file.size
    return out


def _nothing(paths: list[str], skipped: list[Skipped]) -> str:
    reason = f"no text in {', '.join(paths)}; {', '.join(SUFFIXES)} are read"
    return f"{reason} (skipped: {skipped[0].reason})" if skipped else reason
