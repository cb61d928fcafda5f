"""Numbers, amounts, dates and times in a line of plain text, each as one comparable keyword.

A quantity gives a whole keyword and its bare number: "15%", "15 percent" and "15 per cent" give {"15%", "15"}. A
bare number in answer to the same question is read as the same claim with its unit left out, so "15%" meets "15"; signs
and decimals are part of the number, so "$15" never meets "$1.5", nor "-5" "5". A scale word is too: "15 million" meets
"15,000,000", but not "15" or "15 billion". A number that begins with zeros and has neither sign nor unit is a code, and
its zeros are part of it: "0170" of a telephone number, "01234" of an address.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from robustrag_integrations._util.normalise import MONEY
from robustrag_integrations.keywords.closed_classes import MONTHS, ONES, ORDINALS, TEENS, TENS, listed

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_SMALL = {word: number for number, word in enumerate(["zero", *ONES, *TEENS])}
_TENS = {word: 10 * number for number, word in enumerate(TENS, start=2)}
_LARGE = ("thousand", "million", "billion", "trillion")
_SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_OTHER_SCALES = {  # of other languages; a billion has twelve zeros where a milliard has nine
    "hundred": "", "thousand": "tausend tausende duizend tusen mila mille tys тыс тысяч тысячи тисяч",
    "million": "mio millionen millions millones millón milioni milione milhões milhão milionów miliony mln miljoen"
    " miljoner miljon milyon millioner млн миллион миллиона миллионов мільйон мільйонів мільйони",
    "billion": "mrd milliarde milliarden milliard milliards miliardi miliardo bilhões bilhão miliard miliardów miliardy"
    " mld miljard miljarder milyar milliarder млрд миллиард миллиарда миллиардов мільярд мільярдів",
    "trillion": "billionen billones",
}  # fmt: skip
SCALE_OF = {other: scale for scale, others in _OTHER_SCALES.items() for other in [scale, *others.split()]}
SCALE_OF |= {"mil millones": "billion", "mil milhões": "billion"}
_SCALE_LETTERS = {"k": "thousand", "m": "million", "mn": "million", "mln": "million", "b": "billion", "bn": "billion"}
CURRENCIES = {
    "us$": "$", "usd": "$", "dollar": "$", "dollars": "$", "us dollars": "$", "u.s. dollars": "$", "eur": "€",
    "euro": "€", "euros": "€", "gbp": "£", "pounds sterling": "£", "yen": "¥", "jpy": "¥", "rupees": "₹", "inr": "₹",
    "евро": "€", "євро": "€", "ευρώ": "€",
}  # fmt: skip
_CODES = listed("CHF SEK NOK DKK PLN CZK HUF CAD AUD NZD CNY KRW BRL MXN ZAR TRY RUB ILS SGD HKD THB VND UAH")
CODES = rf"(?:usd|eur|gbp|jpy|inr|(?-i:{'|'.join(_CODES)}))"
"""Codes of currencies, which stand before an amount as well as behind it: "EUR 5", "5 CHF". Many in capitals only."""
PERCENT = (
    "percent|per cent|percentage points|pct|prozent|procent|procenta|proc|pour cent|por ciento|per cento|por cento"
)
_UNITS = {
    "km": "kilometers kilometer kilometres kilometre kms", "m": "meters meter metres metre",
    "cm": "centimeters centimeter centimetres centimetre", "mm": "millimeters millimeter millimetres millimetre",
    "kg": "kilograms kilogram kilos kilo kgs", "gram": "grams", "mg": "milligrams milligram",
    "lb": "lbs pounds pound", "oz": "ounces ounce", "mile": "miles mi", "ft": "feet foot", "inch": "inches",
    "liter": "liters litres litre", "ml": "milliliters milliliter millilitres millilitre",
    "mph": "", "km/h": "kph kmh", "hour": "hours hrs hr", "minute": "minutes mins min", "second": "seconds secs sec",
    "day": "days", "week": "weeks", "month": "months", "year": "years yrs yr", "acre": "acres",
    "hectare": "hectares ha", "°c": "°celsius", "°f": "°fahrenheit", "°": "degrees degree", "mw": "megawatts megawatt",
    "gw": "gigawatts gigawatt", "kw": "kilowatts kilowatt", "kwh": "", "tb": "terabytes terabyte",
    "gb": "gigabytes gigabyte", "mb": "megabytes megabyte", "kb": "kilobytes kilobyte", "ghz": "gigahertz",
    "mhz": "megahertz",
    "ton": "tons tonnes tonne", "milliwatt": "milliwatts", "megabit": "megabits", "gigabit": "gigabits",
}  # fmt: skip
_OF_CASE = {"mW": "milliwatt", "Mb": "megabit", "Gb": "gigabit", "Tb": "terabit", "Mg": "megagram"}
_UNIT_OF = {spelling: unit for unit, others in _UNITS.items() for spelling in [unit, *others.split()]}
_UNIT_OF |= {
    "degrees celsius": "°c",
    "degrees fahrenheit": "°f",
    "degrees c": "°c",
    "degrees f": "°f",
    "kilowatt hours": "kwh",
    "kilowatt-hours": "kwh",
    "miles per hour": "mph",
    "kilometers per hour": "km/h",
    "kilometres per hour": "km/h",
    "meters per second": "m/s",
    "metres per second": "m/s",
    "m/s": "m/s",
}


def _any_of(spellings: Iterable[str]) -> str:
    return "|".join(re.escape(s).replace(r"\ ", " ") for s in sorted(spellings, key=len, reverse=True))


_DECIMAL_COMMA = r"(?:\d{1,3}(?:\.\d{3}){1,6},\d{1,2}|0,\d{1,30}|\d{1,30},\d{1,2})(?!\d)"  # what no thousands look like
_WITH_COMMA = re.compile(_DECIMAL_COMMA)
_SPACED = r"\d{1,3}(?:(?:[ ]\d{3}){1,6}|(?:'\d{3}){1,6})(?!\d)(?:,\d{1,2}(?!\d))?"  # 3 000, 1'234'567, 3 000,50
_WHOLE = rf"(?:{_SPACED}|\d{{1,3}}(?:,\d{{3}}){{1,6}}|\d{{1,3}}(?:\.\d{{3}}){{2,6}}(?![.,]?\d)|\d{{1,30}})"
_DIGITS = rf"(?:{_DECIMAL_COMMA}|{_WHOLE}(?:\.\d{{1,30}})?|\.\d{{1,30}})"
_SPELLED = rf"(?:(?:{'|'.join(_TENS)})(?:[- ](?:{'|'.join(ONES)}))?|{_any_of(_SMALL)})"
_THOUSANDS = "|".join(_LARGE)
_HUNDREDS = rf"(?:(?:a|{_SPELLED})[- ]hundred(?:[ ](?:and[ ])?{_SPELLED}\b)?|{_SPELLED}|a(?=[ ](?:{_THOUSANDS})\b))"
_COMPOUND = rf"{_HUNDREDS}(?:[- ](?:{_THOUSANDS}),?[ ](?:and[ ])?{_HUNDREDS}\b){{0,3}}"
_SPELLED_WORD = re.compile(rf"\b{_SPELLED}", re.I)
_SPELLED_WORDS = frozenset((*_SMALL, *_TENS, *_SCALES))
_LETTERS = re.compile("[a-z]+").findall
_A_DIGIT = re.compile("[0-9]").search
_LONGEST_LEAD = 20  # characters of a match before its first digit: "a quarter past 9", "negative us$ -.5"
_TAKEN_FOR_OTHERS = str.maketrans("\u0131\u0130\u017f\u212a", "iIsK")  # by patterns that pass over case: "m\u0131llion"
_MONTH_WORDS = frozenset((*MONTHS, *(month[:3] for month in MONTHS), "sept", "sepember"))  # what `_MONTH` matches
_START = r"(?<![\w.,/\-])(?<!\d:)"
_DATE = re.compile(
    rf"""{_START}(?:
        (?P<d1>\d{{1,2}})(?:(?:st|nd|rd|th)?[ ](?:of[ ])?|-)(?P<m1>{_MONTH})\b\.?(?:(?:,?[ ]|-)(?P<y1>\d{{4}})\b)?
      | (?P<m2>{_MONTH})\.?[ ](?P<d2>\d{{1,2}})(?:st|nd|rd|th)?(?:,?[ ](?P<y2>\d{{4}}))?
      | (?P<m3>{_MONTH})\.?,?[ ](?:of[ ])?(?P<y3>\d{{4}})
      | (?P<y4>\d{{4}})-(?P<m4>\d{{2}})-(?P<d4>\d{{2}})
    )(?![\w]|[-/:%]\w|\.\d)""",
    re.I | re.X,
)
_TIME = re.compile(
    rf"""{_START}(?P<hour>\d{{1,2}})(?:[:.](?P<minute>[0-5]\d))?
        (?:(?::[0-5]\d)?[ ]?(?P<half>[ap])(?:m\b|\.m\.)|(?<=[:]\d\d)(?![\w:]))""",
    re.I | re.X,
)
_WITH_SECONDS = re.compile(
    rf"""{_START}(?P<first>\d{{1,3}})(?:(?P<full>:[0-5]\d:[0-5]\d)|(?P<short>:[0-5]\d)(?=[.,]\d))
        (?:[.,](?P<part>\d{{1,3}}))?(?![\w:]|[.,]\d|[ ]?[ap]\.?m\b)""",
    re.I | re.X,
)
_SPOKEN_TIME = re.compile(
    rf"""\b(?P<part>half|(?:a[ ])?quarter)[ ](?P<side>past|to)[ ]
        (?P<hour>{"|".join([*ONES, *TEENS[:3]])}|1[0-2]|[1-9])\b
        (?:[ ](?P<half>in[ ]the[ ](?:morning|afternoon|evening)|at[ ]night|[ap]\.?m\b))?""",
    re.I | re.X,
)
_ORDINAL = re.compile(
    rf"{_START}(?:(?P<number>\d{{1,4}})(?:st|nd|rd|th)|(?P<tens>{'|'.join(_TENS)})-(?P<ones>{'|'.join(ORDINALS[:9])}))\b",
    re.I,
)
_DECADE = re.compile(r"(?<![\w.,/])'?(?P<decade>(?:\d\d)?\d0)'?s\b", re.I)
_AS_WRITTEN = re.compile(rf"{_START}(?:\d{{1,4}}/\d{{1,4}}(?:/\d{{1,4}})?|\d{{1,4}}\^-?\d{{1,3}})(?![\w/]|\.\d)")
_AMOUNT = re.compile(
    rf"""{_START}
        (?<!\w\+)(?P<sign>(?:[-+]|minus[ ]|negative[ ])(?=[\d.{MONEY}]))?
        (?P<before>(?:us|a|c)?\$|[{MONEY}]|{CODES}(?=[ ]?\d))?[ ]?(?P<inner_sign>-(?=[\d.]))?
        (?P<number>{_DIGITS}|\b{_COMPOUND}\b)(?:%?(?:-|[ ]to[ ])[{MONEY}]?(?P<to>{_DIGITS}))?
        (?:[ -]?(?P<scale>{_any_of(SCALE_OF).replace(" ", "[ ]")})\b\.?|(?P<letter>[ ]?(?:mln|mn|bn)|k|m|b)\b(?=\W|$))?
        (?:[ ]?(?P<percent>%|(?:{PERCENT.replace(" ", "[ ]")})\b)
          |[ ](?:de[ ]|d')?(?P<after>{CODES}|{_any_of(CURRENCIES).replace(" ", "[ ]")})\b
          |[ ]?(?P<mark>[{MONEY}])(?![{MONEY}])
          |(?P<more>\+)(?![\w+])
          |[ -]?(?P<unit>{_any_of(_UNIT_OF).replace(" ", "[ ]")})(?!\w))?
        (?![\w]|-\w|[.,/:]\d)""",
    re.I | re.X,
)


@dataclass(frozen=True)
class Quantity:
    """A stretch of a line and its keywords, the fullest first."""

    start: int
    end: int
    forms: tuple[str, ...]


@lru_cache(maxsize=32)  # what a reply counts is asked for its keywords, and for how they are written
def find_quantities(line: str) -> tuple[Quantity, ...]:
    """Return the quantities of a line, left to right and without overlap; dates and times win over plain numbers."""
    if line.isascii():
        may_hold_one = _may_hold_number(line)
    else:
        line = line.translate(_TAKEN_FOR_OTHERS)
        may_hold_one = any(map(str.isdigit, line)) or _SPELLED_WORD.search(line) is not None
    if not may_hold_one:
        return ()
    found: list[Quantity] = []
    taken = bytearray(len(line))
    words = frozenset(_LETTERS(line.lower()))
    begin = _begin(line, words)
    for pattern, forms_of, sign in _READERS:
        if line.isascii() and not sign(line, words):
            continue
        for match in pattern.finditer(line, begin):
            start, end = match.span()
            if not any(taken[start:end]) and (forms := forms_of(match)):
                taken[start:end] = b"\x01" * (end - start)
                found.append(Quantity(start, end, tuple(dict.fromkeys(forms))))
    return tuple(sorted(found, key=lambda quantity: quantity.start))


def _begin(line: str, words: Collection[str]) -> int:
    """No match begins before this place; `words` are those of the line."""
    digit = _A_DIGIT(line) if line.isascii() and _SPELLED_WORDS.isdisjoint(words) else None
    return max(0, digit.start() - _LONGEST_LEAD) if digit else 0


def _may_hold_number(line: str) -> bool:
    """True if a line of ASCII characters holds a digit, or a whole word that is a number."""
    return _A_DIGIT(line) is not None or not _SPELLED_WORDS.isdisjoint(_LETTERS(line.lower()))


def _date_forms(match: re.Match[str]) -> list[str]:
    parts_by_letter = {name[0]: value for name, value in match.groupdict().items() if value}
    written, day, year = parts_by_letter.get("m", ""), parts_by_letter.get("d"), parts_by_letter.get("y")
    if written.isdigit():
        if not 1 <= int(written) <= 12:
            return []
        month = MONTHS[int(written) - 1]
    else:
        month = next(name for name in MONTHS if name.startswith(written.lower()[:3]))
    if day is not None and not 1 <= int(day) <= 31:
        return []
    day = day and str(int(day))
    parts = [(day, month, year), (day, month), (month, year), (year,)]
    return [" ".join(p for p in words if p) for words in parts if all(words)]


def _time_forms(match: re.Match[str]) -> list[str]:
    minute = match["minute"]
    if match["half"]:
        return _halved(int(match["hour"]), minute or "00", match["half"].lower())
    return [f"{int(match['hour'])}:{minute}"] if minute else []


def _forms_with_seconds(match: re.Match[str]) -> list[str]:
    part = f".{match['part']}" if match["part"] else ""
    return [f"{int(match['first'])}{match['full'] or match['short']}{part}"]


def _halved(hour: int, minute: str, half: str) -> list[str]:
    """A time with am or pm ("a", "p"), and the same in 24 hours."""
    clock = str(hour) + (f":{minute}" if minute != "00" else "")
    whole = [f"{clock} {half}m"]
    return [*whole, f"{hour % 12 + 12 * (half == 'p')}:{minute}"] if 1 <= hour <= 12 else whole


def _spoken_time_forms(match: re.Match[str]) -> list[str]:
    """ "Half past nine" as 9:30; with "in the evening" as 9:30 pm."""
    if match["part"].lower() == "half" and match["side"].lower() == "to":
        return []
    written = match["hour"].lower()
    hour = int(written) if written.isdigit() else _SMALL[written]
    hour = (hour - 2) % 12 + 1 if match["side"].lower() == "to" else hour
    minute = "30" if match["part"].lower() == "half" else "45" if match["side"].lower() == "to" else "15"
    half = (match["half"] or "").lower()
    if not half:
        return [f"{hour}:{minute}"]
    return _halved(hour, minute, "a" if "morning" in half or (half[0] == "a" and half[1] in ".m") else "p")


def _ordinal_forms(match: re.Match[str]) -> list[str]:
    if match["tens"]:
        number = _TENS[match["tens"].lower()] + ORDINALS.index(match["ones"].lower()) + 1
        ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
        return [match[0].lower(), f"{number}{ending}"]
    number = int(match["number"])
    return [match[0].lower()] + ([ORDINALS[number - 1]] if 1 <= number <= len(ORDINALS) else [])


def _decade_forms(match: re.Match[str]) -> list[str]:
    return [f"{match['decade']}s"]


def _forms_as_written(match: re.Match[str]) -> list[str]:
    return [match[0]]


def _amount_forms(match: re.Match[str]) -> list[str]:
    unit = _unit_of(match)
    spelled = match["number"][0].isalpha()
    if match["number"].lower() == "one" and not (unit or match["scale"]) and len(match.string) > len("one."):
        return []  # "one of them", "the one": left to the tagger
    sign = "-" if match["inner_sign"] or (match["sign"] or "+")[0] in "-mMnN" else ""
    scale = scale_of(match["scale"] or "") or _SCALE_LETTERS.get((match["letter"] or "").strip().lower(), "")
    if match["letter"] in ("m", "b") and not match["before"]:
        unit, scale = ("m" if match["letter"] == "m" else None), ""
    number = match["number"]
    if spelled and scale and not set(_LARGE).isdisjoint(number.lower().split()):
        number, scale = f"{number} {scale}", ""  # two million three hundred thousand
    forms: list[str] = []
    if match["letter"] and scale and not match["before"]:
        forms.append(f"{number}{match['letter']}".lower())  # it may be no scale: "Room 12B"
    units = [each for each in (unit, "£" if (match["unit"] or "").lower() in ("pound", "pounds") else None) if each]
    is_bare = not (sign or units or scale)
    for digits in _number_forms(number, match["to"], scale, is_bare):
        forms += [_with_unit(sign + digits, each) for each in units]
        forms.append(sign + digits)
    if spelled:
        forms.append(number + (f" {scale}" if scale else ""))
    return sorted(forms, key=len, reverse=True) if spelled else forms


def scale_of(word: str) -> str | None:
    """Return the English scale word of one that a pattern found, in any case: "million" for "MILLIONEN"."""
    return SCALE_OF.get(word.translate(_TAKEN_FOR_OTHERS).casefold())


def currency_of(word: str) -> str | None:
    """Return the sign of a currency, or its code in small letters; None for any other word."""
    return word.lower() if word in _CODES else CURRENCIES.get(word.lower())


def _unit_of(match: re.Match[str]) -> str | None:
    if match["percent"]:
        return "%"
    if match["before"]:
        return currency_of(match["before"]) or match["before"].lower()
    if match["mark"]:
        return match["mark"]
    if match["after"]:
        return currency_of(match["after"])
    if match["more"]:
        return "+"
    return _OF_CASE.get(match["unit"]) or _UNIT_OF[match["unit"].lower()] if match["unit"] else None


def _with_unit(number: str, unit: str) -> str:
    if unit in ("a$", "c$", *MONEY):
        return f"-{unit}{number[1:]}" if number.startswith("-") else unit + number
    return f"{number}{unit}" if unit[0] in "%°+" else f"{number} {unit}"


def _number_forms(first: str, to: str | None, scale: str, is_bare: bool) -> list[str]:
    """Return the ways to write a number (or range) that must meet: as written, and plainly in digits."""
    start, end = _digits(first, is_bare), to and _digits(to, is_bare)
    if end:
        whole = f"{start}-{end}" + (f" {scale}" if scale else "")
        # Two years or two large numbers are two facts; a score or a small range is one.
        return [whole, start, end] if min(len(start), len(end)) > 2 else [whole]
    if scale:
        return scaled(start, scale)
    return list(dict.fromkeys([start, _plain(Decimal(start))])) if "." in start else [start]


def scaled(number: str, scale: str) -> list[str]:
    """Return a number with its English scale word, and in digits: "5 million", "5000000"."""
    return [f"{number} {scale}", _plain(Decimal(number).scaleb(_SCALES[scale]))]


def _digits(written: str, is_bare: bool) -> str:
    """Return a number without thousands separators and a fraction of nothing but zeros.

    Without leading zeros as well, unless it is a whole number that is bare: those are part of a code.
    """
    if not written[0].isalpha():
        number = written.replace(" ", "").replace("'", "")
        if _WITH_COMMA.fullmatch(number):
            number = number.replace(".", "").replace(",", ".")
        elif number.count(".") > 1:  # 5.000.000
            number = number.replace(".", "")
        number = number.replace(",", "")
        whole, point, fraction = number.partition(".")
        if is_bare and not point:
            return whole
        return (whole.lstrip("0") or "0") + (f".{fraction}" if fraction.strip("0") else "")
    total = part = 0
    for word in written.lower().replace("-", " ").replace(",", " ").split():
        if word in _LARGE:
            total, part = total + part * 10 ** _SCALES[word], 0
        elif word == "hundred":
            part *= 100
        else:
            part += 1 if word == "a" else _SMALL.get(word, 0) + _TENS.get(word, 0)
    return str(total + part)


def _plain(number: Decimal) -> str:
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


_CLOCK = re.compile(r"[0-9]:|[0-9][ ]?[ap]\.?m", re.I).search
_TH = re.compile("[0-9](?:st|nd|rd|th)", re.I).search

# With a test of a line of ASCII characters and its words, which every line with a match passes; quicker than the match.
_READERS: tuple[
    tuple[re.Pattern[str], Callable[[re.Match[str]], list[str]], Callable[[str, Collection[str]], object]], ...
] = (
    (_DATE, _date_forms, lambda line, words: "-" in line or not _MONTH_WORDS.isdisjoint(words)),
    (_WITH_SECONDS, _forms_with_seconds, lambda line, _: ":" in line),
    (_TIME, _time_forms, lambda line, _: _CLOCK(line)),
    (_SPOKEN_TIME, _spoken_time_forms, lambda _, words: "half" in words or "quarter" in words),
    (_DECADE, _decade_forms, lambda line, _: "0s" in line or "0'" in line or "0S" in line),
    (_ORDINAL, _ordinal_forms, lambda line, _: "-" in line or _TH(line)),
    (_AS_WRITTEN, _forms_as_written, lambda line, _: "/" in line or "^" in line),
    (_AMOUNT, _amount_forms, lambda *_: True),
)
