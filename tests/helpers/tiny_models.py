"""Random-weight transformers models of a few thousand parameters, with a tokenizer of their own."""

from __future__ import annotations

from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

from robustrag_integrations.text.prompts import prompts_for

CHAT_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}</s>\n{% endfor %}<|assistant|>\n"
)


def tiny_tokenizer(*, chat: bool = False) -> PreTrainedTokenizerFast:
    """Byte-level BPE over the project's prompts; BOS in front."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<pad>", "<s>", "</s>", "<|user|>", "<|assistant|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    sets = [prompts_for("short_answer"), prompts_for("long_form")]
    texts = [t.instruction + t.body for s in sets for t in (s.isolated, s.no_retrieval)]
    tokenizer.train_from_iterator([*texts, " I don't know"] * 5, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        extra_special_tokens=["<|user|>", "<|assistant|>"],
        chat_template=CHAT_TEMPLATE if chat else None,
    )


def tiny_model(architecture: str, *, dtype: torch.dtype = torch.float32, window: int = 1024, **others: Any) -> Any:
    """A random model whose distributions are peaked enough to differ between prompts; `others` go to its config."""
    torch.manual_seed(0)
    common: dict[str, Any] = {"vocab_size": 400, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    llama = {
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": window,
        "initializer_range": 0.35,
    }
    gpt2 = {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": window, "initializer_range": 0.35}
    neox = {k: v for k, v in llama.items() if k != "num_key_value_heads"}
    mixed = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 24, "head_dim": 16}
    gemma = {"query_pre_attn_scalar": 16, "initializer_range": 0.1}
    recipes: dict[str, dict[str, Any]] = {
        "llama": llama,
        "mistral": {**llama, "sliding_window": 32},
        "gpt2": gpt2,
        "gpt_neox": neox,
        "qwen3": {**llama, **mixed, "use_sliding_window": True},
        "gemma2": {**llama, **mixed, **gemma},
        "gemma3_text": {**llama, **mixed, **gemma},
        "phi3": {**llama, "sliding_window": 40},
        "lfm2": {**llama, "layer_types": ["conv", "full_attention"]},
    }
    config = AutoConfig.for_model(architecture, **{**common, **recipes[architecture], **others})
    return AutoModelForCausalLM.from_config(config).to(dtype).eval()
