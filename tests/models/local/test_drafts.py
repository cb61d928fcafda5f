"""Final answers verified from drafts: the text of plain decoding, in fewer forward passes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from robustrag_integrations import KeywordAggregation, LocalModel  # noqa: E402
from robustrag_integrations.defenses.keyword.settings import KeywordSettings  # noqa: E402
from robustrag_integrations.models.local import greedy  # noqa: E402
from robustrag_integrations.models.local.draft_shapes import MOST_NODES, has_same_bits  # noqa: E402
from robustrag_integrations.models.local.drafts import clear_leads  # noqa: E402
from robustrag_integrations.models.local.trie import TokenTrie  # noqa: E402
from robustrag_integrations.prompts import Prompt, prompts_for  # noqa: E402
from robustrag_integrations.replies.reading import CUT_MARK  # noqa: E402
from robustrag_integrations.replies.reply import Ending, Piece  # noqa: E402
from tests.helpers.tiny_models import let_logits_cancel, tiny_model, tiny_tokenizer  # noqa: E402
from tests.models.local.test_shared_prefixes import PASSAGES, QUERY, TOKENIZER, tokens_read  # noqa: E402

ARCHITECTURES = ["llama", "mistral", "qwen3", "gemma3", "gpt2"]
ROWS_MOVE_BITS = "rows of a step of 64 move each other's bits"
KEYWORDS = prompts_for("short_answer").keyword
assert KEYWORDS is not None
FINAL = KEYWORDS.render(keywords="Brevik, Tomas", query=QUERY)


def said_in(pieces: Iterator[Piece]) -> str:
    """The text of a stream, which ends with its tokens."""
    *text, ending = pieces
    assert isinstance(ending, Ending)
    assert ending.usage.prompt
    return "".join(map(str, text))


def local(network: Any = None, **changes: Any) -> LocalModel:
    return LocalModel(network or tiny_model("llama"), TOKENIZER, **{"max_new_tokens": 12, "stop": (), **changes})


def measured() -> LocalModel:
    """A model that has seen a draft: the noise of drafts is measured with the first one."""
    model = local()
    model.generate([drafted(FINAL, "a draft")], "final")
    return model


def drafted(prompt: Prompt, *texts: str) -> Prompt:
    return replace(prompt, drafts=texts)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_text_is_that_of_plain_decoding_whatever_the_drafts_say(architecture: str, dtype: Any) -> None:
    model = local(tiny_model(architecture, dtype=dtype))
    [plain] = model.generate([FINAL], "final")
    assert plain.text is not None
    half = plain.text[: len(plain.text) // 2]
    for texts in ([plain.text], [half], [half + " and more", "nonsense", plain.text], ["\n"], ["x" * 900, "</s>"]):
        [said] = model.generate([drafted(FINAL, *texts)], "final")
        assert said == plain
        assert said_in(model.stream(drafted(FINAL, *texts))) == plain.text


def test_a_draft_that_holds_saves_the_forward_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    model, steps = measured(), []
    with tokens_read(model) as slow:
        plain = model._ask_alone(FINAL, steps.append)
    said = [int(logits.argmax()) for logits in steps]
    monkeypatch.setattr(model._encoder, "answers", lambda texts, end="": [((9, 9), tuple(said))])
    with tokens_read(model) as fast:
        assert model.generate([drafted(FINAL, "a draft")], "final") == [plain]
    assert len(slow) == 12
    assert len(fast) == 1
    monkeypatch.setattr(model._encoder, "answers", lambda texts, end="": [((*said[:5], 9, 9),)])
    with tokens_read(model) as half:
        assert model.generate([drafted(FINAL, "a draft")], "final") == [plain]
    assert len(half) == 1 + (12 - 6)


def test_noise_is_measured_on_a_final_prompt_of_the_model_as_it_is() -> None:
    """Output rows that cancel to all but noise, and twins of nearly the same logit: the kernel decides between them."""
    network = tiny_model("llama")
    model = local(network)
    assert model.why_not_shared is None  # as seen on a stand-in, before the weights change
    let_logits_cancel(network)
    for words in ("Brevik, Tomas", "1871", "Sorra, Brevik", "a, b, c", "engineer, summer"):
        prompt = KEYWORDS.render(keywords=words, query=QUERY)
        [plain] = model.generate([prompt], "final")
        text = plain.text or ""
        for texts in ([text], [text[:5]], ["x y z"], [text[:9], text, "q"], ["word " * 12], [text + "!", text[:3]]):
            assert model.generate([drafted(prompt, *texts)], "final") == [plain]


@given(st.lists(st.text(alphabet="abTomas Brevik\n.é", max_size=30), max_size=4))
@settings(max_examples=15, deadline=None)
def test_hostile_drafts_change_nothing(texts: list[str]) -> None:
    model = local(max_new_tokens=5)
    assert model.generate([drafted(FINAL, *texts)], "final") == model.generate([FINAL], "final")


def test_a_token_without_a_clear_lead_is_decoded_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    model = measured()
    [plain] = model.generate([FINAL], "final")
    monkeypatch.setattr(greedy, "lead_needed", lambda noise: 1e9)  # nothing is clear
    prompt = drafted(FINAL, plain.text or "")
    with tokens_read(model) as read:
        assert model.generate([prompt], "final") == [plain]
    assert len(read) == 1 + 12
    assert said_in(model.stream(prompt)) == plain.text


def in_half_precision(network: Any, **settings: Any) -> LocalModel:
    """A model whose drafts have the bits of plain steps; skipped where a processor's kernels do not do that for it."""
    model = local(network, **settings)
    shapes = model._reader.lone_steps()
    assert shapes.why_not in (None, ROWS_MOVE_BITS)
    if not shapes.rows:
        pytest.skip(f"on this processor {shapes.why_not}")
    return model


