"""Train the bundled reader: `python -m training.reader.train --out FOLDER`.

`--start MODEL` begins with an exported reader, and with the last stretch of training, instead of from scratch.

The same seed and number of steps give the same weights on the same machine and number of threads, whether or not the
run was interrupted: data depend on the seed and the step only, and a checkpoint holds everything else.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from tqdm import tqdm

from training.reader import circuits
from training.reader.batching import PackedRow, batches, collate, pack
from training.reader.crowds import crowd_row
from training.reader.mixture import ROWS_PER_CHUNK, WRITTEN_FROM, chunk, spelled
from training.reader.model import Batch, Reader, ReaderConfig, read_exported
from training.reader.names import Namer
from training.reader.optimiser import ReaderOptimiser
from training.reader.rows import Row, keyword_row, reading_row
from training.reader.tokenizer import train_tokenizer


@dataclass(frozen=True)
class TrainingSettings:
    """How to train.

    Attributes:
        steps: number of updates.
        seed: of weights and data.
        batch_tokens: tokens per update, padding included.
        rate: highest learning rate.
        warmup: steps over which the rate rises to its highest value.
        cooldown: steps over which it falls to zero, just before the polish.
        polish: steps after that, on what is still weak.
        polish_rate: the rate from which these fall to zero.
        finish: steps after that, on many wordings of the instructions.
        finish_rate: the rate from which these fall to zero.
        written: steps at the very end, on keywords as they were written.
        written_rate: the rate from which these fall to zero, once it has risen to it.
        checkpoint_every: steps between checkpoints.
        rows_per_chunk: rows generated at a time.
        circuits: start with hand-made heads.
    """

    steps: int = 10500
    seed: int = 0
    batch_tokens: int = 3072
    rate: float = 4e-3
    warmup: int = 60
    cooldown: int = 1900
    polish: int = 5100
    polish_rate: float = 2.4e-3
    finish: int = 500
    finish_rate: float = 1e-3
    written: int = 1000
    written_rate: float = 1e-3
    checkpoint_every: int = 200
    rows_per_chunk: int = ROWS_PER_CHUNK
    circuits: bool = True

    def rate_at(self, step: int) -> float:
        """Learning rate of a step."""
        finished = self.steps - self.written
        polished = finished - self.finish
        main = polished - self.polish
        if step >= finished:
            return self.written_rate * min((step - finished + 1) / self.warmup, (self.steps - step) / self.written)
        if step >= polished:
            return self.finish_rate * (finished - step) / self.finish
        if step >= main:
            return self.polish_rate * (polished - step) / self.polish
        return self.rate * min(1.0, (step + 1) / self.warmup, (main - step) / self.cooldown)


@dataclass
class Stream:
    """Endless batches; `chunk_number` and `used` say how far it has been read."""

    tokenizer: Tokenizer
    settings: TrainingSettings
    chunk_number: int = 0
    used: int = 0

    def __iter__(self) -> Iterator[list[PackedRow]]:
        while True:
            seed = self.settings.seed
            rows = pack(self.tokenizer, chunk(seed, self.chunk_number, self.settings.rows_per_chunk))
            made = batches(rows, self.settings.batch_tokens, Random(f"{seed}/{self.chunk_number}/order"))
            for batch in made[self.used :]:
                self.used += 1
                yield batch
            self.chunk_number, self.used = self.chunk_number + 1, 0


def new_model(config: ReaderConfig, settings: TrainingSettings) -> Reader:
    """A freshly initialised reader."""
    torch.manual_seed(settings.seed)
    model = Reader(config)
    if settings.circuits:
        circuits.install(model)
    return model


def answer_loss(model: Reader, batch: Batch) -> torch.Tensor:
    """Mean cross-entropy of the answers' tokens."""
    return F.cross_entropy(model.predictions(batch).float(), batch.targets)


def held_out_rows(tokenizer: Tokenizer) -> list[PackedRow]:
    """A small fixed set on held-out names, to watch training by."""
    namer = Namer(Random("watch"), held_out=True)
    rows = [reading_row(namer) for _ in range(60)] + [keyword_row(namer) for _ in range(10)]
    rows += [crowd_row(namer, large) for large in (False, True) for _ in range(20)]
    return pack(tokenizer, [Row(row.prefix, [spelled(branch) for branch in row.branches]) for row in rows])


@torch.no_grad()
def exact_answers(model: Reader, rows: list[PackedRow], device: torch.device) -> dict[str, float]:
    """Share of answers whose every token is the most likely one, by task."""
    right: dict[str, list[bool]] = defaultdict(list)
    for source in batches(rows, 8192, Random(0)):
        batch = collate(source).to(device)
        hits = iter((model.predictions(batch).argmax(-1) == batch.targets).tolist())
        for row in source:
            for task, first, last in row.answers:
                tokens_right = [next(hits) for _ in range(first, last)]
                right[task].append(all(tokens_right))
    return {task: round(sum(hits) / len(hits), 3) for task, hits in sorted(right.items())}


