"""Numbers, dates and times of many locales as one comparable keyword each.

English ones are read by `quantities`. Here: month names of other languages, numeric dates, "1983年7月4日", thousands and
decimals as each language separates them, and numbers with the word that follows them.
"""

# ruff: noqa: E501 - tables

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from robustrag_integrations.keywords.closed_classes import listed
from robustrag_integrations.keywords.quantities import CODES, PERCENT, SCALE_OF, currency_of, scale_of, scaled

_MONTH_NAMES = {
    "de": "januar februar märz april mai juni juli august september oktober november dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "pl": "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",
    "ru": "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
    "uk": "січня лютого березня квітня травня червня липня серпня вересня жовтня листопада грудня",
    "tr": "ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
    "sv": "januari februari mars april maj juni juli augusti september oktober november december",
    "ar": "يناير فبراير مارس أبريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر",
    "he": "ינואר פברואר מרץ אפריל מאי יוני יולי אוגוסט ספטמבר אוקטובר נובמבר דצמבר",
    "hi": "जनवरी फ़रवरी मार्च अप्रैल मई जून जुलाई अगस्त सितंबर अक्टूबर नवंबर दिसंबर",
    "th": "มกราคม กุมภาพันธ์ มีนาคม เมษายน พฤษภาคม มิถุนายน กรกฎาคม สิงหาคม กันยายน ตุลาคม พฤศจิกายน ธันวาคม",
}  # fmt: skip
_OTHER_NAMES = {
    "de": {"jänner": 1, "jan": 1, "feb": 2, "mär": 3, "apr": 4, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "okt": 10, "nov": 11, "dez": 12},
    "es": {"setiembre": 9}, "pl": {"styczeń": 1, "luty": 2, "marzec": 3, "kwiecień": 4, "maj": 5, "czerwiec": 6, "lipiec": 7, "sierpień": 8, "wrzesień": 9, "październik": 10, "listopad": 11, "grudzień": 12},
    "ru": {"январь": 1, "февраль": 2, "март": 3, "апрель": 4, "май": 5, "июнь": 6, "июль": 7, "август": 8, "сентябрь": 9, "октябрь": 10, "ноябрь": 11, "декабрь": 12},
    "ar": {"كانون الثاني": 1, "شباط": 2, "آذار": 3, "نيسان": 4, "أيار": 5, "حزيران": 6, "تموز": 7, "آب": 8, "أيلول": 9, "تشرين الأول": 10, "تشرين الثاني": 11, "كانون الأول": 12, "إبريل": 4, "ابريل": 4, "اغسطس": 8, "اكتوبر": 10},
    "he": {"מרס": 3}, "hi": {"फरवरी": 2, "सितम्बर": 9, "नवम्बर": 11, "दिसम्बर": 12, "अक्तूबर": 10},
    "th": {"ม.ค.": 1, "ก.พ.": 2, "มี.ค.": 3, "เม.ย.": 4, "พ.ค.": 5, "มิ.ย.": 6, "ก.ค.": 7, "ส.ค.": 8, "ก.ย.": 9, "ต.ค.": 10, "พ.ย.": 11, "ธ.ค.": 12},
    "tr": {},
}  # fmt: skip
_MONTHS = {
    language: {**{name: n for n, name in enumerate(names.split(), 1)}, **_OTHER_NAMES.get(language, {})}
    for language, names in _MONTH_NAMES.items()
}
_IN_ORDER = {language: names.split() for language, names in _MONTH_NAMES.items()}


def _names(language: str) -> str:
    return "|".join(map(re.escape, sorted(_MONTHS[language], key=len, reverse=True)))


_ARABIC_CLITIC = "[بلوف]?"


@cache
def _named(language: str) -> re.Pattern[str]:
    """A day and a month by its name, with or without a year."""
    return re.compile(
        rf"(?<![\w.,/-])(?P<day>\d{{1,2}})(?:\.|º|ª|er|\.º)?\s?(?:de |di |ב-?|בּ)?{_ARABIC_CLITIC}(?P<month>{_names(language)})"
        rf"(?:\s?/\s?[^\W\d]{{2,12}})?(?:\.)?(?:\s?,?\s?(?:de |del |ב-?|พ\.ศ\.\s?|ค\.ศ\.\s?|สाल )?(?P<year>\d{{4}})(?!\d))?",
        re.I,
    )


