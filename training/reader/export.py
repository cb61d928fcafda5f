"""Turn a checkpoint into a model folder: `python -m training.reader.export --run RUN --out FOLDER`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch

from training.reader.model import Reader, ReaderConfig, to_transformers
from training.reader.tokenizer import CHAT_TEMPLATE, EOS, PAD, SPECIAL_TOKENS


def config_of(weights: dict[str, torch.Tensor], heads: int) -> ReaderConfig:
    """The shape of a model, read from its weights."""
    vocabulary, width = weights["embedding"].shape
    layers = sum(name.endswith(".down") for name in weights)
    return ReaderConfig(
        vocab_size=vocabulary, width=width, layers=layers, heads=heads, feed_forward=weights["blocks.0.down"].shape[1]
    )


def export(model: Reader, tokenizer_file: Path, out: Path) -> None:
    """Write model (half precision) and tokenizer in the `transformers` format."""
    import transformers
    from transformers import LlamaConfig, LlamaForCausalLM

    untyped: Any = transformers

    c = model.config
    config = LlamaConfig(
        vocab_size=c.vocab_size,
        hidden_size=c.width,
        intermediate_size=c.feed_forward,
        num_hidden_layers=c.layers,
        num_attention_heads=c.heads,
        num_key_value_heads=c.heads,
        max_position_embeddings=c.max_positions,
        rms_norm_eps=c.norm_eps,
        rope_parameters={"rope_type": "default", "rope_theta": c.rope_theta},
        attention_bias=True,
        tie_word_embeddings=True,
        pad_token_id=PAD,
        bos_token_id=None,
        eos_token_id=EOS,
    )
    llama: Any = LlamaForCausalLM(config)
    missing, unexpected = llama.load_state_dict(to_transformers(model), strict=False)
    if unexpected or set(missing) - {"lm_head.weight"}:
        raise RuntimeError(f"weights do not fit: missing {missing}, unexpected {unexpected}")
    llama.tie_weights()
    llama.generation_config = untyped.GenerationConfig(
        pad_token_id=PAD, eos_token_id=EOS, do_sample=False, max_new_tokens=64
    )
    llama.to(torch.float16).save_pretrained(out)
    written = json.loads((out / "config.json").read_text())
    written["rope_theta"] = c.rope_theta  # where other programs look for it (mlx-lm); they would take 10,000
    (out / "config.json").write_text(json.dumps(written, indent=2) + "\n")
    tokenizer = untyped.PreTrainedTokenizerFast(
        tokenizer_file=str(tokenizer_file),
        pad_token=SPECIAL_TOKENS[PAD],
        eos_token=SPECIAL_TOKENS[EOS],
        padding_side="left",
        model_max_length=c.max_positions,
        split_special_tokens=True,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    tokenizer.save_pretrained(out, save_jinja_files=False)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True, help="folder given to training as --out")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--heads", type=int, default=ReaderConfig.heads)
    chosen = parser.parse_args()
    weights = torch.load(chosen.run / "checkpoint.pt", map_location="cpu", weights_only=True)["model"]
    model = Reader(config_of(weights, chosen.heads))
    model.load_state_dict(weights)
    export(model, chosen.run / "tokenizer.json", chosen.out)


if __name__ == "__main__":
    main()