def train(
    config: ReaderConfig,
    settings: TrainingSettings,
    tokenizer: Tokenizer,
    out: Path,
    device: torch.device,
    *,
    start: Mapping[str, torch.Tensor] | None = None,
    stop_after: int | None = None,
    watch: bool = True,
) -> Reader:
    """Train, or continue from the checkpoint in `out`.

    Args:
        config: the model's shape.
        settings: how to train.
        tokenizer: the reader's tokenizer.
        out: folder of the checkpoint and of `log.jsonl`.
        device: where to compute.
        start: weights to begin the last stretch with; None trains from scratch.
        stop_after: stop at this step, to be continued another time.
        watch: score held-out names at every checkpoint.
    """
    model = new_model(config, settings).to(device)
    optimiser = ReaderOptimiser(model)
    stream = Stream(tokenizer, settings)
    checkpoint, first = out / "checkpoint.pt", 0
    if checkpoint.exists():
        saved = torch.load(checkpoint, map_location=device, weights_only=True)
        model.load_state_dict(saved["model"])
        optimiser.restore(saved["optimiser"])
        first, stream.chunk_number, stream.used = saved["step"], saved["chunk_number"], saved["used"]
    elif start is not None:
        model.load_state_dict(start)
        first, stream.chunk_number = settings.steps - settings.written, WRITTEN_FROM
    watched = held_out_rows(tokenizer) if watch else []
    losses: list[float] = []
    last = min(settings.steps, stop_after or settings.steps)
    bar = tqdm(range(first, last), initial=first, total=settings.steps, unit="step", mininterval=5)
    for step, rows in zip(bar, stream, strict=False):
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            loss = answer_loss(model, collate(rows).to(device))
        torch.autograd.backward(loss)
        optimiser.step(settings.rate_at(step))
        losses.append(loss.item())
        if (step + 1) % settings.checkpoint_every == 0 or step + 1 == last:
            report = {"step": step + 1, "loss": sum(losses) / len(losses), **exact_answers(model, watched, device)}
            losses.clear()
            bar.set_postfix(loss=f"{report['loss']:.3f}")
            with (out / "log.jsonl").open("a") as log:
                log.write(json.dumps(report) + "\n")
            _save(checkpoint, model, optimiser, step + 1, stream)
    return model


def _save(path: Path, model: Reader, optimiser: ReaderOptimiser, step: int, stream: Stream) -> None:
    state = {"model": model.state_dict(), "optimiser": optimiser.state(), "step": step}
    state |= {"chunk_number": stream.chunk_number, "used": stream.used}
    torch.save(state, path.with_suffix(".new"))
    path.with_suffix(".new").replace(path)


def main() -> None:
    """The command line."""
    defaults = TrainingSettings()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for checkpoint, log and tokenizer")
    parser.add_argument("--start", type=Path, help="an exported reader to continue from, with its tokenizer")
    parser.add_argument("--seed", type=int, default=defaults.seed)
    parser.add_argument("--steps", type=int, default=defaults.steps)
    parser.add_argument("--cooldown", type=int, default=defaults.cooldown, help="steps over which the rate falls to 0")
    parser.add_argument("--batch-tokens", type=int, default=defaults.batch_tokens)
    parser.add_argument("--rate", type=float, default=defaults.rate)
    parser.add_argument("--width", type=int, default=192)
    parser.add_argument("--layers", type=int, default=5)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--feed-forward", type=int, default=384)
    parser.add_argument("--plain", action="store_true", help="start without hand-made heads")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads; 0 leaves the choice to torch")
    chosen = parser.parse_args()
    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    tokenizer_file = chosen.out / "tokenizer.json"
    if chosen.start and not tokenizer_file.exists():
        chosen.out.mkdir(parents=True, exist_ok=True)
        shutil.copy(chosen.start / "tokenizer.json", tokenizer_file)
    elif not tokenizer_file.exists():
        train_tokenizer(tokenizer_file)
    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    settings = TrainingSettings(
        steps=chosen.steps,
        seed=chosen.seed,
        batch_tokens=chosen.batch_tokens,
        rate=chosen.rate,
        cooldown=chosen.cooldown,
        circuits=not chosen.plain,
    )
    config = ReaderConfig(
        tokenizer.get_vocab_size(),
        width=chosen.width,
        layers=chosen.layers,
        heads=chosen.heads,
        feed_forward=chosen.feed_forward,
    )
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    start = read_exported(chosen.start) if chosen.start else None
    train(config, settings, tokenizer, chosen.out, device, start=start)


if __name__ == "__main__":
    main()