def said_plainly(model: LocalModel) -> list[int]:
    logits: list[Any] = []
    model._ask_alone(FINAL, logits.append)
    return [int(step.argmax()) for step in logits]


def test_in_half_precision_drafts_that_hold_take_one_pass_behind_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    model = in_half_precision(tiny_model("llama", dtype=torch.bfloat16))
    [plain] = model.generate([FINAL], "final")
    said = said_plainly(model)
    for drafts, passes in (
        ([(9, 9), tuple(said)], 2),
        ([(*said[:5], 9, 9)], 2 + 12 - 6),
        ([(9, *said)], 12),
        ([tuple(said[:1])], 12),
    ):
        monkeypatch.setattr(model._encoder, "answers", lambda texts, end="", drafts=drafts: [tuple(drafts)])
        model.generate([drafted(FINAL, "a draft")], "final")  # the first with drafts tries them out
        with tokens_read(model) as read:
            assert model.generate([drafted(FINAL, "a draft")], "final") == [plain]
        assert len(read) == passes
    assert model.numerics["lone_steps"].endswith("with the same bits in each")


@pytest.mark.parametrize("architecture", [*ARCHITECTURES, "neox", "phi3"])
def test_in_half_precision_drafts_have_the_bits_of_plain_steps(architecture: str) -> None:
    odd = {} if architecture == "gpt2" else {"intermediate_size": 1541}  # from 1,536 on one row has other bits than two
    model = in_half_precision(tiny_model(architecture, dtype=torch.bfloat16, **odd))
    reader, shapes = model._reader, model._reader.lone_steps()
    for words in ("Brevik, Tomas", "1871", "Sorra " * 20):
        encoded = model._encode_final(KEYWORDS.render(keywords=words, query=QUERY))
        rows = [reader.drafted(encoded, most) for most in (3, 3, 30, 30)]
        assert all(rows)
        assert has_same_bits(*rows[:2], shapes, 3)  # type: ignore[arg-type]
        assert has_same_bits(*rows[2:], shapes, 30)  # type: ignore[arg-type]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_in_half_precision_the_text_is_that_of_plain_decoding_where_tokens_all_but_tie(architecture: str) -> None:
    network = tiny_model(architecture, dtype=torch.bfloat16)
    head = network.lm_head.weight
    with torch.no_grad():
        head[1::2] = head[::2]  # equal to the bit: the first is taken
        head[3::4] += head[3::4] * 2.0**-8  # and all but equal
    model = local(network)
    for words in ("Brevik, Tomas", "1871", "engineer, summer"):
        prompt = KEYWORDS.render(keywords=words, query=QUERY)
        [plain] = model.generate([prompt], "final")
        text = plain.text or ""
        for texts in ([text], [text[:5]], ["x y z"], [text[:9], text, "q"], [text + "!", text[:3]]):
            assert model.generate([drafted(prompt, *texts)], "final") == [plain]
            assert said_in(model.stream(drafted(prompt, *texts))) == text


