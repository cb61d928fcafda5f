"""What sees every call of a function of torch while a model reads: the model itself is left as it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch.overrides import TorchFunctionMode


class TorchCalls(TorchFunctionMode, ABC):  # type: ignore[misc]  # untyped library
    """Within it, `call` takes the place of this thread's calls of torch's functions."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """One call, as torch hands it over."""
        return self.call(func, args, kwargs or {})

    @abstractmethod
    def call(self, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Do what a call of `func` is to do, and give its result."""
