"""What a missing extra is installed with."""

from __future__ import annotations

import json
import shlex

NAME = "robustrag-integrations"


def missing(need: str, extra: str) -> ImportError:
    """Return an error that says what needs an extra, and how to install it from where this package came."""
    return ImportError(f"{need}: pip install {shlex.quote(f'{NAME}[{extra}]{_origin()}')}")


def _origin() -> str:
    """Return the folder, file or repository that pip recorded; nothing for the package index."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        recorded = json.loads(distribution(NAME).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return ""
    scheme = f"{vcs['vcs']}+" if (vcs := recorded.get("vcs_info")) else ""
    return f" @ {scheme}{recorded['url']}" if recorded.get("url") else ""
