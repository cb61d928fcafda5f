"""Words of languages without spaces between them, or with endings on every word: pieces that meet.

There is no dictionary here. Of a stretch of Chinese characters all pieces of a few characters are taken, of Japanese the
stretches of one script and their pieces, of Thai what stands between small words and its beginnings and ends. Pieces of
what enough groups say are counted as often as the whole, and are then shown once (`folding`).
"""

# ruff: noqa: E501 - tables

from __future__ import annotations

import re
from collections.abc import Iterator

from robustrag_integrations.keywords.closed_classes import listed

_LONGEST_PIECE = 8  # characters
_LONGEST_RUN = 120  # characters of one stretch that are cut in pieces
_HAN = "\u3400-\u9fff\u3005\u3007"
_CHINESE_RUN = re.compile(f"[{_HAN}·A-Za-z0-9]*[{_HAN}][{_HAN}·A-Za-z0-9]*")
# No piece begins or ends with these: they are grammar far more often than parts of names.
_CHINESE_EDGES = frozenset(
    "的了是在由被把着過过也都就而且与與及以从從到为為這这那該该它他她们們其此所之於于並并即则則吗嗎呢吧啊据據"
)
_CHINESE_ENDS = _CHINESE_EDGES | frozenset("中和或有对對向")
# Words in which those characters are no grammar; of them no piece begins within the word.
_CHINESE_WORDS = re.compile(
    "以色列|土耳其|马其顿|馬其頓|埃及|也门|也門|马耳他|馬耳他|的黎波里|那不勒斯|那曲|都柏林|都灵|都靈|都江堰|都市|成都|京都|首都|古都|新都|丰都|"
    "台中|臺中|汉中|漢中|关中|關中|高中|初中|即墨|和田|和平|和歌山|共和|温和|溫和|饱和|华为|華為|行为|行為|吉他|规则|規則|原则|原則|数据|數據|"
    "证据|證據|自由|理由|成就|国有|國有|私有|方向|反对|反對|酒吧|存在|合并|合併|参与|參與|于谦|之江|被子|火把|以太"
)
_CHINESE_STOPS = re.compile(
    "答案|根据|根據|资料|資料|介绍|介紹|文本|文中|文章|文档|文檔|提到|说明|說明|记载|記載|表示|因此|所以|可以|位于|位於|主要|当地|當地|我们|我們|他们|一个|一個|"
    "没有|沒有|这个|這個|以及|或者|如果|但是|不过|由于|由於|作为|作為|成为|成為|称为|稱為|叫做|名叫|就是|还是|還是|都是|正是|应该|應該|显示|顯示|写道|寫道|说|說"
)
_NUMERALS = frozenset("一二三四五六七八九十百千万萬亿億兆零〇两兩0123456789.")
_NEGATING = frozenset("不没沒未非无無")
_SHORT_KANJI = 4  # characters of a compound of two words of two
_JAPANESE_RUN = re.compile(
    f"[{_HAN}A-Za-z0-9]+(?:[ヶケノ之][{_HAN}]+)*|[\u30a1-\u30faー]+(?:・[\u30a1-\u30faー]+)*|[\u3041-\u3096]+"
)
_JAPANESE_PIECE = re.compile(f"[{_HAN}ヶケノ]+|[\u30a1-\u30faー]+")
_HIRAGANA_GRAMMAR = re.compile(
    r"(?:(?:に)?よると|によれば|によって|とのこと|とあり(?:ます)?|という|として|について|です(?:か|が)?|でした|でしょう|ます|ました|ません|でき|であ(?:る|り|った)|だった|です|"
    r"され(?:て|た|ました|ています)?|して(?:い(?:ます|る|た))?|しました|する|した|され|から|まで|より|ので|など|こと|もの|ため|これ|それ|この|その|あの|ここ|そこ|さん|"
    r"くん|ちゃん|様|いる|います|いました|ある|あります|なる|なり|は|が|を|に|で|と|も|の|へ|や|か|ね|よ|だ|な|た|て|し)+"
)
_JAPANESE_STOPS = frozenset(
    listed("文書 本文 記事 答 答え 回答 文章 資料 質問 書 人 年 月 日 何 誰 当 同 的 者 主 引 名 代表")
)
_THAI_RUN = re.compile("[\u0e01-\u0e3a\u0e40-\u0e4e]+")
_THAI_CLUSTER = re.compile("[\u0e40-\u0e44]?[\u0e01-\u0e2e](?:[\u0e30-\u0e3a\u0e45\u0e47-\u0e4e])*")
_SHORT_THAI = 6  # syllables, roughly: one word or name, which is not cut
_THAI_STOPS = re.compile(
    "คำตอบคือ|ตามเอกสาร|ตามข้อความ|เนื่องจาก|เพราะ|ก่อตั้งโดย|ก่อตั้ง|เป็นคน|เป็นผู้|ชื่อว่า|ชื่อ|ได้แก่|คือ|โดย|เป็น|และ|หรือ|ของ|ให้|ซึ่ง|"
    "จากนั้น|จาก|อยู่ที่|อยู่|แห่งนี้|แห่ง|เมื่อ|วันที่|ตั้งแต่|จนถึง|ระบุว่า|กล่าวว่า|เขียนว่า|บอกว่า|ว่า|คุณ|นาย|นางสาว|นาง|ครับ|ค่ะ|นี้|นั้น|ที่|ใน|ไป|มา|"
    "ถูก|ได้|จะ|ต้อง|แล้ว|กับ|ด้วย|ทำให้|มี|ไว้|ขึ้น|ตรงกับ|เท่านั้น|ไม่"
)
_THAI_DENIED = re.compile("ไม่(?:ได้|ให้|ถูก|มี|ต้อง|จะ)*\\Z")
_SCRIPT_RUN = re.compile(f"[{_HAN}]+|[\u30a1-\u30faー]+|[\u3041-\u3096]+|[\u0e01-\u0e4e]+")
_KOREAN_ENDINGS = sorted(
    listed(
        "입니다 이었습니다 였습니다 이에요 예요 이다 이라고 라고 이라는 라는 이며 이고 이었다 였다 이란 인데 "
        "이라 으로써 로써 으로서 로서 으로부터 로부터 으로 에서는 에서도 에서 에게서 에게 에는 에도 에의 까지 "
        "부터 처럼 보다 마다 조차 이나 이든 은 는 이 가 을 를 의 에 로 와 과 도 만 께서 한테 하고 이었던 였던 "
        "인 씨 님 씨가 씨는 씨의 시 때문에 때문이다 때문입니다 들 들이 들은 들을 들의"
    ),
    key=len,
    reverse=True,
)
_KOREAN_WORD = re.compile("[\uac00-\ud7a3A-Za-z0-9]+")
_KOREAN_VERBS = re.compile(
    "(?:습니다|ㅂ니다|합니다|됩니다|했다|됐다|되었다|하였다|한다|된다|했습니다|되었습니다|됐습니다|있다|있다고|있습니다|없다|없습니다|이다|입니다|니다|니까|해요|세요|졌다고|졌다|"
    "다고|하는|되는|된|한|할|하여|해서|하고|되어|돼|따르면|대한|위한|위해|통해|있는|없는|였다|었다|았다|렸다)\\Z"
)
_KOREAN_DENIES = re.compile("(?:않|못하|못한|못했)")
_KOREAN_STOPS = frozenset(
    listed(
        "그 이 저 것 수 등 및 또는 그리고 그러나 하지만 또한 문서 문서에 문서의 본문 본문에는 본문에 본문은 "
        "글 따르면 답 답은 정답은 정답 바로 모두 매우 가장 약 총 곳 곳은 사람 사람은 때 때문 그것은 이것은 "
        "우리 여기 거기 이곳 그곳 이곳은 그곳은 있는 있다 한다 합니다 했다 했습니다 되었다 된다 됩니다 입니다 "
        "것은 것이다 것입니다 의해"
    )
)


