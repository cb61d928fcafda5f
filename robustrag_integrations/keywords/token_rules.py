"""spaCy's tokenizer as a function: the same tokens, with nothing that is filled while it reads.

spaCy keeps every word in a vocabulary that all threads share, so that they have to take turns. Here the rules of a
tokenizer are followed step by step on the text alone (`spacy.tokenizer`: `_tokenize_affixes`, `_split_affixes`,
`_attach_tokens` and `_apply_special_cases`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

_SPANS = re.compile(r"\s+|\S+")
_KEPT_SPANS = 4096
_LONGEST_KEPT = 32  # characters
_ORTH, _NORM = 65, 67  # spaCy's numbers of what a rule says of a token
_WHOLE = ("token_match", "url_match")


class Token(NamedTuple):
    """A token and the norm that a special case gives it; None for the one that it has by itself."""

    text: str
    norm: str | None = None


class TokenRules:
    """The rules of one spaCy tokenizer, read once; may be asked from any number of threads at a time.

    Args:
        tokenizer: the rules, as spaCy writes them.
    """

    def __init__(self, tokenizer: Mapping[str, Any]) -> None:
        self._rules = {
            chunk: tuple(Token(spec[_ORTH], spec.get(_NORM)) for spec in substrings)
            for chunk, substrings in tokenizer["exceptions"].items()
        }
        self._prefix, self._suffix = (_length_found(tokenizer[name]) for name in ("prefix_search", "suffix_search"))
        self._infixes = re.compile(tokenizer["infix_finditer"]).finditer
        self._stays, url = (pattern and re.compile(pattern).match for pattern in map(tokenizer.get, _WHOLE))
        self._whole = [match for match in (self._stays, url) if match]
        self._tokens_of = lru_cache(_KEPT_SPANS)(self._read)
        self._phrases = self._phrases_to_find(faster=tokenizer["faster_heuristics"])
        within_blanks = (chunk for chunk in self._rules if any(map(str.isspace, chunk)) and not chunk.isspace())
        self._across = frozenset(self._split(chunk, special_cases=False)[0].text for chunk in within_blanks)

    def tokens(self, line: str) -> list[tuple[Token, int]]:
        """Return the tokens of a line and where each begins, spaces among them as spaCy has them."""
        found: list[tuple[Token, int]] = []
        with_phrases = False
        for span, start in _spans(line):
            tokens, holds_a_phrase = self._tokens_of(span) if len(span) <= _LONGEST_KEPT else self._read(span)
            with_phrases = with_phrases or holds_a_phrase
            for token in tokens:
                found.append((token, start))
                start += len(token[0])
        return self._with_phrases(found, line) if with_phrases else found

    def _read(self, span: str) -> tuple[tuple[Token, ...], bool]:
        """The tokens of a stretch without blanks, or of blanks, and whether it may hold a phrase.

        One with a blank between its characters may stand in several stretches: its first token is enough.
        """
        tokens = self._split(span)
        words = tuple([token.text for token in tokens])
        return tokens, bool(self._found_among(words)) or not self._across.isdisjoint(words)

    def _split(self, span: str, special_cases: bool = True) -> tuple[Token, ...]:
        """The tokens of a stretch, by the special cases or without them."""
        rules: Mapping[str, tuple[Token, ...]] = self._rules if special_cases else {}
        if span in rules:
            return rules[span]
        before: list[Token] = []
        after: list[Token] = []
        span = self._without_affixes(span, rules, before, after)
        if span:
            middle = rules.get(span) or ((Token(span),) if _is_whole(span) else self._of_the_middle(span))
            return (*before, *middle, *reversed(after))
        return (*before, *reversed(after))

    def _without_affixes(
        self, span: str, rules: Mapping[str, tuple[Token, ...]], before: list[Token], after: list[Token]
    ) -> str:
        size = 0
        while span and len(span) != size:
            if _is_whole(span) or (self._stays and self._stays(span)) or span in rules:
                break
            size = len(span)
            first = self._prefix(span)
            if first and span[first:] in rules:
                before.append(Token(span[:first]))
                return span[first:]
            last = self._suffix(span[first:])
            if last and span[:-last] in rules:
                after.append(Token(span[-last:]))
                return span[:-last]
            if first:
                before.append(Token(span[:first]))
            if last and (not first or first + last <= len(span)):
                after.append(Token(span[-last:]))
                span = span[:-last]
            span = span[first:]
        return span

    def _of_the_middle(self, span: str) -> Iterator[Token]:
        if any(match(span) for match in self._whole):
            yield Token(span)
            return
        done = 0
        for match in self._infixes(span):
            start, end = match.span()
            if start == 0:
                continue
            if start != done:
                yield Token(span[done:start])
            if start != end:
                yield Token(span[start:end])
            done = end
        if span[done:]:
            yield Token(span[done:])

    def _phrases_to_find(self, *, faster: bool) -> dict[str, list[tuple[str, ...]]]:
        """Special cases that are split before they are recognised, by their first token."""
        by_first: dict[str, list[tuple[str, ...]]] = {}
        for chunk in self._rules:
            splits = self._prefix(chunk) or any(self._infixes(chunk)) or self._suffix(chunk)
            if splits or " " in chunk or not faster:
                phrase = tuple(token.text for token in self._split(chunk, special_cases=False))
                by_first.setdefault(phrase[0], []).append(phrase)
        return by_first

    def _found_among(self, words: tuple[str, ...]) -> list[tuple[int, int]]:
        """Where phrases begin and end among these tokens."""
        return [
            (start, start + len(phrase))
            for start, word in enumerate(words)
            for phrase in self._phrases.get(word, ())
            if words[start : start + len(phrase)] == phrase
        ]

    def _with_phrases(self, tokens: list[tuple[Token, int]], line: str) -> list[tuple[Token, int]]:
        """Put special cases in the place of the tokens that they were split into; of those that overlap the longest."""
        words = tuple([token.text for token, _ in tokens])
        spans = self._found_among(words)
        if not spans:
            return tokens
        seen: set[int] = set()
        replaced: dict[int, tuple[int, tuple[Token, ...]]] = {}
        for start, end in sorted(set(spans), key=lambda span: (span[0] - span[1], span[0])):
            written = line[tokens[start][1] : tokens[end - 1][1] + len(words[end - 1])]
            if start not in seen and end - 1 not in seen and written in self._rules:
                replaced[start] = (end, self._rules[written])
            seen.update(range(start, end))
        out: list[tuple[Token, int]] = []
        position = 0
        while position < len(tokens):
            if position not in replaced:
                out.append(tokens[position])
                position += 1
                continue
            at = tokens[position][1]
            position, special = replaced[position]
            for token in special:
                out.append((token, at))
                at += len(token.text)
        return out


def _spans(line: str) -> list[tuple[str, int]]:
    """The stretches with and without blanks, and where each begins; one blank between two tokens is left out."""
    words = line.split()
    found: list[tuple[str, int]] = []
    if " ".join(words) == line:
        start = 0
        for word in words:
            found.append((word, start))
            start += len(word) + 1
        return found
    for match in _SPANS.finditer(line):
        start, span = match.start(), match[0]
        if span[0] == " " and start:
            span, start = span[1:], start + 1
        if span:
            found.append((span, start))
    return found


def _is_whole(span: str) -> bool:
    """Whether no pattern splits it, which the special cases alone may do: letters of ASCII."""
    return span.isascii() and span.isalpha()


def _length_found(pattern: str) -> Callable[[str], int]:
    """How many characters a pattern takes, where it is found."""
    search = re.compile(pattern).search

    def length(text: str) -> int:
        match = search(text)
        return match.end() - match.start() if match else 0

    return length
