"""The bundled reader and the script that makes it.

Scores are asserted in aggregate and with a margin; the model card has the exact ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from robustrag_integrations.reader import reader_path
from robustrag_integrations.text.prompts import prompts_for

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from training.reader.batching import collate, pack  # noqa: E402
from training.reader.evaluate import LINES, Generator, score  # noqa: E402
from training.reader.mixture import chunk  # noqa: E402
from training.reader.model import ReaderConfig, to_transformers  # noqa: E402
from training.reader.tokenizer import train_tokenizer  # noqa: E402
from training.reader.train import TrainingSettings, new_model  # noqa: E402

DEMO = Path(__file__).parents[2] / "robustrag_integrations" / "evaluation" / "world"


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return transformers.AutoTokenizer.from_pretrained(reader_path())


@pytest.fixture(scope="module")
def generate() -> Generator:
    return Generator(reader_path())


@pytest.fixture(scope="module")
def tiny_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return train_tokenizer(tmp_path_factory.mktemp("tokenizer") / "tokenizer.json", vocabulary=600)


# Thresholds lie well below the scores of the model card: the samples are small.
@pytest.mark.parametrize(
    ("line", "cases", "least"),
    [
        ("answer present, 1-4 sentences", 30, 0.85),
        ("answer absent: abstains", 25, 0.85),
        ("unseen instructions, answer present", 25, 0.8),
        ("keyword prompt", 40, 0.75),
        ("multiple choice, answer present", 40, 0.85),
        ("vanilla, ten clean passages", 24, 0.8),
        ("vanilla hijacked by one injected passage", 24, 0.65),
        ("vanilla hijacked by one poisoned passage", 40, 0.3),
    ],
)
def test_the_shipped_reader_scores_as_its_card_says(generate: Generator, line: str, cases: int, least: float) -> None:
    [chosen] = [candidate for candidate in LINES if candidate.name == line]
    assert score(generate, chosen, cases).value >= least


@pytest.mark.parametrize("text", ["</s>", "<pad>", "a</s>b", "Text </s><pad></s>\n</s>", "<s>"])
def test_special_strings_in_a_passage_are_plain_text(tokenizer: Any, text: str) -> None:
    prompt = prompts_for("short_answer").isolated.render(context=text, query="Who?").text
    ids = tokenizer(prompt)["input_ids"]
    assert not set(ids) & set(tokenizer.all_special_ids)
    assert text in tokenizer.decode(ids)


@pytest.mark.parametrize("text", ["Ünïcode naïve 東京 🙂", "tabs\tand  spaces\n\n\nlines\r\n", "12345 1,200 15%", ""])
def test_any_text_survives_the_tokenizer(tokenizer: Any, text: str) -> None:
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_the_chat_template_gives_the_tokens_of_the_bare_prompt(tokenizer: Any) -> None:
    prompt = prompts_for("short_answer").isolated.render(context="</s> A tower.\n\nB.", query="Who?").text
    messages = [{"role": "user", "content": prompt}]
    templated = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)
    assert templated["input_ids"] == tokenizer(prompt)["input_ids"]


def test_the_training_model_computes_what_transformers_computes(tiny_tokenizer: Any) -> None:
    config = ReaderConfig(tiny_tokenizer.get_vocab_size(), width=96, layers=3, heads=4, feed_forward=64)
    model = new_model(config, TrainingSettings())
    llama = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=config.vocab_size, hidden_size=96, intermediate_size=64, num_hidden_layers=3,
            num_attention_heads=4, num_key_value_heads=4, rms_norm_eps=config.norm_eps, attention_bias=True,
            tie_word_embeddings=True, rope_parameters={"rope_type": "default", "rope_theta": config.rope_theta},
        )
    )  # fmt: skip
    llama.load_state_dict(to_transformers(model), strict=False)
    llama.tie_weights()
    [row] = pack(tiny_tokenizer, chunk(0, 0, rows=1))
    first, last = row.answers[0][1:]
    tokens = torch.tensor([[t for t, s in zip(row.tokens, row.segments, strict=True) if s < 2]])
    with torch.no_grad():
        mine = model.predictions(collate([row]))[: last - first]
        theirs = llama.eval()(tokens).logits[0, first:last]
    torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-3)
