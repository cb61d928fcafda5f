r"""Answers that count to the letter: one table of kinds, each with the pattern that finds it.

What is found is a keyword as it stands, with its case and punctuation, and is taken out of the text before words are
looked for. `getUserById` and the formula `Na2S2O3` stay in the text as well: they may be somebody's name.
"""

# ruff: noqa: E501 - a table

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from robustrag_integrations.keywords.normalise import MAX_KEYWORD_CHARACTERS

_END = ".,;:!?*'\"`)]}>»”’、。"  # punctuation after an address, which is not part of it
_OPERATOR = r"(?:[<>!=~]=|===|[<>^~≤≥])"
_JOINED = r"(?:\s?(?:,|\|\|)\s?|\s)"  # of versions: ">=3.10,<3.14", "^18.17.0 || >=20.3.0", ">=1.2 <2"
_RELEASE = r"v?\d{1,6}(?:\.(?:\d{1,6}|\*)){0,5}(?:[-+.]?(?:rc|alpha|beta|a|b|dev|post|pre|snapshot|final)[-.]?\d{0,6})?"
_TOOLS = (
    "pip3?|pipx|uv|conda|mamba|poetry|npm|npx|yarn|pnpm|bun|git|docker|docker-compose|podman|kubectl|helm|sudo|apt|apt-get"
    "|brew|dnf|yum|pacman|apk|snap|choco|winget|cargo|rustup|go|gem|bundle|composer|dotnet|nuget|make|cmake|curl|wget|ssh"
    "|scp|rsync|systemctl|service|journalctl|terraform|ansible|aws|gcloud|az|python3?|node|java|mvn|gradle|bash|sh|zsh"
    "|chmod|chown|mkdir|rm|cp|mv|ls|cat|grep|sed|awk|tar|unzip|export|source|psql|mysql|redis-cli|ffmpeg|openssl"
)
_ARGUMENT = r"(?:\"[^\"\n]{1,100}\"|'[^'\n]{1,100}'|[^\s\"'`,;]*[^\sA-Za-z\"'`,;.!?()][^\s\"'`;]*)"
# What a flag may be given: a word that prose does not go on with.
_VALUE = (
    r"(?!(?:to|and|or|in|for|from|with|then|if|on|at|the|an?|which|that|when|so|is|are|as|by|but|it|into|of|this|your|you"
    r"|will|does|can|must|should|shows?|lists?|prints?|command|flag|option)(?!\w))[A-Za-z][\w-]{0,40}(?!\w)"
)
_FLAG = rf"--?[A-Za-z][\w-]{{0,30}}(?:=[^\s`*]{{1,80}}| {_VALUE})?"
_OPTION = rf"(?:--?[A-Za-z][\w-]{{0,30}} {_VALUE}|{_ARGUMENT})"
_SUBCOMMAND = r"[a-z][a-z-]{1,20}"


@dataclass(frozen=True)
class Kind:
    """One kind of answer that counts to the letter.

    Attributes:
        name: what it is called.
        pattern: where it may stand.
        forms: a match as its keywords; none where it is not of this kind after all.
        stays: whether the words in it count as words too.
        holds: what every match holds; a text without it is not searched.
        needs: the name of what is found in every match that has forms (`_SIGNS`); quicker to look for than the match.
    """

    name: str
    pattern: re.Pattern[str]
    forms: Callable[[re.Match[str]], list[str]]
    stays: bool = False
    holds: str = ""
    needs: str = ""


def _bare(match: re.Match[str]) -> list[str]:
    found = match[0].rstrip(_END)
    for opening, closing in ("()", "[]", "{}"):
        while found.count(opening) > found.count(closing) and match[0].startswith(found + closing):
            found += closing
    for quote in "\"'":
        if found.count(quote) % 2 and match[0].startswith(found + quote):
            found += quote
    return [found] if found else []


def _as_written(match: re.Match[str]) -> list[str]:
    return [match[0]]


def _without_call(match: re.Match[str]) -> list[str]:
    return [match[0].removesuffix("()")]


def _constraint(match: re.Match[str]) -> list[str]:
    tight = re.sub(r"([<>=!~^,≤≥])\s|\s(?=,)", r"\1", match[0])
    return [re.sub(r"\s?\|\|\s?", " || ", tight)]


def _release(match: re.Match[str]) -> list[str]:
    found = match[0].rstrip(".-+")
    return list(dict.fromkeys([found, found.removeprefix("v")]))


