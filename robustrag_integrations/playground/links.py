"""Links that hold a state in the fragment, which browsers do not send to servers: compressed, and bounded both ways."""

from __future__ import annotations

import json
import re
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode

from robustrag_integrations.playground.state import State, StateError, state_of
from robustrag_integrations.serve.endpoint import json_object
from robustrag_integrations.serve.errors import RequestError

LONGEST_LINK = 16_000  # characters; the limit of mail and chat programs
_MOST_BYTES = 2_000_000  # of an unpacked link

_LINK = re.compile(r"[A-Za-z0-9_-]+={0,2}")


def link_of(state: State) -> str | None:
    """Return the state as a fragment; None where it would be too long."""
    written = json.dumps(state.as_dict(), ensure_ascii=False, separators=(",", ":")).encode()
    fragment = urlsafe_b64encode(zlib.compress(written, 9)).decode().rstrip("=")
    return fragment if len(fragment) <= LONGEST_LINK else None


def state_of_link(fragment: object) -> State:
    """Return the state in a fragment.

    Raises:
        StateError: there is none in it; the message says what is wrong.
    """
    if not isinstance(fragment, str) or len(fragment) > LONGEST_LINK or not _LINK.fullmatch(fragment):
        raise StateError("this link is damaged or too long: it holds no state of the playground")
    try:
        packed = urlsafe_b64decode(fragment + "=" * (-len(fragment) % 4))
        unpacking = zlib.decompressobj()
        written = unpacking.decompress(packed, _MOST_BYTES)
        if not unpacking.eof:
            raise ValueError("it is cut, or unfolds to too much")
        return state_of(json_object(written))
    except StateError:
        raise
    except (ValueError, zlib.error, RequestError) as error:
        raise StateError(f"this link is damaged: {error}") from error