@cache
def _month_year(language: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w])(?P<month>{_names(language)})\.?\s(?:de |del )?(?P<year>\d{{4}})(?!\d)", re.I)


_NUMERIC = re.compile(
    r"(?<![\w.,/-])(?P<day>\d{1,2})(?P<by>[./-])(?P<month>\d{1,2})(?P=by)(?P<year>\d{4})(?![\w]|[./-]\d)"
)
_CLOCK = re.compile(
    r"(?<![\w.,:/])(?P<hour>[01]?\d|2[0-4])(?:[:h]|\.(?=\d\d\s?(?:uhr|h)(?!\w)))(?P<minute>[0-5]\d)"
    r"(?:\s?(?:uhr|h|heures|horas?)(?!\w))?(?![\w:/]|[.,]\d)",
    re.I,
)
_EAST = re.compile(
    r"(?<!\d)(?P<year>\d{2,4})\s?[年년]\s?(?:(?P<month>\d{1,2})\s?[月월]\s?(?:(?P<day>\d{1,2})\s?[日号號일])?)?"
)
_EAST_DAY = re.compile(r"(?<!\d)(?P<month>\d{1,2})\s?[月월]\s?(?P<day>\d{1,2})\s?[日号號일]")
_EAST_ERA = re.compile(r"(?:明治|大正|昭和|平成|令和|民国|民國)(?=\d)")
_VIETNAMESE = re.compile(r"(?:ngày )?(?P<day>\d{1,2}) tháng (?P<month>\d{1,2})(?:,? (?:năm )?(?P<year>\d{4}))?", re.I)
_WORD = r"(?:[\u0e01-\u0e4e]{1,20}|[\u0900-\u0963]{1,20}|[^\W\d_][^\W\d_']{0,30})"
_PERCENT_WORDS = r"процент(?:а|ов)?|відсотк(?:ів|и|а)|प्रतिशत|في المئة|بالمئة|אחוז|אחוזים|por cien|na sto"
_NUMBER = re.compile(
    rf"(?<![A-Za-z0-9_.,:/-])(?P<sign>-(?=\d))?(?P<before>(?:[$€£¥₹₩₽₺฿₫]|(?<![^\W\d_]){CODES})\s?)?"
    rf"(?P<number>\d{{1,3}}(?:[.,' ]\d{{3}})+(?:[.,]\d{{1,4}})?(?!\d)|\d{{1,30}}(?:[.,]\d{{1,6}})?)"
    rf"(?:\s?(?P<scale>{'|'.join(sorted(SCALE_OF, key=len, reverse=True))})(?![^\W\d_])\.?)?(?:\s?(?:d'|de\s)(?=euro|dollar|dólar))?"
    rf"(?P<after>\s?(?:%|(?:{PERCENT}|{_PERCENT_WORDS})(?![^\W\d_])|[$€£¥₹₩₽₺฿₫°]C?)|\s?[\u30a1-\u30faー]{{1,12}}|\s?[\u4e00-\u9fff\uac00-\ud7a3]|\s?{_WORD})?",
    re.I,
)
_BEFORE_NUMBERS = frozenset("$€£¥₹")
_COMMA_DECIMALS = frozenset(listed("de fr es it pt pl ru uk tr nl sv vi"))
_IS_PERCENT = re.compile(rf"(?:{PERCENT}|{_PERCENT_WORDS})\Z", re.I)
_UNITS = re.compile(
    r"(?:m|km|cm|mm|kg|g|mg|t|l|ml|ha|gb|mb|tb|kwh|mw|gw|h|min|euro|euros|eur|usd|vnd|đ|zł|руб|₫|км|м|см|кг|г|т|га"
    r"|%|[$€£¥₹₩₽₺฿₫])\Z",
    re.I,
)


