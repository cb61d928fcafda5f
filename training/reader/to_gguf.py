"""The bundled reader as GGUF, for llama.cpp: `python training/reader/to_gguf.py --out reader.gguf` (needs gguf, numpy).

llama.cpp has no pre-tokenizer like the reader's, which takes digits in twos. With GPT-2's, it reads what has no number
of three digits or more as the reader's tokenizer does; `RemoteDecodingModel` compares the counts of tokens and says so
where they differ.
"""

from __future__ import annotations

import argparse
import json
import struct
from pathlib import Path
from typing import Any

import gguf
import numpy as np

READER = Path(__file__).parents[2] / "robustrag_integrations" / "reader" / "model"
_NAMES = {
    "input_layernorm.weight": "attn_norm.weight",
    "post_attention_layernorm.weight": "ffn_norm.weight",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def convert(folder: Path, out: Path) -> None:
    """Write the model in this folder as one file, in single precision."""
    config = json.loads((folder / "config.json").read_text())
    heads = config["num_attention_heads"]
    writer = gguf.GGUFWriter(out, "llama")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    _add_tokenizer(writer, json.loads((folder / "tokenizer.json").read_text()), config)
    for name, tensor in weights(folder / "model.safetensors").items():
        writer.add_tensor(_named(name), _arranged(name, tensor.astype(np.float32), heads))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def weights(file: Path) -> dict[str, np.ndarray[Any, Any]]:
    """The float16 tensors of a safetensors file, by name."""
    data = file.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    header.pop("__metadata__", None)
    return {
        name: np.frombuffer(body[slice(*about["data_offsets"])], np.float16).reshape(about["shape"])
        for name, about in header.items()
    }


def _add_tokenizer(writer: Any, tokenizer: Any, config: Any) -> None:
    vocabulary: dict[str, int] = tokenizer["model"]["vocab"]
    special = {token["id"] for token in tokenizer["added_tokens"]}
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    kinds = [gguf.TokenType.CONTROL if i in special else gguf.TokenType.NORMAL for i in range(len(tokens))]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges([" ".join(pair) for pair in tokenizer["model"]["merges"]])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_pad_token_id(config["pad_token_id"])
    writer.add_add_bos_token(False)


def _named(name: str) -> str:
    name = name.removeprefix("model.")
    if not name.startswith("layers."):
        return {"embed_tokens.weight": "token_embd.weight", "norm.weight": "output_norm.weight"}[name]
    _, block, rest = name.split(".", 2)
    [theirs] = [rest.replace(ours, new) for ours, new in _NAMES.items() if rest.startswith(ours)]
    return f"blk.{block}.{theirs}"


def _arranged(name: str, tensor: np.ndarray[Any, Any], heads: int) -> np.ndarray[Any, Any]:
    """Queries and keys in llama.cpp's order: it turns neighbours, where transformers turns the halves of a head."""
    if ".q_proj." not in name and ".k_proj." not in name:
        return tensor
    halves = tensor.reshape(heads, 2, tensor.shape[0] // heads // 2, *tensor.shape[1:])
    return halves.swapaxes(1, 2).reshape(tensor.shape)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=READER, help="folder of the model (default: the bundled reader)")
    parser.add_argument("--out", type=Path, required=True, help="file to write")
    chosen = parser.parse_args()
    convert(chosen.model, chosen.out)
