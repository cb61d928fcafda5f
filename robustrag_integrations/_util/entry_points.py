"""Registries of named things to which other packages add theirs, by entry points."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from importlib import import_module, metadata
from typing import TypeVar

from robustrag_integrations._util.display import printable

T = TypeVar("T")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class PluginWarning(UserWarning):
    """Warning that an add-on of another package is left out; the message names the package and why."""


class Table(MutableMapping[str, T]):
    """Entries by name: those that ship, and those of other packages.

    Installed packages are looked at when a name is asked for that does not ship, or when all names are listed. What
    cannot be loaded, or has a name that is taken, is left out with a `PluginWarning`; all else stays.

    Args:
        group: the group of the entry points; None for none.
        shipped: the entries of this package.
        read: from a name and what its entry point names to the entry. It may raise anything.
        module: a module of this package that adds entries; it is imported when installed packages would be looked at.
    """

    def __init__(
        self,
        group: str | None,
        shipped: Mapping[str, T],
        read: Callable[[str, object], T],
        module: str | None = None,
    ) -> None:
        self._group, self._read, self._module = group, read, module
        self._entries = dict(shipped)
        self._packages: dict[str, str] = {}
        self._looked = False
        self._lock = threading.RLock()

    def __getitem__(self, name: str) -> T:
        """Return the entry of this name."""
        if name not in self._entries:
            self._look()
        return self._entries[name]

    def __setitem__(self, name: str, entry: T) -> None:
        """Add or replace an entry."""
        self._entries[name] = entry

    def __delitem__(self, name: str) -> None:
        """Remove an entry."""
        del self._entries[name]

    def __iter__(self) -> Iterator[str]:
        """Yield all names: those that ship come first."""
        self._look()
        return iter(tuple(self._entries))

    def __len__(self) -> int:
        """Return the number of entries."""
        self._look()
        return len(self._entries)

    def package_of(self, name: str) -> str | None:
        """Return the package, with its version, that adds this entry; None for one that ships."""
        return self._packages.get(name)

    def _look(self) -> None:
        """Read the entry points, once."""
        with self._lock:
            if self._looked:
                return
            self._looked = True  # first, so that a package which lists the names while it is loaded does not come back
            if self._module is not None:
                import_module(self._module)
            entries = metadata.entry_points(group=self._group) if self._group is not None else ()
            found = [(f"{e.dist.name} {e.dist.version}" if e.dist is not None else "(unknown)", e) for e in entries]
            for package, entry in sorted(found, key=lambda pair: (pair[0], pair[1].name, pair[1].value)):
                self._add(package, entry)

    def _add(self, package: str, entry: metadata.EntryPoint) -> None:
        try:
            self._entries[entry.name] = self._read(self._free(entry.name), entry.load())
            self._packages[entry.name] = package
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # its module is the package's: it may raise anything, and may even exit
            why = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            warnings.warn(
                f"the package {printable(package, 80)} adds {printable(entry.name, 80)!r} to {self._group}, which is "
                f"left out: {printable(why, 300)}",
                PluginWarning,
                stacklevel=5,
            )

    def _free(self, name: str) -> str:
        """Return a name that an entry may have."""
        if not _NAME.fullmatch(name):
            raise ValueError("the name must be up to 64 letters, digits, '_', '-' or '.'")
        if name in self._entries:
            owner = self._packages.get(name)
            raise ValueError(f"the name is taken {f'by {owner}' if owner else 'by what ships with robustrag'}")
        return name
