"""The interface of a language model as plans use it, and the types of its replies."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

from robustrag_integrations.answers.determinism import Repeats
from robustrag_integrations.answers.usage import Usage
from robustrag_integrations.models.reply import Ending, Piece
from robustrag_integrations.text.prompts import Prompt

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Result = TypeVar("Result")
Role = Literal["isolated", "trusted", "final"]
SkippedReason = Literal["not_asked", "cancelled"]


@dataclass(frozen=True)
class Response(Ending):
    """The reply to one prompt: the text and how it ended, or the reason why there is none.

    Attributes:
        text: the model's words; None when the call failed. A refusal that the server marks as one has the text "".
        error: the failure in one line, for reports; None when it succeeded.
        truncated: True if the prompt's passages were cut to fit the model's context window.
        abstains, note, aloud: whether it counts as an abstention whatever its text says, why it does not count in full,
            and whether its text held reasoning. Models leave these to `replies.reading`.
        skipped_reason: why there is neither text nor failure: the other replies were enough, so that the call was not
            made (`not_asked`), or was given up under way (`cancelled`).
        cause: the exception that the call failed with, without credentials.

    Raises:
        TypeError: the text is neither a str nor None; otherwise as for `Ending`.
    """

    text: str | None
    error: str | None = None
    truncated: bool = False
    abstains: bool = False
    note: str | None = None
    aloud: bool = False
    skipped_reason: SkippedReason | None = None
    cause: Exception | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.text is not None and not isinstance(self.text, str):
            raise TypeError(f"the text of a Response must be a str or None, got {type(self.text).__name__}")

    @classmethod
    def of(cls, text: str | None, ending: Ending, *, error: str | None = None, truncated: bool = False) -> Response:
        """Build a response from a text and its ending."""
        return cls(text, error, truncated, **{each.name: getattr(ending, each.name) for each in fields(Ending)})


BLANK = Response("", abstains=True, note="there is nothing to read, and the model was not asked")
"""The reply to a `blank` prompt that was left out."""


Until: TypeAlias = Callable[[Sequence[Response]], bool]
"""True of replies, one per prompt, that are enough; `not_asked()` stands in place of missing ones."""


def not_asked(*, cancelled: bool = False) -> Response:
    """Return the placeholder of a reply that was not waited for; `cancelled` if its call had gone out."""
    reason: SkippedReason = "cancelled" if cancelled else "not_asked"
    return Response(None, f"{reason.replace('_', ' ')}, as the answer was decided", skipped_reason=reason)


class Model:
    """The base class of all language models.

    `limit`: the argument that says how long a reply may be; None: not known.
    """

    limit: str | None = None

    @property
    def numerics(self) -> Mapping[str, Any]:
        """The numeric settings of its replies (`dtype`, `device`), for certificates; empty where unknown."""
        return {}

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about properties of the model that weaken its answers or their radius."""
        return ()

    @property
    def repeats(self) -> Repeats:
        """The model's reproducibility (equal replies to equal prompts), and how it is known; answers carry it."""
        return Repeats()


class TextModel(Model, ABC):
    """A language model that turns prompts into text.

    A failed prompt is a `Response` with an `error`, never an exception: one source's failure must not cost the answer.

    Attributes:
        window: the most tokens of a prompt and its reply together; None: not known.
        longest_reply: the limit of a reply, in tokens; None: not known.
        shares_batches: True if the prompts of one `generate` are one batch: certification then keeps to the shapes of
            inference.
    """

    window: int | None = None
    longest_reply: int | None = None
    shares_batches: bool = False

    @abstractmethod
    def generate(self, prompts: Sequence[Prompt], role: Role, until: Until | None = None) -> list[Response]:
        """Answer independent prompts; the result has their order.

        `role` says what is in them: the passages of one source each, all trusted ones, or none (`final`). Once the
        replies are enough, `not_asked()` may stand for the rest; a model whose prompts are one batch reads them all.
        """

    @abstractmethod
    async def agenerate(self, prompts: Sequence[Prompt], role: Role, until: Until | None = None) -> list[Response]:
        """`generate` without blocking the event loop; cancelling it cancels the calls."""

    @abstractmethod
    def stream(self, prompt: Prompt, role: Role = "final") -> Iterator[Piece]:
        """Yield the answer to one prompt in pieces, then how it ended, where known; raises ModelError on failure."""

    @abstractmethod
    def astream(self, prompt: Prompt, role: Role = "final") -> AsyncIterator[Piece]:
        """`stream` without blocking the event loop."""

    @property
    def description(self) -> str:
        """The model's name in reports."""
        return type(self).__name__

    @property
    def deterministic(self) -> bool:
        """True unless the model is known to sample; a certificate needs the same text for the same prompt."""
        return self.repeats.model != "samples"


class TokenCodec(Protocol):
    """A stateless decoder of tokens into text."""

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of generated tokens, special tokens left out."""

    def is_end(self, token: int) -> bool:
        """True if the token ends a text."""


@dataclass(frozen=True)
class Distributions:
    """Next-token probabilities, float32 or float64.

    Attributes:
        noise: bound on how far each probability may be from the one that inference computes with other content in the
            other sources; 0.0 if they are equal, 1.0 if nothing is known. Certificates rely on it.
        unlisted: per source, how far its probabilities together may exceed the stated ones, where the model gives only
            some of them (a top-K list); the others stand as 0. Empty: all are given.
    """

    sources: NDArray[np.floating]  # [m, V], a row per source in the order of the prompts
    no_retrieval: NDArray[np.floating]  # [V], for the prompt without passages
    noise: float = 0.0
    unlisted: tuple[float, ...] = ()
    failures: tuple[str | None, ...] = ()  # per source, why it could not be asked (its row is 0); empty: none failed
    spent: tuple[Usage, ...] = ()  # per row, the question alone last, of the session so far; empty: not counted
    calls: int = 0  # requests, or rows and steps in this process
    rounds: int | None = None  # of waiting for replies; None: one for each request of the plan

    def __post_init__(self) -> None:
        if self.unlisted and not self.noise >= max(self.unlisted):  # which a token that is not listed may have
            raise ValueError(f"noise={self.noise} must be at least max(unlisted)={max(self.unlisted)}")

    @property
    def moved(self) -> float:
        """Bound on how far other sources' content may move a probability; 0 where each list is a request of its own."""
        return 0.0 if self.unlisted else self.noise