def _path(match: re.Match[str]) -> list[str]:
    found = match[0].rstrip(_END)
    return [found] if len(found) > 2 else []


def _ip_forms(match: re.Match[str]) -> list[str]:
    """An IPv6 address as written and in its shortest form, which all ways to write it have in common."""
    from ipaddress import IPv6Address

    address, port, prefix = match["address"], match["port"], match["prefix"]
    try:
        parsed = IPv6Address(address)
    except ValueError:
        return []
    shortest = f"::ffff:{parsed.ipv4_mapped}" if parsed.ipv4_mapped else str(parsed)
    if not any(map(str.isdigit, address)):  # a name with its scope: "Face::Bead"
        return []
    frame = "[{}]" if port else "{}"
    ending = (port or "") + (prefix or "")
    return list(dict.fromkeys([frame.format(each) + ending for each in (address, shortest)]))


def _clock(written: str) -> str:
    hour, minute = re.split("[:.h]", written)
    return f"{int(hour)}:{minute}"


def _hours(match: re.Match[str]) -> list[str]:
    return [f"{_clock(match['opens'])}-{_clock(match['closes'])}"]


def _twelve_hours(match: re.Match[str]) -> list[str]:
    """Hours with am and pm, in 24 hours and as they are read out."""
    day, read = [], []
    for written in (match["opens"], match["closes"]):
        clock, half = written.rstrip(".").lower().replace(".", "")[:-2].strip(), written.lower().replace(".", "")[-2:]
        hour, _, minute = clock.partition(":")
        day.append(f"{int(hour) % 12 + 12 * (half == 'pm')}:{minute or '00'}")
        read.append(f"{int(hour)}{':' + minute if minute.strip('0') else ''} {half}")
    return ["-".join(day), " to ".join(read)]


def _ratio(match: re.Match[str]) -> list[str]:
    parts = re.split(r"\s?:\s?", match[0])
    return [":".join(parts), "-".join(parts)]


def _formula(match: re.Match[str]) -> list[str]:
    plain = unicodedata.normalize("NFKC", match[0])
    return [plain] if any(map(str.isdigit, plain)) and any(map(str.isalpha, plain)) else []


def _with_flags(match: re.Match[str]) -> list[str]:
    """A command line in prose: where it begins is not said, so each word before the first flag may be it."""
    words = match[0].rstrip(".,;:!?").split(" ")
    first = next((i for i, word in enumerate(words) if word.startswith("-")), 0)
    return [" ".join(words[start:]) for start in range(max(first - 3, 0), first)]


_ELEMENT = "(?:H|He|Li|Be|B|C|N|O|F|Ne|Na|Mg|Al|Si|P|S|Cl|Ar|K|Ca|Ti|V|Cr|Mn|Fe|Co|Ni|Cu|Zn|As|Br|Ag|Cd|Sn|I|Ba|W|Pt|Au|Hg|Pb|U)"
_COUNT = "[0-9₀-₉]{0,3}"
_IPV6 = r"(?P<address>[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:]{1,38}(?:(?<=:)\d{1,3}(?:\.\d{1,3}){3})?(?:%[A-Za-z][\w-]{0,20})?)"

_A_HUMP = re.compile("[a-z0-9][A-Z]").search
_SIGNS = {
    "": re.compile("").search,
    "argument": re.compile(r"[^\sA-Za-z,;.!?()]").search,
    "digit": re.compile(r"[\d₀-₉]").search,
    "count": re.compile(r"[A-Za-z)·⋅∙][\d₀-₉]").search,
    "decimal": re.compile(r"\d\.\d").search,
    "half": re.compile(r"\d\s?[ap]\.?m", re.I).search,
    "colons": re.compile("::|(?:[0-9A-Fa-f]{1,4}:){7}").search,
    "clock": re.compile(r"\d[:.h]\d", re.I).search,
    "operator": re.compile("[<>=~^≤≥]").search,
    "hump": _A_HUMP,
}
_PROSE = re.compile("[A-Za-z ,;.!?\n]*").fullmatch