def chinese_pieces(text: str) -> Iterator[str]:
    """Yield the pieces of a line of Chinese."""
    for match in _CHINESE_RUN.finditer(_CHINESE_STOPS.sub(" ", text)):
        run = match[0][:_LONGEST_RUN]
        yield from _chinese_run(run)
        if len(run) <= _LONGEST_PIECE + 4 and run[0] not in _CHINESE_EDGES and run[-1] not in _CHINESE_ENDS:
            yield run


def _chinese_run(run: str) -> Iterator[str]:
    words = [word.span() for word in _CHINESE_WORDS.finditer(run)]
    in_words = {place for start, end in words for place in range(start, end)}
    within = in_words - {start for start, _ in words}
    for start in range(len(run)):
        if start in within or (run[start] in _CHINESE_EDGES and start not in in_words):
            continue
        if start > 0 and (run[start - 1] in _NEGATING or _in_a_numeral(run, start)):
            continue
        for end in range(start + 2, min(len(run), start + _LONGEST_PIECE) + 1):
            is_edge = run[end - 1] in _CHINESE_ENDS and end - 1 not in in_words
            if not is_edge and not _in_a_numeral(run, end):
                yield run[start:end]


def _in_a_numeral(run: str, place: int) -> bool:
    """Whether a cut at this place would take a numeral apart: "一百万" is not "一百"."""
    return place < len(run) and run[place - 1] in _NUMERALS and run[place] in _NUMERALS