def test_in_half_precision_a_model_whose_rows_have_to_do_with_each_other_has_no_drafts() -> None:
    network = tiny_model("llama", dtype=torch.bfloat16)
    network.lm_head.register_forward_hook(lambda module, args, out: out + out.mean(0, keepdim=True) * 2.0**-6)
    model = local(network)
    assert not model._reader.lone_steps().rows
    assert model.numerics["lone_steps"] == f"of one row: {ROWS_MOVE_BITS}"
    [plain] = model.generate([FINAL], "final")
    with tokens_read(model) as read:
        assert model.generate([drafted(FINAL, plain.text or "")], "final") == [plain]
    assert len(read) == 12


def test_in_half_precision_drafts_that_had_other_bits_once_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    model = in_half_precision(tiny_model("llama", dtype=torch.bfloat16))
    [plain] = model.generate([FINAL], "final")
    monkeypatch.setattr(greedy, "has_same_bits", lambda *args: False)
    for _ in range(2):
        with tokens_read(model) as read:
            assert model.generate([drafted(FINAL, plain.text or "")], "final") == [plain]
    assert len(read) == 12
    assert "are not used" in model.numerics["lone_steps"]


@pytest.mark.parametrize(("architecture", "dtype"), [("gemma2", torch.bfloat16), ("llama", torch.float16)])
def test_half_precision_does_without_drafts_where_they_are_of_no_use(architecture: str, dtype: Any) -> None:
    model = local(tiny_model(architecture, dtype=dtype))  # capped scores; a CPU's float16
    [plain] = model.generate([FINAL], "final")
    with tokens_read(model) as read:
        assert model.generate([drafted(FINAL, plain.text or "")], "final") == [plain]
    assert len(read) == 12
    assert model.numerics["lone_steps"].startswith("of one row: ")


@pytest.mark.parametrize("chat", [False, True])
def test_keyword_aggregation_verifies_its_answer_from_the_isolated_ones(chat: bool) -> None:
    network, tokenizer = tiny_model("llama"), tiny_tokenizer(chat=chat)
    stop = None if chat else ["\n\n"]
    model = LocalModel(network, tokenizer, max_new_tokens=6, max_context_tokens=64, stop=stop, chat=chat)
    passages = [PASSAGES[0]] * 3
    defense = KeywordAggregation(
        model, extractor=lambda text: set(text.split()), abstention=lambda text: False, cut_replies="count"
    )
    with tokens_read(model):
        answer = defense.answer(QUERY, passages)
    keywords = KeywordSettings.of(extractor=lambda text: set(text.split()))
    [plain] = model.generate([keywords.final_prompt(QUERY, answer.evidence["retained"])], "final")
    assert answer.text.removesuffix(CUT_MARK) == (plain.text or "").strip()
    stream = defense.stream(QUERY, passages)
    assert "".join(stream) == answer.text


def test_the_first_piece_comes_before_anything_else_is_computed() -> None:
    model = measured()
    [plain] = model.generate([FINAL], "final")
    for prompt in (FINAL, drafted(FINAL, plain.text or "")):
        with tokens_read(model) as read:
            stream = model.stream(prompt)
            assert next(stream)
            assert len(read) <= 2  # one word may be two tokens
            stream.close()


def test_a_trie_holds_common_beginnings_once_and_keeps_within_its_size() -> None:
    trie = TokenTrie([(1, 2, 3), (1, 2, 4), (5,)])
    assert trie.tokens == [1, 2, 3, 4, 5]
    assert trie.depths == [0, 1, 2, 2, 0]
    assert trie.path((1, 2, 4)) == [0, 1, 3]
    assert trie.child(0, 9) is None
    seen = trie.visible(2).int().tolist()
    assert seen[:2] == [[0] * 5] * 2
    assert seen[5] == [1, 1, 0, 1, 0]  # the 4: its ancestors and itself, not the 3
    assert seen[6] == [0, 0, 0, 0, 1]
    assert trie.lines() == [(0,), (0, 1), (0, 1, 2), (0, 1, 3), (4,)]
    below = trie.below(1)
    assert (below.tokens, below.depths, below.lines()) == ([2, 3, 4], [0, 1, 1], [(0,), (0, 1), (0, 2)])
    trie.add(range(10, 500), MOST_NODES)
    assert len(trie) == MOST_NODES


def test_no_token_stands_beside_logits_that_are_no_numbers() -> None:
    rows = torch.tensor([[3.0, 1.0, 0.0]]).repeat(4, 1)
    rows[1, 0], rows[2, 2], rows[3, 1] = torch.inf, -torch.inf, torch.nan
    assert clear_leads(rows, 0.1) == [True, False, False, False]
