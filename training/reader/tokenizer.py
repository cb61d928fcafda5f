"""The reader's tokenizer: byte-level BPE in which a word costs the same wherever it stands.

A word after a line break gets the space that words within a line have, so that one name is one sequence of tokens
everywhere: a small model compares tokens, not spellings. Numbers are cut into pairs of digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from training.reader import wording
from training.reader.language import FILLERS, INJECTION, INJECTIONS, OVERVIEWS, RELATIONS
from training.reader.mixture import ROWS_PER_CHUNK, SMALL_CROWDS_FROM, training_row
from training.reader.names import WORDS, Namer

PAD, EOS = 0, 1
SPECIAL_TOKENS = ["<pad>", "</s>"]
_WORDS = r"\n| ?\p{L}+| ?\p{N}{1,2}| ?-{3,}| ?[^\s\p{L}\p{N}]|\s"
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['content'] }}{% if not loop.last %}{{ '\\n' }}{% endif %}{% endfor %}"
)


def _sentences() -> Iterator[str]:
    """Template words, often enough that each becomes one token."""
    rng = Random(0)
    for relation in RELATIONS:
        for sentence in (*relation.statements, *relation.questions):
            yield sentence.replace("{e}", "").replace("{v}", "") * 40
    for words in WORDS.values():
        for word in words:
            yield f" {word}" * 40
            yield f" {word.casefold()}" * 40
    for text in (*FILLERS, *OVERVIEWS, INJECTION, *INJECTIONS):
        yield f" {text}" * 40
    for said in (*wording.PROJECT.values(), wording.LANGCHAIN, wording.LLAMAINDEX):
        yield (said.before + said.between + said.after) * 40
    for _ in range(3000):
        said = wording.composed(rng)
        yield said.before + said.between + said.after


def _rows() -> Iterator[str]:
    for number in range(SMALL_CROWDS_FROM, SMALL_CROWDS_FROM + 20):
        namer = Namer(Random(f"-1/{number}"))
        for row in (training_row(namer, SMALL_CROWDS_FROM) for _ in range(ROWS_PER_CHUNK)):
            yield row.prefix
            for branch in row.branches:
                yield branch.tail + " " + branch.answer


def train_tokenizer(path: Path, vocabulary: int = 1536) -> Tokenizer:
    """Learn the tokenizer from training rows and write it to `path`."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Replace(Regex(r"\n(?=\S)"), "\n ")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Replace("\n ", "\n")])
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=SPECIAL_TOKENS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator((text for source in (_sentences(), _rows()) for text in source), trainer)
    path.parent.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(path))
    return tokenizer
