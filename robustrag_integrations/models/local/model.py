"""Local transformers models: greedy text, and next-token probabilities for decoding aggregation.

Numerics are part of the threat model: padding, batch size and kernels must not let one passage move another source's
numbers. Every prompt is therefore read in a batch of its own; decoding steps are batched, in shapes that no passage
decides, and rows are never dropped. A probe on the model itself tests that this is enough (`isolation`).
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from robustrag_integrations._util.checks import check_at_least, check_flag
from robustrag_integrations._util.errors import ModelError, missing
from robustrag_integrations.answers.determinism import Repeats
from robustrag_integrations.answers.usage import Usage
from robustrag_integrations.models.base import (
    DecodingModel,
    DecodingSession,
    Response,
    Role,
    TextModel,
    Until,
)
from robustrag_integrations.models.local.encoding import Encoded, PromptEncoder, TokenizerCodec, ends_in
from robustrag_integrations.models.reply import Ending, Piece
from robustrag_integrations.text.prompts import Prompt

try:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    from robustrag_integrations.models.local.cancellation import in_cancellable_thread
    from robustrag_integrations.models.local.decoding import GreedyWriter, LocalSession
    from robustrag_integrations.models.local.isolation import in_words
    from robustrag_integrations.models.local.language_model import CausalLM
    from robustrag_integrations.models.local.reading import PromptReader
except ImportError as error:
    raise missing("LocalModel needs torch and transformers", "local") from error

_LOG = logging.getLogger(__name__)
Result = TypeVar("Result")
_SMALLEST_BUDGET = 16  # tokens of context below which a prompt is useless
_BFLOAT16 = ("amx_bf16", "avx512_bf16", "bf16")  # of Intel, AMD and Arm
# transformers replaces functions of torch while it loads; two loads at once would leave them so
_LOADING = threading.RLock()


def _on_cpu(name_or_path: str | os.PathLike[str]) -> str:
    """Return the precision of a checkpoint's weights on this CPU."""
    found: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()  # older versions of torch do not say
    if not any(found.get(name) for name in _BFLOAT16):
        return "float32"
    with suppress(OSError, ValueError):  # loading says what is wrong
        if AutoConfig.from_pretrained(name_or_path, trust_remote_code=False).dtype == torch.bfloat16:
            _LOG.info("%s: weights in bfloat16, half the memory of float32, which dtype='float32' takes", name_or_path)
            return "bfloat16"
    return "float32"


