"""What the attacker plants into: the fictional world, files, passages of the user's, or those of the questions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from robustrag_integrations.corpus import read_documents, split
from robustrag_integrations.evaluation.data.named import DEMO
from robustrag_integrations.evaluation.data.questions import EvalQuestion
from robustrag_integrations.evaluation.data.world import read_world, world_folder
from robustrag_integrations.grouping.passages import Passage, as_passages
from robustrag_integrations.plugins import load_object

PASSAGE_ID = "passage_id"  # in the metadata of every passage: what retrievers of other libraries are asked to keep


def corpus_of(
    source: str, questions: Iterable[EvalQuestion], given: Sequence[str] | None, chunk_size: int
) -> tuple[Passage, ...]:
    """The passages of a corpus, each with an id that no other has.

    Args:
        source: the data set; `demo` has its world.
        questions: of the data set. Where no corpus is given, a file's corpus is all the passages of its questions.
        given: files and folders, or `module:function` that gives passages; None for the data set's own.
        chunk_size: the longest passage cut from a file, in characters.

    Raises:
        CorpusError: a file cannot be read, or there is no text.
        ValueError: what was named gives no passages.
    """
    if given is not None:
        found = [p for name in given for p in _named(name, chunk_size)]
    elif source == DEMO:
        found = split(read_world(world_folder()), chunk_size)
    else:
        found = list({(p.text, p.source): p for q in questions for p in q.passages}.values())
    if not found:
        raise ValueError(f"{source}: there is no passage to retrieve; name files with --corpus")
    return told_apart(found, "p")


def told_apart(passages: Sequence[Passage], prefix: str) -> tuple[Passage, ...]:
    """The passages under ids of their own, which stand in their metadata as well, with their source."""
    made = []
    for number, passage in enumerate(passages):
        name = f"{prefix}{number}"
        metadata = {**passage.metadata, PASSAGE_ID: name}
        source = _source(passage)
        if source is not None:
            metadata.setdefault("source", source)
        made.append(replace(passage, id=name, source=source, metadata=metadata))
    return tuple(made)


def _source(passage: Passage) -> str | None:
    """A source that alone names the passage's origin, whatever its metadata says besides."""
    origin = passage.origin
    if Passage("", source=passage.source).origin == origin:
        return passage.source
    return origin.name if origin is not None else None


def _named(name: str, chunk_size: int) -> Sequence[Passage]:
    place, _, function = name.rpartition(":")
    if not (place and function.isidentifier()):
        return split(read_documents([name]).documents, chunk_size)
    passages = load_object(name)()
    try:
        return as_passages(passages)
    except TypeError as error:
        raise ValueError(f"corpus {name!r} must give a list of Passage: {error}") from error
