"""Random models, and questions whose parts have exact lengths in tokens, as every word is one token."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

from robustrag_integrations.text.prompts import PromptSet, PromptTemplate

VOCABULARY = 32_000
SIZES = ("tiny", "125m", "7b")
_ABSTENTION_WORDS = ("I", "don't", "know")


@dataclass(frozen=True)
class Scene:
    """The size of a question, in tokens but for `sources`.

    Attributes:
        sources: passages, a source each.
        passage: tokens of a passage.
        query: tokens of the question.
        prefix: tokens of instruction and exemplars.
    """

    sources: int = 10
    passage: int = 100
    query: int = 40
    prefix: int = 400

    def prompts(self, *, query_first: bool = False) -> PromptSet:
        """Return prompts whose instruction and exemplars have `prefix` tokens."""
        order = "{query} {context}" if query_first else "{context} {query}"
        start = _words(self.prefix, seed=1) + " "
        return PromptSet(
            isolated=PromptTemplate(start, order, ("context", "query")),
            no_retrieval=PromptTemplate(_words(8, seed=2) + " ", "{query}", ("query",)),
            keyword=PromptTemplate(start, "{keywords} {query}", ("keywords", "query")),
        )

    def question(self, seed: int = 0) -> str:
        """Return a question."""
        return _words(self.query, seed=100 + seed)

    def passages(self, seed: int = 0) -> list[str]:
        """Return passages that are all different."""
        return [_words(self.passage, seed=1000 + 1000 * seed + i) for i in range(self.sources)]

    def smaller(self, **changes: int) -> Scene:
        """Return the same scene with other sizes."""
        return replace(self, **changes)


def _words(count: int, seed: int) -> str:
    chosen = random.Random(seed)
    return " ".join(f"w{chosen.randrange(VOCABULARY - 10)}" for _ in range(count))


def word_tokenizer(vocabulary: int = VOCABULARY) -> Any:
    """Return a tokenizer with one token per word and no end token: answers have full length."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    unknown = "<unk>"
    words = [unknown, *_ABSTENTION_WORDS]
    words += [f"w{i}" for i in range(vocabulary - len(words))]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token=unknown))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token=unknown)


def random_llama(size: str, device: str) -> Any:
    """Return a model with random weights: `tiny`, `125m` (float32) or `7b` (the shape of Mistral 7B, bfloat16)."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    shapes: dict[str, dict[str, int]] = {
        "tiny": {"hidden_size": 128, "intermediate_size": 344, "num_hidden_layers": 4, "num_attention_heads": 4},
        "125m": {"hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": 12, "num_attention_heads": 12},
        "7b": {
            "hidden_size": 4096,
            "intermediate_size": 14336,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
        },
    }
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        max_position_embeddings=32_768,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
        **shapes[size],  # type: ignore[arg-type]
    )
    torch.manual_seed(0)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16 if size == "7b" else torch.float32)
    try:
        with torch.device(device):
            return LlamaForCausalLM(config).eval()
    finally:
        torch.set_default_dtype(before)
