"""The dry run counts what passes of the 7B shape cost, and derives time from that."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from benchmarks.dry_run import BYTES_PER_SECOND, DerivedClock, Part, Shape  # noqa: E402
from benchmarks.workload import Scene, local_model, random_llama, word_tokenizer  # noqa: E402


def test_the_flops_of_a_pass_are_those_that_torch_counts_on_meta() -> None:
    network = random_llama("7b", "meta")
    ids = torch.zeros((3, 64), dtype=torch.long, device="meta")
    mask = torch.zeros((3, 1, 64, 64), dtype=torch.bfloat16, device="meta")
    with FlopCounterMode(display=False) as counted, torch.no_grad():
        network(input_ids=ids, attention_mask=mask, position_ids=ids, use_cache=False, logits_to_keep=1)
    assert Shape.of(network).flops([Part(3, 64, 64)], 3) == pytest.approx(counted.get_total_flops(), rel=0.01)


def test_the_sizes_are_those_of_mistral_7b() -> None:
    shape = Shape.of(random_llama("7b", "meta"))
    assert shape.kv_bytes == 128 * 1024
    assert 14e9 < shape.bytes < 14.6e9


def test_a_decoding_step_is_charged_for_the_weights_and_what_it_attends_to() -> None:
    clock, scene = DerivedClock("cpu"), Scene(groups=3, passage=10, query=4, prefix=40)
    network = random_llama("tiny", "cpu")
    clock.watch(network)
    model, prompts = local_model(network, word_tokenizer(), scene, tokens=4), scene.prompts()
    isolated = [prompts.isolated.render(context=p, query=scene.question()) for p in scene.passages()]
    session = model.open_session(isolated, prompts.no_retrieval.render(query=scene.question()), 4)
    before, passes = clock.read(), clock.tally.passes
    session.append(5)
    assert clock.tally.passes == passes + 1
    weights = clock.shape.bytes / BYTES_PER_SECOND
    assert weights < clock.read() - before < 1.02 * weights
    assert "derived for the 7B shape in bfloat16 on an H200, not measured" in clock.in_words()