@dataclass(frozen=True)
class Opening:
    """The start of a decoding session."""

    abstention: NDArray[np.floating]  # [m], the probability of the whole abstention string, every token of it
    distributions: Distributions  # of the first answer token
    truncated: tuple[bool, ...]  # per source, whether its passages were cut to fit


class DecodingSession(ABC):
    """One decoding run: all sources and the no-retrieval prompt, advanced by the same tokens."""

    opening: Opening

    @abstractmethod
    def append(self, token: int) -> Distributions:
        """Append the token to every row and give the distributions of the one after it."""

    def sharpen(self) -> Distributions | None:
        """Return surer last distributions, from longer top-K lists; None if there are none."""
        return None

    def fork(self) -> DecodingSession | None:
        """Return an independent copy with bit-identical numbers; None where unsupported: it is then opened anew."""
        return None


class DecodingModel(Model, ABC):
    """A language model that gives next-token probabilities; `codec` has its tokens as text."""

    codec: TokenCodec

    async def in_thread(self, call: Callable[..., Result], *args: Any) -> Result:
        """Run a blocking call, such as a session's, off the event loop."""
        return await asyncio.to_thread(call, *args)

    @abstractmethod
    def open_session(self, prompts: Sequence[Prompt], no_retrieval: Prompt, max_new_tokens: int) -> DecodingSession:
        """Read the prompts; no row's numbers may depend on another row's content."""


REPLY_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens", "num_predict")


def limit_among(names: Iterable[str]) -> str | None:
    """Return the argument that says how long a reply may be, among those of a framework's model."""
    found = {*names}
    return next((name for name in REPLY_LIMITS if name in found), None)


# --- models around others


def _wrapped(name: str) -> Any:
    return property(lambda self: getattr(self._model, name), doc="The wrapped model's.")


class AroundModel(TextModel):
    """A wrapper around a text model, with that model's properties."""

    numerics = _wrapped("numerics")
    warnings = _wrapped("warnings")
    description = _wrapped("description")
    repeats: Any = _wrapped("repeats")

    def __init__(self, model: TextModel) -> None:
        self._model = model
        self.window, self.limit, self.longest_reply = model.window, model.limit, model.longest_reply
        self.shares_batches = model.shares_batches


class TwoModels(AroundModel):
    """Prompts with passages go to a reader, many a small one; the final one, without passages, to a writer."""

    def __init__(self, reader: TextModel, writer: TextModel) -> None:
        for name, model in (("model", reader), ("final_model", writer)):
            if not isinstance(model, TextModel):
                raise TypeError(f"{name} must be a TextModel, got {type(model).__name__}; wrap it as CallableModel(fn)")
        super().__init__(reader)
        self._writer = writer
        self.shares_batches |= writer.shares_batches

    def generate(self, prompts: Sequence[Prompt], role: Role, until: Until | None = None) -> list[Response]:
        """Answer independent prompts with the model of their role."""
        return self._for(role).generate(prompts, role, until)

    async def agenerate(self, prompts: Sequence[Prompt], role: Role, until: Until | None = None) -> list[Response]:
        """`generate` without blocking the event loop."""
        return await self._for(role).agenerate(prompts, role, until)

    def stream(self, prompt: Prompt, role: Role = "final") -> Iterator[Piece]:
        """Yield the answer to one prompt in pieces, from the model of its role."""
        return self._for(role).stream(prompt, role)

    def astream(self, prompt: Prompt, role: Role = "final") -> AsyncIterator[Piece]:
        """`stream` without blocking the event loop."""
        return self._for(role).astream(prompt, role)

    @property
    def numerics(self) -> Mapping[str, Any]:
        """The reader's, with the writer's under `final_model`; empty if neither has any."""
        writer = dict(self._writer.numerics)
        return {**self._model.numerics, **({"final_model": writer} if writer else {})}

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of both models, each once."""
        return tuple(dict.fromkeys((*self._model.warnings, *self._writer.warnings)))

    @property
    def description(self) -> str:
        """Both names, the reader's first."""
        return f"{self._model.description}, final answer by {self._writer.description}"

    @property
    def repeats(self) -> Repeats:
        """The reproducibility of both models together."""
        return self._model.repeats.with_other(self._writer.repeats)

    def _for(self, role: Role) -> TextModel:
        return self._writer if role == "final" else self._model


# --- progress, for whoever waits at a terminal

Listener = Callable[[int, int], None]

_LISTENER: ContextVar[Listener | None] = ContextVar("robustrag_progress", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Have a listener called, from any thread, with the number of prompts that were read, and of how many."""
    before = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(before)


def tell(read: int, of: int) -> None:
    """Tell the listener, if there is one, of a batch of several."""
    if of > 1 and (listener := _LISTENER.get()) is not None:
        listener(read, of)
