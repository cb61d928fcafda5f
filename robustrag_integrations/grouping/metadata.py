"""The entry of a passage's metadata that names its origin."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from robustrag_integrations.grouping.keys import label
from robustrag_integrations.grouping.origins import Origin, origin_named

# What the loaders, readers and stores of LangChain and LlamaIndex write: the file, then the address, then ids. A reader
# of PDF files may make a document of each page, with the page's number as `source`: so the file's path stands first.
_NAMES = (
    "file_path", "source", "url", "link", "source_url", "uri", "source_uri", "href", "permalink", "web_url", "html_url",
    "page_url", "document_url", "document_uri", "path", "source_path", "metadata_storage_path", "file_name",
    "source_file", "doc_name", "document_name",
)  # fmt: skip
_IDS = ("file_id", "document_id", "ref_doc_id", "doc_id")
FIELDS = (*_NAMES, *_IDS)
_FILES = frozenset({"file_path", "path", "source_path", "file_name", "source_file", "doc_name", "document_name"})
_JSON = ("metadata", "nodecontent")  # how names of entries end that hold JSON
_LONGEST_JSON = 1_000_000  # characters
_MOST_LEVELS = 50


def origin_in(metadata: Mapping[str, Any]) -> Origin | None:
    """Return the origin named by the first entry of `FIELDS` that names anything, an id only where nothing else does.

    Outer entries come before those of mappings within (`location.s3Location.uri`, `_source`), of which some stores
    write one as JSON (`metadata`).
    """
    if type(metadata) is dict and not metadata:
        return None
    found = (entry_in(level, fields) for fields in (_NAMES, _IDS) for level in _levels(metadata))
    return next(filter(None, found), None)


def entry_in(metadata: Mapping[str, Any], fields: Sequence[str]) -> Origin | None:
    """Return the origin named by the first of these entries that names anything.

    Entries are found in other spellings too ("URL", "fileName", "file path"), after the exact ones.

    Returns:
        None if there is no such entry, or none that is a text, a number or a path.
    """
    spelt: dict[str | None, Any] | None = None
    for field in fields:
        value = metadata.get(field)
        if label(value) is None:
            if spelt is None:
                spelt = {}
                for key in metadata:
                    spelt.setdefault(_plain(key), metadata[key])
            value = spelt.get(_plain(field))
        named = label(value)
        if named is not None and (found := origin_named(named, is_file=field in _FILES)) is not None:
            return found
    return None


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
