"""Which entry of a passage's metadata names its origin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from robustrag_integrations.keys import label
from robustrag_integrations.origins.names import Origin, origin_named

# What the loaders and readers of LangChain and LlamaIndex write: the file, then the address, then ids. A reader of PDF
# files may make a document of each page, with the page's number as `source`: so the file's path stands first.
FIELDS = (
    "file_path",
    "source",
    "url",
    "link",
    "source_url",
    "uri",
    "source_uri",
    "href",
    "permalink",
    "path",
    "file_name",
    "file_id",
    "document_id",
    "ref_doc_id",
    "doc_id",
)
_FILES = frozenset({"file_path", "path", "file_name"})


def origin_in(metadata: Mapping[str, Any], fields: Sequence[str] = FIELDS) -> Origin | None:
    """The origin: what the first of these entries names that names anything.

    Entries are found in other spellings too ("URL", "fileName", "file path"), after the exact ones.

    Returns:
        None if there is no such entry, or none that is a text, a number or a path.
    """
    if type(metadata) is dict and not metadata:
        return None
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


def _plain(key: object) -> str | None:
    return key.lower().replace("_", "").replace("-", "").replace(" ", "") if isinstance(key, str) else None
