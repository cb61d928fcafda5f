"""What a tool's function returned, before LangChain makes text of it."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

from langchain_core.tools import BaseTool


@dataclass
class Watched:
    """A tool, and what it returned.

    Attributes:
        tool: the tool to run in place of the given one: the same, but that it notes what it returns.
        entered: whether its function was called at all.
        returned: what the function returned, as objects; None if it did not, or cannot be seen.
    """

    tool: Any
    entered: bool = False
    returned: Any = field(default=None)

    @classmethod
    def of(cls, tool: Any) -> Watched:
        """Watch a tool; what is no `BaseTool` stays as it is, and counts as called."""
        if not isinstance(tool, BaseTool):
            return cls(tool, entered=True)
        watched = cls(tool.model_copy())
        # The function stays the given tool's own, bound to it, so that whatever it remembers it still remembers.
        object.__setattr__(watched.tool, "_run", watched._noting(tool._run))
        object.__setattr__(watched.tool, "_arun", watched._anoting(tool._arun))
        return watched

    def _noting(self, run: Any) -> Any:
        @functools.wraps(run)
        def noting(*args: Any, **kwargs: Any) -> Any:
            self.entered = True
            self.returned = run(*args, **kwargs)
            return self.returned

        return noting

    def _anoting(self, arun: Any) -> Any:
        @functools.wraps(arun)
        async def anoting(*args: Any, **kwargs: Any) -> Any:
            self.entered = True
            self.returned = await arun(*args, **kwargs)
            return self.returned

        return anoting