def find_dates(line: str, language: str) -> tuple[list[str], str]:
    """Return the dates and numbers of a line of this language as keywords, and the line without them.

    A number stands with the word that follows it, and alone.
    """
    found: list[str] = []

    def date(match: re.Match[str]) -> str:
        found.extend(_date(match, language))
        return " ; "

    if not any(map(str.isdigit, line)):
        return found, line
    if language in ("zh", "ja", "ko"):
        line = _EAST_DAY.sub(date, _EAST.sub(date, line))
    if language == "vi":
        line = _VIETNAMESE.sub(date, line)
    if language in _MONTHS:
        line = _month_year(language).sub(date, _named(language).sub(date, line))
    line = _NUMERIC.sub(date, line)

    def clock(match: re.Match[str]) -> str:
        found.append(f"{int(match['hour'])}:{match['minute']}")
        return " ; "

    line = _CLOCK.sub(clock, line)

    def number(match: re.Match[str]) -> str:
        found.extend(_number(match, language))
        after = match["after"] or ""
        word = after.strip()
        return " ; " + ("" if _UNITS.match(word) or _IS_PERCENT.match(word) or currency_of(word) else after)

    return found, _NUMBER.sub(number, line)


def _date(match: re.Match[str], language: str) -> Iterable[str]:
    parts = match.groupdict()
    day, month, year = parts.get("day"), parts.get("month"), parts.get("year")
    if language in ("zh", "ja", "ko"):
        marks = "년월일" if language == "ko" else "年月日"
        era = _EAST_ERA.search(match.string, max(0, match.start() - 2), match.start() + 1)
        written = [(era[0] if era else "") + year + marks[0]] if year else []
        written += [str(int(n)) + mark for n, mark in ((month, marks[1]), (day, marks[2])) if n]
        return [(" " if language == "ko" else "").join(written)]
    number = _MONTHS.get(language, {}).get(month.casefold()) if month and not month.isdigit() else None
    if number is None:
        number = int(month) if month and month.isdigit() else None
    if number is None or not 1 <= number <= 12:
        return [match[0]]
    names = _IN_ORDER.get(language)
    name = names[number - 1] if names else None
    if name is None:
        return [f"{int(day)}/{number}/{year}" if day and year else match[0]]
    written = [str(int(day))] if day else []
    by = " de " if language in ("es", "pt") else " "
    return [by.join([*written, name, year]), year] if year else [by.join([*written, name])]


def _number(match: re.Match[str], language: str) -> Iterable[str]:
    written = _plain(match["number"], language)
    short = re.sub(r"\.?0+\Z", "", written) if "." in written else written
    digits = dict.fromkeys((written, short))
    if scale := scale_of(match["scale"] or ""):
        digits = dict.fromkeys(scaled(short, scale))
    return dict.fromkeys(form for each in digits for form in _amount(match, each))


def _amount(match: re.Match[str], digits: str) -> Iterable[str]:
    sign = match["sign"] or ""
    before, after = (match["before"] or "").strip(), (match["after"] or "").strip()
    if (
        currency := currency_of(before)
        or currency_of(after)
        or (after if after in _BEFORE_NUMBERS and not before else "")
    ):
        # Wherever a language writes them: "12,50 €" and "12,50 Euro" meet "€12.50", and "CHF 5" meets "5 CHF".
        before, after = (currency, "") if currency in _BEFORE_NUMBERS else ("", currency)
    if _IS_PERCENT.match(after):
        after = "%"
    if after and not after.isalpha():
        return [f"{sign}{digits}{after}", sign + digits]
    if before:
        return [f"{sign}{before}{digits}", sign + digits]
    if after > "\u2e80" and (len(after) == 1 or after < "\u3400"):
        return [f"{sign}{digits}{after}", sign + digits]
    return [f"{sign}{digits} {after}", sign + digits] if after else [sign + digits]


def _plain(written: str, language: str) -> str:
    """A number without thousands separators and with a decimal point."""
    groups = re.fullmatch(r"(\d{1,3}(?:([.,' ])\d{3})(?:\2\d{3})*)(?:([.,])(\d{1,6}))?", written)
    comma = language in _COMMA_DECIMALS
    if groups and groups[2] != groups[3] and (groups[2] in "' " or groups[3] or (groups[2] == ".") == comma):
        whole = re.sub(r"\D", "", groups[1])
        return whole + (f".{groups[4]}" if groups[4] else "")
    return written.replace(" ", "").replace("'", "").replace(",", ".")