class LocalModel(TextModel, DecodingModel):
    """A transformers causal language model, used greedily and left as it is.

    Args:
        model: a causal language model in evaluation mode.
        tokenizer: its fast tokenizer.
        max_context_tokens: number of tokens of passages that each source may have; longer ones are cut, with a warning.
        max_new_tokens: the longest isolated or final answer, in tokens (decoding aggregation has a setting of its own).
        stop: strings that end a text; default an empty line for base models, none for chat models.
        chat: True to use the tokenizer's chat template, with reasoning turned off where it has a switch for that; None:
            if it has one.
        template_options: variables of the chat template, such as `{"enable_thinking": True}`; these take precedence.
        name: the model's name in reports.
        share_prefixes: True if what prompts begin with is read once, where the architecture allows it.
        prefix_cache_bytes: bytes of such prefixes that are kept between calls.
        prefill_tokens: number of tokens read in one forward pass, which bounds the memory that activations take.
    """

    limit = "max_new_tokens"
    shares_batches = True

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        max_context_tokens: int = 512,
        max_new_tokens: int = 256,
        stop: Sequence[str] | None = None,
        chat: bool | None = None,
        template_options: Mapping[str, Any] | None = None,
        name: str | None = None,
        share_prefixes: bool = True,
        prefix_cache_bytes: int = 2**28,
        prefill_tokens: int = 8192,
    ) -> None:
        if not isinstance(model, torch.nn.Module) or not hasattr(model, "config"):
            raise TypeError(f"model must be a transformers causal language model, got {type(model).__name__}")
        if model.training:
            raise ValueError("the model is in training mode, where dropout makes answers random; call model.eval()")
        sizes = {"max_context_tokens": max_context_tokens, "max_new_tokens": max_new_tokens}
        check_at_least(1, **sizes, prefill_tokens=prefill_tokens)
        check_at_least(0, prefix_cache_bytes=prefix_cache_bytes)
        chat = bool(getattr(tokenizer, "chat_template", None)) if chat is None else chat
        check_flag(share_prefixes=share_prefixes, chat=chat)
        self._model, self._tokenizer = model, tokenizer
        self._max_context_tokens = max_context_tokens
        self._encoder = PromptEncoder(tokenizer, chat=chat, template_options=template_options)
        self._abstentions = self._encoder.abstentions()
        self._lm = CausalLM(model)
        self.window, self.longest_reply = self._lm.window, max_new_tokens
        self._reader = PromptReader(
            self._lm, share=share_prefixes, keep_bytes=prefix_cache_bytes, at_once=prefill_tokens
        )
        configs = (model.config, getattr(model, "generation_config", None))
        self.codec = TokenizerCodec(tokenizer, frozenset().union(*map(ends_in, configs)))
        ends = tuple(stop) if stop is not None else (() if chat else ("\n\n",))
        self._writer = GreedyWriter(self._reader, self.codec, ends, max_new_tokens)
        self._name = name or getattr(model.config, "name_or_path", "") or type(model).__name__

    @classmethod
    def from_pretrained(
        cls,
        name_or_path: str | os.PathLike[str],
        *,
        device: str | torch.device | None = None,
        dtype: str | torch.dtype | None = None,
        **settings: Any,
    ) -> LocalModel:
        """Load a model and its tokenizer; remote code is never run and pickled weights are refused.

        Args:
            name_or_path: a folder, or a name on the model hub.
            device: default `cuda` if available, otherwise `cpu`.
            dtype: `float32`, `bfloat16`, `float16`, `float64`, or `auto` for the checkpoint's own; default `auto` on an
                accelerator, `float32` on the CPU. One that multiplies bfloat16 itself keeps a checkpoint in bfloat16
                as it is, which takes half the memory, and logs that.
            settings: the constructor's keyword arguments.
        """
        place = torch.device(device if device is not None else "cuda" if torch.cuda.is_available() else "cpu")
        precision = str(dtype or (_on_cpu(name_or_path) if place.type == "cpu" else "auto")).removeprefix("torch.")
        if precision not in ("auto", "float32", "bfloat16", "float16", "float64"):
            raise ValueError(f"dtype={dtype!r:.60} must be one of auto, float32, bfloat16, float16, float64")
        try:
            with _LOADING:
                tokenizer = AutoTokenizer.from_pretrained(name_or_path, trust_remote_code=False)
                model, loaded = AutoModelForCausalLM.from_pretrained(
                    name_or_path,
                    dtype=precision,
                    trust_remote_code=False,
                    use_safetensors=True,
                    output_loading_info=True,
                )
        except (OSError, ValueError) as error:
            raise ModelError(
                f"cannot load the model {name_or_path!r}: {error}. Give a folder with config.json, tokenizer.json and "
                "model.safetensors, or the name of a model that can be downloaded from here"
            ) from error
        if missing := sorted(loaded["missing_keys"]):
            raise ModelError(
                f"the model {name_or_path!r} lacks {len(missing)} of its weights ({missing[0]}, ...): config.json may "
                "belong to another checkpoint"
            )
        return cls(model.to(place).eval(), tokenizer, **{"name": str(name_or_path), **settings})

    @classmethod
    def bundled(cls, **settings: Any) -> LocalModel:
        """Load the small reader that ships with the package: for demonstrations and tests, offline."""
        from robustrag_integrations.reader import reader_path

        defaults = {"name": "bundled reader", "max_context_tokens": 256, "max_new_tokens": 24}
        return cls.from_pretrained(str(reader_path()), **{**defaults, **settings})

    @property
    def description(self) -> str:
        """The model's name."""
        return self._name

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about reasoning that cannot be turned off."""
        return self._encoder.warnings

    @property
    def repeats(self) -> Repeats:
        """Deterministic, as decoding is greedy, unless the isolation probe saw the numbers themselves change."""
        if self._reader.is_repeatable:
            return Repeats("deterministic", "greedy, in this process")
        return Repeats("samples", "the isolation probe found that a prompt gives other numbers when it is read again")

    @property
    def numerics(self) -> dict[str, str]:
        """Precision and device of the weights, how prompts are read, and the isolation probe's results so far."""
        weight, why = next(self._model.parameters()), self.why_not_shared
        options = ", ".join(f"{k}={v!r}" for k, v in sorted(self._encoder.frame.options.items()))
        return {
            "dtype": str(weight.dtype).removeprefix("torch."),
            "device": str(weight.device),
            **({"chat_template": options} if options else {}),
            "attention": str(getattr(self._model.config, "_attn_implementation", None)),
            "prefixes": f"not shared: {why}" if why else "shared",
            "isolation": "every prompt in a batch of its own" if why else in_words(self._reader.probed),
        }

    @property
    def why_not_shared(self) -> str | None:
        """The reason why common prefixes are computed for each prompt; None if they are computed once."""
        rules = self._reader.rules()
        return rules if isinstance(rules, str) else None

    def forget_prefixes(self) -> None:
        """Drop the kept prefixes, and what was measured: needed after changes to the model other than weights."""
        self._reader.forget()

    def generate(self, prompts: Sequence[Prompt], role: Role, until: Until | None = None) -> list[Response]:
        """Answer all prompts in one batch, greedily."""
        if not prompts:
            return []
        encoded, longest = self._encode(prompts, role, self._writer.max_new_tokens)
        replies = self._writer.together(encoded, longest)
        opened, used = self._encoder.frame.opened, self._usage(encoded, [reply.text or "" for reply in replies])
        return [
            replace(reply, text=opened + (reply.text or ""), truncated=e.truncated, usage=usage)
            for reply, e, usage in zip(replies, encoded, used, strict=True)
        ]

    async def agenerate(self, prompts: Sequence[Prompt], role: Role, until: Until | None = None) -> list[Response]:
        """`generate` in a thread; cancelling it stops it at the next prompt that is read, or the next token."""
        return await self.in_thread(self.generate, prompts, role)

    async def in_thread(self, call: Callable[..., Result], *args: Any) -> Result:
        """Run a blocking call in a thread; when the caller is cancelled, it stops at the next prompt or token."""
        return await in_cancellable_thread(call, *args)

    def stream(self, prompt: Prompt, role: Role = "final") -> Iterator[Piece]:
        """Yield the greedy answer to one prompt, token by token, then its usage and whether it was cut."""
        [encoded], _ = self._encode([prompt], role, self._writer.max_new_tokens)
        said = ""
        if self._encoder.frame.opened:
            yield self._encoder.frame.opened
        for piece in self._writer.pieces(encoded):
            if isinstance(piece, Ending):
                [usage] = self._usage([encoded], [said])
                yield Response.of("", replace(piece, usage=usage), truncated=encoded.truncated)
            else:
                said += piece
                yield piece

    async def astream(self, prompt: Prompt, role: Role = "final") -> AsyncIterator[Piece]:
        """`stream` in a thread."""
        pieces = self.stream(prompt, role)
        while (piece := await self.in_thread(next, pieces, None)) is not None:
            yield piece

    def open_session(self, prompts: Sequence[Prompt], no_retrieval: Prompt, max_new_tokens: int) -> DecodingSession:
        """Read all sources and the no-retrieval prompt as one batch of a shape that no passage controls."""
        self._encoder.refuse_reasoning()
        encoded, longest = self._encode([*prompts, no_retrieval], "isolated", max_new_tokens)
        room = max(max_new_tokens, sum(len(tokens) - 1 for tokens in self._abstentions))
        batch, isolation = self._reader.together(encoded, longest, room)
        return LocalSession(batch, encoded, self._abstentions, 0.0 if isolation.repeatable else 1.0)

    def _encode(self, prompts: Sequence[Prompt], role: Role, max_new_tokens: int) -> tuple[list[Encoded], list[int]]:
        """Encode prompts; return their tokens, and the most tokens that each could have had with any other passage.

        For isolated prompts that follows from the settings and the text around the passages, never from a passage.
        """
        frame, window = max(map(self._encoder.frame_length, prompts)), self._lm.window
        room = window - 1 - frame - max_new_tokens - max(map(len, self._abstentions))
        if room < (_SMALLEST_BUDGET if any(p.context is not None for p in prompts) else 0):
            raise ValueError(
                f"the query and instructions take {frame} tokens and the answer up to {max_new_tokens} of the model's "
                f"window of {window}; that leaves no room for passages: shorten the query or max_new_tokens"
            )
        budget = min(room, self._max_context_tokens) if role == "isolated" else room
        encoded = self._encoder.encode_all(prompts, budget)
        longest = [
            self._encoder.frame_length(p) + budget if role == "isolated" and p.context else len(e.ids)
            for p, e in zip(prompts, encoded, strict=True)
        ]
        return encoded, longest

    def _usage(self, prompts: Sequence[Encoded], texts: Sequence[str]) -> list[Usage]:
        """Count the tokens of prompts and of their answers as the tokenizer reads them, without the end tokens."""
        different = list(dict.fromkeys(texts))
        readable = [text.encode("utf-8", "replace").decode("utf-8") for text in different]
        counted = dict(zip(different, self._tokenizer(readable, add_special_tokens=False)["input_ids"], strict=True))
        return [Usage(len(p.ids), completion=len(counted[text])) for p, text in zip(prompts, texts, strict=True)]
