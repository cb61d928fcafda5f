"""Scripts whose words have no spaces between them, or carry particles: Korean endings, and characters at the edges.

No dictionary stands here. Keys of Chinese, Japanese and Thai are runs of characters that begin and end with none that is
grammar far more often than a part of a name.
"""

# ruff: noqa: E501 - tables

from __future__ import annotations

import re

from robustrag_integrations.keywords.closed_classes import listed

_KOREAN_ENDINGS = sorted(
    listed(
        "입니다 이었습니다 였습니다 이에요 예요 이다 이라고 라고 이라는 라는 이며 이고 이었다 였다 이란 인데 이라 으로써 로써 "
        "으로서 로서 으로부터 로부터 으로 에서는 에서도 에서 에게서 에게 에는 에도 에의 까지 부터 처럼 보다 마다 조차 이나 이든 "
        "은 는 이 가 을 를 의 에 로 와 과 도 만 께서 한테 하고 이었던 였던 인 씨 님 씨가 씨는 씨의 시 때문에 때문이다 "
        "때문입니다 들 들이 들은 들을 들의"
    ),
    key=len,
    reverse=True,
)

# Words that say nothing of an answer's own; they come as one token.
_CHINESE = (
    "答案|根据|根據|资料|資料|介绍|介紹|文本|文中|文章|文档|文檔|提到|说明|說明|记载|記載|表示|因此|所以|可以|位于|位於|主要|当地|當地|我们|我們|他们|一个|一個|"
    "没有|沒有|这个|這個|以及|或者|如果|但是|不过|由于|由於|作为|作為|成为|成為|称为|稱為|叫做|名叫|就是|还是|還是|都是|正是|应该|應該|显示|顯示|写道|寫道|说|說"
)
_JAPANESE = (
    r"(?:(?:に)?よると|によれば|によって|とのこと|とあり(?:ます)?|という|として|について|です(?:か|が)?|でした|でしょう|ます|ました|ません|でき|であ(?:る|り|った)|だった|です|"
    r"され(?:て|た|ました|ています)?|して(?:い(?:ます|る|た))?|しました|する|した|され|から|まで|より|ので|など|こと|もの|ため|これ|それ|この|その|あの|ここ|そこ|さん|"
    r"くん|ちゃん|様|いる|います|いました|ある|あります|なる|なり|は|が|を|に|で|と|も|の|へ|や|か|ね|よ|だ|な|た|て|し)+"
)
_THAI = (
    "คำตอบคือ|ตามเอกสาร|ตามข้อความ|เนื่องจาก|เพราะ|ก่อตั้งโดย|ก่อตั้ง|เป็นคน|เป็นผู้|ชื่อว่า|ชื่อ|ได้แก่|คือ|โดย|เป็น|และ|หรือ|ของ|ให้|ซึ่ง|"
    "จากนั้น|จาก|อยู่ที่|อยู่|แห่งนี้|แห่ง|เมื่อ|วันที่|ตั้งแต่|จนถึง|ระบุว่า|กล่าวว่า|เขียนว่า|บอกว่า|ว่า|คุณ|นาย|นางสาว|นาง|ครับ|ค่ะ|นี้|นั้น|ที่|ใน|ไป|มา|"
    "ถูก|ได้|จะ|ต้อง|แล้ว|กับ|ด้วย|ทำให้|มี|ไว้|ขึ้น|ตรงกับ|เท่านั้น|ไม่"
)
_DENIALS = (
    "(?:では|じゃ|で)?(?:ありません|な(?:い|かっ|く|し))|ません|不是|没有|沒有|并非|並非|不|没|沒|未|非|ไม่(?:ได้|ใช่|มี)?"
)
_FILLERS = f"(?:{_THAI})|(?:{_CHINESE})|(?:{_JAPANESE})"
TOKENS = f"(?:{_DENIALS})|{_FILLERS}"
"""The forms that come as one token: denials, which count, and fillers."""

_IS_DENIAL = re.compile(_DENIALS).fullmatch
_IS_FILLER = re.compile(_FILLERS).fullmatch


def is_filler(word: str) -> bool:
    """True if a token of a script without spaces is grammar, or said of any answer."""
    return _IS_FILLER(word) is not None


def is_denial(word: str) -> bool:
    """True if a token of a script without spaces denies, which no small word does."""
    return _IS_DENIAL(word) is not None


def korean_stem(word: str) -> str:
    """A Korean word without its particle or copula; at least two syllables stay."""
    for ending in _KOREAN_ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 2:
            return word[: -len(ending)]
    return word
