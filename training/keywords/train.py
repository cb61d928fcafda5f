"""Train the keyword pipeline that ships with the package: parts of speech and lemmas, from UD English-EWT.

    python training/keywords/train.py --data ../shared/data --out robustrag_integrations/text/pipeline

About a quarter of an hour on one core; the same seed gives the same weights. README.md and NOTICE.md in
the output folder are kept.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import spacy
from augment import AugmentationRates, augmented
from corpus import Sentence, read_conllu, to_example
from evaluate import gold_token_scores
from spacy.language import Language
from spacy.training import Example
from spacy.training.batchers import minibatch_by_words
from spacy.util import fix_random_seed, load_config, registry
from thinc.api import Optimizer
from tqdm import tqdm

NAME = "robustrag-keywords"
VERSION = "1.0.0"


@dataclass(frozen=True)
class TrainingSettings:
    """Hyperparameters of one run."""

    epochs: int = 12
    words_per_batch: int = 500
    dropout: float = 0.15
    learn_rate: float = 0.003
    warmup_steps: int = 250
    seed: int = 0


def build(examples: Sequence[Example]) -> Language:
    """Return an initialised, untrained pipeline whose labels are those of the examples."""
    config = load_config(Path(__file__).with_name("config.cfg"))
    nlp = spacy.util.load_model_from_config(config, auto_fill=True)
    nlp.meta.update(
        name=NAME,
        version=VERSION,
        description="Parts of speech and lemmas for keyword extraction.",
        license="CC BY-SA 4.0",
        sources=[{"name": "UD English-EWT", "url": "https://github.com/UniversalDependencies/UD_English-EWT"}],
    )
    nlp.initialize(lambda: examples)
    return nlp


def optimizer_for(settings: TrainingSettings, steps: int) -> Optimizer:
    """Return Adam with averaged weights and a linear schedule with warm-up over all steps."""
    schedule = {
        "@schedules": "warmup_linear.v1",
        "initial_rate": settings.learn_rate,
        "warmup_steps": settings.warmup_steps,
        "total_steps": steps,
    }
    adam = {"@optimizers": "Adam.v1", "learn_rate": schedule, "L2": 0.01, "grad_clip": 1.0, "use_averages": True}
    return registry.resolve({"optimizer": adam})["optimizer"]


def batches(examples: Sequence[Example], settings: TrainingSettings, epoch: int) -> Iterator[list[Example]]:
    """Yield the examples of one epoch, shuffled by seed and epoch, in batches of about equally many words."""
    order = list(examples)
    random.Random(f"{settings.seed}/{epoch}").shuffle(order)
    return minibatch_by_words(order, size=settings.words_per_batch, tolerance=0.2)


def fit(nlp: Language, examples: Sequence[Example], dev: Sequence[Sentence], settings: TrainingSettings) -> None:
    """Train the pipeline in place and leave it with the averaged weights."""
    per_epoch = sum(1 for _ in batches(examples, settings, 0))
    optimizer = optimizer_for(settings, per_epoch * settings.epochs)
    for epoch in range(settings.epochs):
        losses: dict[str, float] = {}
        for batch in tqdm(
            batches(examples, settings, epoch), f"epoch {epoch + 1}/{settings.epochs}", per_epoch, mininterval=2
        ):
            fresh = [Example(example.predicted.copy(), example.reference) for example in batch]
            nlp.update(fresh, drop=settings.dropout, sgd=optimizer, losses=losses)
            optimizer.step_schedules()
        with nlp.use_params(optimizer.averages):
            tqdm.write(f"epoch {epoch + 1}: dev {gold_token_scores(nlp, dev)}")
    _keep_averages(nlp, optimizer)


def _keep_averages(nlp: Language, optimizer: Optimizer) -> None:
    """Write the averaged weights into the model (use_params would undo them on leaving)."""
    for _, component in nlp.pipeline:
        for node in component.model.walk():
            for name in node.param_names:
                key = (node.id, name)
                if node.has_param(name) and key in optimizer.averages:
                    node.set_param(name, optimizer.averages[key])


def save(nlp: Language, folder: Path) -> None:
    """Write the pipeline without the words of the corpus; Markdown files in the folder stay."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        if old.is_dir():
            shutil.rmtree(old)
        elif old.suffix != ".md":
            old.unlink()
    nlp.to_disk(folder)
    # The models hash what they read: only the lemmatizer looks strings up again. The corpus' words are dead weight.
    trees = nlp.get_pipe("trainable_lemmatizer").trees
    nodes = [trees[number] for number in range(len(trees))]
    hashes = {node[key] for node in nodes for key in ("orig", "subst") if key in node}
    needed = {nlp.vocab.strings[h] for h in hashes} | set(nlp.get_pipe("morphologizer").labels)
    (folder / "vocab" / "strings.json").write_text(json.dumps(sorted(needed), ensure_ascii=False), encoding="utf-8")


def main() -> None:
    """Read the corpus, train, report on the development set at every epoch, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with ewt-{train,dev}.conllu.gz")
    parser.add_argument("--out", type=Path, required=True, help="folder to write the pipeline to")
    parser.add_argument("--epochs", type=int, default=TrainingSettings.epochs)
    parser.add_argument("--seed", type=int, default=TrainingSettings.seed)
    arguments = parser.parse_args()
    settings = replace(TrainingSettings(), epochs=arguments.epochs, seed=arguments.seed)
    fix_random_seed(settings.seed)

    train = list(read_conllu(arguments.data / "ewt-train.conllu.gz"))
    dev = list(read_conllu(arguments.data / "ewt-dev.conllu.gz"))
    everything = list(augmented(train, AugmentationRates(), settings.seed))
    vocab = spacy.blank("en").vocab
    nlp = build([to_example(vocab, sentence) for sentence in everything])
    examples = [to_example(nlp.vocab, sentence) for sentence in everything]
    print(f"{len(train)} sentences, {len(everything)} with variants, {sum(map(len, everything))} words")
    fit(nlp, examples, dev, settings)
    save(nlp, arguments.out)
    print(f"wrote {arguments.out}; read again: dev {gold_token_scores(spacy.load(arguments.out), dev)}")


if __name__ == "__main__":
    main()
