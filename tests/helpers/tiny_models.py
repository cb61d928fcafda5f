"""Random-weight transformers models of a few thousand parameters, with a tokenizer of their own."""

from __future__ import annotations

from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    Lfm2Config,
    Lfm2ForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from robustrag_integrations.prompts import prompts_for

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
    recipes: dict[str, tuple[type, type, dict[str, Any]]] = {
        "llama": (LlamaForCausalLM, LlamaConfig, llama),
        "mistral": (MistralForCausalLM, MistralConfig, {**llama, "sliding_window": 32}),
        "gpt2": (GPT2LMHeadModel, GPT2Config, gpt2),
        "neox": (GPTNeoXForCausalLM, GPTNeoXConfig, neox),
        "qwen3": (Qwen3ForCausalLM, Qwen3Config, {**llama, **mixed, "use_sliding_window": True}),
        "gemma2": (Gemma2ForCausalLM, Gemma2Config, {**llama, **mixed, **gemma}),
        "gemma3": (Gemma3ForCausalLM, Gemma3TextConfig, {**llama, **mixed, **gemma}),
        "phi3": (Phi3ForCausalLM, Phi3Config, {**llama, "sliding_window": 40}),
        "lfm2": (Lfm2ForCausalLM, Lfm2Config, {**llama, "layer_types": ["conv", "full_attention"]}),
    }
    model_class, config_class, settings = recipes[architecture]
    model = model_class(config_class(**{**common, **settings, **others}))
    return model.to(dtype).eval()


@torch.no_grad()
def let_logits_cancel(network: Any) -> None:
    """Give a tiny Llama output rows that cancel to all but noise, and twins of nearly the same logit."""
    network.model.embed_tokens.weight[:, 1] = network.model.embed_tokens.weight[:, 0]
    for layer in network.model.layers:
        for output in (layer.self_attn.o_proj.weight, layer.mlp.down_proj.weight):
            output[1] = output[0]
    head, push = network.lm_head.weight, 1e6 * torch.tensor([1.0, -1.0]).repeat(200)
    head[1::2] = head[::2] * 1.005
    head[:, 0] += push
    head[:, 1] -= push