KINDS = (
    Kind("command", re.compile(rf"(?<![\w/.-])(?:(?:sudo )?(?:{_TOOLS})) (?:{_SUBCOMMAND} ){{0,2}}{_OPTION}(?: {_OPTION}){{0,9}}(?=[\s.,;:!?*`)]|$)"), _bare, needs="argument"),
    Kind("command", re.compile(rf"(?<![\w/.-])(?:[a-z][\w.-]{{1,30}} ){{1,4}}{_FLAG}(?: {_FLAG}){{0,9}}"), _with_flags, holds=" -"),
    Kind("url", re.compile(r"\b(?:https?|ftps?|sftp|ssh|git|s3|gs|file|wss?|jdbc:\w+|postgres(?:ql)?|redis|mongodb)://[^\s<>\"`|\\^]{1,500}"), _bare, holds="://"),
    Kind("e-mail", re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}"), _bare, holds="@"),
    Kind("address", re.compile(rf"(?<![\w.:])(?P<open>\[)?{_IPV6}(?(open)\])(?P<port>(?<=\]):\d{{1,5}})?(?P<prefix>/\d{{1,3}})?(?![\w:]|\.\d)"), _ip_forms, holds=":", needs="colons"),
    Kind("address", re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?(?:/\d{1,2})?(?![\w]|\.\d)"), _as_written, holds=".", needs="decimal"),
    Kind("address", re.compile(r"(?<![\w.:])(?:(?:[0-9a-fA-F]{1,4}:){4,7}[0-9a-fA-F]{1,4}|localhost:\d{2,5})(?!\w)"), _as_written, holds=":"),
    Kind("version", re.compile(rf"(?<![<>=!~])(?:(?<!\w)|(?=[<>!=~]=\s?\d{{1,6}}\.\d)){_OPERATOR}\s?{_RELEASE}(?:{_JOINED}{_OPERATOR}\s?{_RELEASE}){{0,4}}(?!\w|,\d{{3}}(?!\d))"), _constraint, needs="operator"),
    Kind("path", re.compile(r"(?<![\w%\\])(?:%\w{1,40}%|[A-Za-z]:|\\\\[\w.-]{1,60}|\$env:\w{1,40})(?:\\[\w.@+ -]{1,80}?(?=[\\.\s*\"'`,;)]|$))+(?:\.\w{1,10})?"), _path, holds="\\"),
    Kind("path", re.compile(r"(?<![\w/:.)])(?:~|\.{1,2}|\$\{?\w{1,40}\}?)?/[\w.@+%-]{1,80}(?:/[\w.@+%*-]{1,80})+/?|(?<![\w/:.])(?:~|\.{1,2})/[\w.@+%-]{1,80}"), _path, holds="/"),
    Kind("hours", re.compile(r"(?<![\w.:])(?P<opens>(?:0?[1-9]|1[0-2])(?::[0-5]\d)?\s?[ap]\.?m\.?)\s?(?:[-–—]|to|until|till|through)\s?(?P<closes>(?:0?[1-9]|1[0-2])(?::[0-5]\d)?\s?[ap]\.?m)(?!\w)", re.I), _twelve_hours, needs="half"),
    Kind("hours", re.compile(r"(?<![\w.:])(?P<opens>(?:[01]?\d|2[0-4])[:.h][0-5]\d)\s?(?:h|uhr|pm|am)?\s?(?:[-–—~〜～]|to|until|till|and|bis|à|a|alle|às|do|до|et|hasta|から)\s?(?P<closes>(?:[01]?\d|2[0-4])[:.h][0-5]\d)(?!\d|[.:]\d)", re.I), _hours, needs="clock"),
    Kind("ratio", re.compile(r"(?<![\w.:,])\d{1,3}\s?:\s?(?:\d|\d{3}|[6-9]\d)(?:\s?:\s?\d{1,3})?(?![\w:]|\.\d)"), _ratio, holds=":", needs="digit"),
    Kind("version", re.compile(r"(?<![\w.,/-])(?:v\d{1,6}(?:\.\d{1,6}){1,5}|(?!\d{1,2}\.\d{1,2}\.\d{4}(?!\d)|\d{1,3}(?:\.\d{3})+(?![\w.-]|\.\d))\d{1,6}(?:\.\d{1,6}){2,5})(?:-[0-9A-Za-z]{1,20}(?:\.[0-9A-Za-z]{1,20}){0,4}|(?:rc|a|b|alpha|beta|dev|post)\d{1,4})?(?:\+[\w.]{1,40})?(?!\w)"), _release, holds=".", needs="decimal"),
    Kind("identifier", re.compile(r"(?<![\w@/.-])[A-Za-z]\w{0,80}_\w{1,80}(?:\(\))?(?![\w@])"), _without_call, holds="_"),
    Kind("identifier", re.compile(r"(?<![\w@/.-])[A-Za-z_]\w{0,60}(?:(?:\.|::)[A-Za-z_]\w{0,60}){0,5}\(\)"), _without_call, holds="()"),
    Kind("identifier", re.compile(r"(?<![\w@/.-])--[a-z][\w-]{1,40}(?:=[^\s`*,;]{1,80})?(?!\w)"), _bare, holds="--"),
    Kind("identifier", re.compile(r"(?<![\w@/.-])[a-z]{2,40}(?:[A-Z][a-z0-9]{0,40}){1,8}(?!\w)"), _as_written, stays=True, needs="hump"),
    Kind("identifier", re.compile(r"(?<![\w@/.-])(?:[A-Z][a-z0-9]{1,40}){2,8}(?!\w)"), _as_written, stays=True, needs="hump"),
    Kind("formula", re.compile(rf"(?<![\w(])(?:{_ELEMENT}{_COUNT}|\((?:{_ELEMENT}{_COUNT}){{1,5}}\){_COUNT}){{2,12}}(?:[·⋅∙]\d{{0,2}}(?:{_ELEMENT}{_COUNT}){{1,6}})?(?![\w])"), _formula, stays=True, needs="count"),
)  # fmt: skip

_FENCE = re.compile(r"^[ \t]*```[\w+-]{0,20}[ \t]*\n(.{0,4000}?)(?:\n[ \t]*```|\Z)", re.M | re.S)
_SPAN = re.compile(r"``([^`\n]{1,200})``|`([^`\n]{1,200})`")
_PROMPT = re.compile(r"^\s*(?:\$|>|#|PS>|>>>)\s+")
_PLAIN_WORDS = re.compile(r"[^\W\d_]+(?:[ '-][^\W\d_]+)*\Z")
_MARKUP = re.compile(r"</?[A-Za-z!]|<\||\|>|\[/?INST|<<|`|~~~")
_COMMA = re.compile(r"\s?,\s")  # keywords are listed with a comma and a space between them
_GAP = " \u2022 "  # what stands in the text where something was taken out: the end of a phrase


def take_exact(text: str) -> tuple[set[str], str]:
    """Return the keywords that count to the letter, and the text that is left for words."""
    found: set[str] = set()
    if _PROSE(text) and not _A_HUMP(text):
        return found, text
    if text == text.lower() and not any(mark in text for mark in "`/:@_=<\\.()-[") and not any(map(str.isdigit, text)):
        return found, text
    if "`" in text:
        text = _FENCE.sub(lambda match: _code(match[1], found), text)
        text = _SPAN.sub(lambda match: _code(match[1] or match[2], found), text)
    signs = {name for name, search in _SIGNS.items() if search(text)}
    for kind in KINDS:
        if kind.needs in signs and kind.holds in text:
            text = kind.pattern.sub(partial(_taken, kind, found), text)
    return {keyword for code in found if (keyword := _harmless(code))}, text


def _harmless(code: str) -> str:
    """A keyword that ends no list and acts on no terminal and no chat template; empty for what would."""
    if len(code) > MAX_KEYWORD_CHARACTERS or _MARKUP.search(code):
        return ""
    if not code.isascii() and any(unicodedata.category(c)[0] == "C" or c in "\u2028\u2029" for c in code):
        return ""
    return _COMMA.sub(",", " ".join(code.split())) if code.isprintable() else ""


def _taken(kind: Kind, found: set[str], match: re.Match[str]) -> str:
    forms = kind.forms(match)
    found.update(forms)
    if kind.name == "command":
        found.update(inner for form in forms[:1] for inner in _inner(form))
    if not forms or kind.stays:
        return match[0]
    rest = match[0][len(forms[0]) :] if match[0].startswith(forms[0]) else ""
    return _GAP + rest


def _code(code: str, found: set[str]) -> str:
    """Note the lines of a piece of code; plain words in it are left to be read as words."""
    left: list[str] = []
    for line in code.splitlines():
        command = _PROMPT.sub("", line).strip().rstrip(";")
        if not command:
            continue
        if _PLAIN_WORDS.match(command) or command.replace(",", "").replace(".", "").isdecimal():
            left.append(command)
            continue
        found.add(command)
        for inner in _inner(command):
            found.add(inner)
        left.append(_GAP)
    return "\n".join(left)


def _inner(command: str) -> Iterator[str]:
    """What counts to the letter within a line of code: its variables, addresses and versions."""
    for kind in KINDS:
        if kind.name != "command":
            for match in kind.pattern.finditer(command):
                yield from (form for form in kind.forms(match) if form != command)
