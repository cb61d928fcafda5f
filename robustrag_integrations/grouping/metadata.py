"""The entries of a passage's metadata that name its origin."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from robustrag_integrations.grouping.keys import label
from robustrag_integrations.grouping.origins import ID, Origin, origin_named

# What the loaders, readers and stores of LangChain and LlamaIndex write: the file, then the address, then ids. `source`
# is first: loaders write it last, over whatever the properties of a PDF or the fields of a row are called.
_NAMES = (
    "source", "file_path", "url", "link", "source_url", "uri", "source_uri", "href", "permalink", "web_url", "html_url",
    "page_url", "document_url", "document_uri", "path", "source_path", "metadata_storage_path", "file_name",
    "source_file", "doc_name", "document_name",
)  # fmt: skip
_IDS = ("file_id", "document_id", "ref_doc_id", "doc_id")
FIELDS = (*_NAMES, *_IDS)
_FILES = frozenset({"file_path", "path", "source_path", "file_name", "source_file", "doc_name", "document_name"})
_JSON = ("metadata", "nodecontent")  # how names of entries end that hold JSON
_LONGEST_JSON = 1_000_000  # characters
_MOST_LEVELS = 50

Named = tuple[str, Origin]
"""An entry, as metadata spells it, and the origin that it names."""


def names_in(metadata: Mapping[str, Any], first: str = "source") -> list[Named]:
    """Return the entries that name an origin, in the order of `FIELDS`: the first one counts.

    Outer entries come before those of mappings within (`location.s3Location.uri`, `_source`), of which some stores
    write one as JSON (`metadata`); where an outer entry names something, those within are not looked at. An id counts
    only where nothing else does, and alone.

    Args:
        metadata: of a passage.
        first: the entry that comes before all others.
    """
    if type(metadata) is dict and not metadata:
        return []
    fields = (first, *(name for name in _NAMES if name != first))
    if outer := list(entries_in(metadata, fields)):
        return outer
    within = list(_levels(metadata))
    if found := [named for level in within[1:] for named in entries_in(level, fields)]:
        return found
    ids = (named for level in within for named in entries_in(level, _IDS))
    return [(key, replace(origin, kind=ID)) for key, origin in ids][:1]


def entries_in(metadata: Mapping[str, Any], fields: Sequence[str]) -> Iterator[Named]:
    """Yield the entries of these names that name something: a text, a number or a path.

    Entries are found in other spellings too ("URL", "fileName", "file path"), after the exact ones.
    """
    ranks = _ranks(tuple(fields))
    keys = [(rank, key != fields[rank], key) for key in metadata if (rank := ranks.get(_plain(key))) is not None]
    for rank, _, key in sorted(keys, key=lambda found: found[:2]):
        named = label(metadata[key])
        if named is not None and (origin := origin_named(named, is_file=fields[rank] in _FILES)) is not None:
            yield key, origin


@cache
def _ranks(fields: tuple[str, ...]) -> dict[str | None, int]:
    return {_plain(field): rank for rank, field in enumerate(fields)}


def _levels(metadata: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The metadata and the mappings within it, outer ones first."""
    levels = [metadata]
    for level in levels:
        yield level
        within = (_parsed(key, level[key]) for key in level)
        levels += [value for value in within if isinstance(value, Mapping)][: _MOST_LEVELS - len(levels)]


def _parsed(key: object, value: object) -> object:
    if not (isinstance(value, str) and (_plain(key) or "").endswith(_JSON) and len(value) <= _LONGEST_JSON):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def is_origin_field(key: str) -> bool:
    """True if an entry of this name, in any spelling, may name an origin."""
    return _plain(key) in _PLAIN_FIELDS


def _plain(key: object) -> str | None:
    return key.lower().replace("_", "").replace("-", "").replace(" ", "") if isinstance(key, str) else None


_PLAIN_FIELDS = frozenset(map(_plain, FIELDS))