def japanese_pieces(text: str) -> Iterator[str]:
    """Yield the stretches of a line of Japanese and their pieces, and two that の joins."""
    runs = list(_JAPANESE_RUN.finditer(text))
    for position, match in enumerate(runs):
        run = match[0][:_LONGEST_RUN]
        if _is_hiragana(run):
            left = _HIRAGANA_GRAMMAR.sub(" ", run).split()
            yield from (piece for piece in left if len(piece) > 2)
            following = runs[position + 1] if position + 1 < len(runs) else None
            if run == "の" and position and following and match.start() == runs[position - 1].end():
                before, after = runs[position - 1][0], following[0]
                near = following.start() == match.end() and len(before) + len(after) < 2 * _LONGEST_PIECE
                if near and not _is_hiragana(before) and not _is_hiragana(after):
                    yield f"{before}の{after}"
            continue
        if run in _JAPANESE_STOPS:
            continue
        if len(run) > 1:
            yield run
        if not _JAPANESE_PIECE.fullmatch(run) or "\u30a1" <= run[0] <= "\u30fa":
            continue
        for size in range(2, min(len(run), _LONGEST_PIECE + 1)):
            if run[:size] not in _JAPANESE_STOPS:
                yield run[:size]
            if size > 2 or len(run) == _SHORT_KANJI:
                yield run[-size:]


def _is_hiragana(text: str) -> bool:
    return "\u3041" <= text[0] <= "\u3096"


def thai_pieces(text: str) -> Iterator[str]:
    """Yield what stands between small words of a line of Thai, its beginnings and its ends, and neighbours joined."""
    before: tuple[int, str] | None = None
    marked = _THAI_STOPS.sub(lambda match: "\u0000" * len(match[0]), text)
    for match in _THAI_RUN.finditer(marked):
        run = match[0][:_LONGEST_RUN]
        clusters = _THAI_CLUSTER.findall(run)
        if _THAI_DENIED.search(text, 0, match.start()):
            yield f"ไม่{run}"
            before = None
            continue
        if len(clusters) < 2:
            continue
        yield run
        if before is not None and text[before[0] : match.start()] == " ":
            yield f"{before[1]} {run}"
        before = (match.end(), run)
        if len(clusters) <= _SHORT_THAI:
            continue
        for size in range(2, min(len(clusters), 14)):
            yield "".join(clusters[:size])
            yield "".join(clusters[-size:])


def korean_words(text: str) -> list[str]:
    """Return the words of a line of Korean without the particles at their ends; empty strings where a phrase ends.

    A verb that is denied stands with the negation, as one word: "안 열려" for "안 열려" and "열려 있지 않다".
    """
    words: list[str] = []
    denied = False
    for token in re.split(r"([\s]+|[^\w\s]+)", text):
        if not token or token.isspace():
            continue
        if token in ("안", "못"):
            denied = True
            continue
        if _KOREAN_DENIES.match(token) and any(words):
            _deny_last(words)
            continue
        if denied and _KOREAN_WORD.fullmatch(token):
            words += ["", f"안 {_KOREAN_VERBS.sub('', token) or token}", ""]
            denied = False
            continue
        if not _KOREAN_WORD.fullmatch(token):
            words.append("")
            continue
        bare = without_particle(token)
        words.append("" if token in _KOREAN_STOPS or bare in _KOREAN_STOPS or _KOREAN_VERBS.search(bare) else bare)
        if bare != token:
            words.append("")
    return words


def _deny_last(words: list[str]) -> None:
    """Put the negation to the last word: "열려 있지 않다"; the auxiliary in between goes."""
    while words and (not words[-1] or words[-1] in ("있지", "되지", "하지")):
        words.pop()
    if words and not words[-1].startswith("안 "):
        words[-1:] = ["", f"안 {words[-1].removesuffix('지')}", ""]


def without_particle(word: str) -> str:
    """Return a Korean word without its particle or copula; at least two syllables stay."""
    for ending in _KOREAN_ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 2:
            return word[: -len(ending)]
    return word


def word_count(keyword: str) -> int:
    """How many words a keyword has; where none stand between spaces, stretches of a script, of Han characters two."""
    return sum(map(_words_in, keyword.split()))


def _words_in(piece: str) -> int:
    if piece.isascii():
        return 1
    runs = _SCRIPT_RUN.findall(piece)
    return max(1, sum(_words_in_run(run) for run in runs))


def _words_in_run(run: str) -> int:
    if "\u0e01" <= run[0] <= "\u0e4e":
        return max(1, len(_THAI_CLUSTER.findall(run)) // _SHORT_THAI)
    if _is_hiragana(run):
        return 0
    return max(1, len(run) // 2) if not "\u30a1" <= run[0] <= "\u30fc" else 1
