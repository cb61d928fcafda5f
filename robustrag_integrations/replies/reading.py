"""Reads the answer of a reply, without reasoning. What was cut, refused or never came to an answer does not count.

One step for every method, framework, certificate and evaluation. Each reply is read for itself: what a passage makes a
model write costs the source of that passage alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.errors import ModelError
from robustrag_integrations._util.redaction import redacted
from robustrag_integrations.models.base import BLANK, Response
from robustrag_integrations.text.prompts import ABSTENTION
from robustrag_integrations.text.reasoning import parts_of

CutReplies = Literal["abstain", "count"]

LONGEST_RESPONSE = 100_000  # characters of one answer that are looked at
CUT_MARK = " […]"

_CUT = {
    "length": "cut at its limit of tokens",
    "content_filter": "stopped by the server's content filter",
    "tool_calls": "it called a tool in place of answering",
}
_EMPTY = "the reply is empty"
_NO_ANSWER = "there is reasoning and no answer after it"
_MORE_TOKENS = "raise the model's limit of tokens"
_ENDLESS = "its reasoning never ended"
_FIXES = {
    _CUT["content_filter"]: "ask something else",
    _CUT["tool_calls"]: "ask the model without tools",
    _NO_ANSWER: "turn reasoning off",
    _EMPTY: "look at what the model sends: its server or class may leave out that it thinks and never answers",
}


def counted(response: Response, cut_replies: CutReplies = "abstain") -> Response:
    """Return an isolated response as it counts: its text is the answer alone; `note` says what keeps it from counting.

    A failure stays as it is. A cut reply abstains; with "count" it counts as far as it goes. The `logprobs` stay those
    of the whole reply; they are dropped where its text held more than the answer.
    """
    if response.text is None and response.refusal is None:
        return response
    answer, reason = _read(response)
    text = answer.text or ""
    if len(text) > LONGEST_RESPONSE or answer.text is None:
        answer = replace(answer, text=text[:LONGEST_RESPONSE], logprobs=None)
    if reason is None:
        return answer
    if response.refusal is None and cut_replies == "count" and text.strip():
        return replace(answer, note=f"{reason}; what is there counts")
    return replace(answer, abstains=True, note=reason)


def final_answer(response: Response, cut_replies: CutReplies = "abstain") -> Response:
    """Return the final response for the user: its text is the answer, never empty, never half of one.

    A refusal, or nothing but reasoning, is an abstention. With `cut_replies="count"` a cut answer ends in `CUT_MARK`.
    Its `note` is for the answer's warnings.

    Raises:
        ModelError: the call failed, or what it gave is cut and `cut_replies` is "abstain", or nothing is left of it.
    """
    if response.text is None and response.refusal is None:
        raise ModelError(f"the final call failed: {redacted(response.error or 'no text')}") from response.cause
    answer, reason = _read(response)
    text = (answer.text or "").strip()
    if response.refusal is not None:
        return replace(answer, text=ABSTENTION, note=f"the final call was {reason}; the answer is an abstention")
    if reason is None:
        note = answer.note and f"the final call: {answer.note}"
        same = text and text == answer.text and note is answer.note
        return answer if same else replace(answer, text=text or ABSTENTION, note=note)
    if cut_replies == "count" and text:
        return replace(answer, text=text + CUT_MARK, note=f"the answer is incomplete: {reason}")
    allowed = ", or take it as far as it goes with cut_replies='count'" if text else ""
    raise ModelError(f"the final call gave no complete answer: {reason}; {_fix(reason, answer)}{allowed}")


def complete_answer(
    response: Response, cut_replies: CutReplies = "abstain", limit: str | None = None
) -> tuple[Response, str | None]:
    """Return a reply to the only prompt about trusted passages, its text the answer alone, and why it is no whole one.

    None of the reason if it is; else the reason names the fix, and `limit` the argument that it is about.
    """
    if response.text is None and response.refusal is None:
        return response, f"the call failed: {redacted(response.error or 'no text')}"
    answer, reason = _read(response)
    answer = replace(answer, text=(answer.text or "").strip())
    if reason is None and not answer.text:
        reason = answer.note or _EMPTY
    if response.refusal is not None:
        return answer, f"the model {reason}"
    if reason == _CUT["length"] and cut_replies == "count" and answer.text:
        return replace(answer, text=answer.text + CUT_MARK, note=f"the answer is incomplete: {reason}"), None
    return answer, None if reason is None else f"{reason}; {_fix(reason, answer, limit)}"


def _fix(reason: str, response: Response, limit: str | None = None) -> str:
    """What to do about a reply that is no whole answer; `limit`: the argument that says how long it may be."""
    found = _FIXES.get(reason) or (_MORE_TOKENS if limit is None else f"raise {limit}=")
    thinks = reason not in _FIXES and (response.reasoning_chars or reason.startswith(_ENDLESS))
    return f"{found}, or turn reasoning off" if thinks else found


def reply_warnings(responses: Sequence[Response], limit: str | None = None) -> list[str]:
    """Warn of counted responses that failed, were refused, empty, cut or without an answer, with number and reason.

    `limit`: the argument of the model that says how long a reply may be.
    """
    total = len(responses)
    failed = [
        r.error or "no text" for r in responses if r.text is None and r.refusal is None and r.skipped_reason is None
    ]
    refused = sum(r.refusal is not None for r in responses)
    found = []
    if failed:
        why = printable(redacted(failed[0]), 200)
        found.append(f"{len(failed)} of {total} sources failed ({why}); these count as abstentions")
    if refused:
        found.append(f"the model refused to answer {refused} of {total} sources; these abstain")
    noted = [r for r in responses if r.note is not None and r.refusal is None and r != BLANK]
    for (abstains, reason), count in Counter((r.abstains, r.note or "") for r in noted).most_common():
        longest = max((r for r in noted if r.note == reason), key=lambda r: r.reasoning_chars)
        fix = f"; these abstain: {_fix(reason, longest, limit)}" if abstains else ""
        found.append(f"the replies of {count} of {total} sources do not count in full ({reason}){fix}")
    return found


def ending_warnings(final: Response, responses: Sequence[Response]) -> list[str]:
    """Warn of a final reply without a finish reason where a source's reply had one: it may have broken off."""
    if final.finish != "unknown" or not (final.text or "").strip() or final.refusal is not None:
        return []
    if all(response.finish == "unknown" for response in responses):
        return []
    return ["the final reply ended without a reason, where others gave one: it may have broken off, and may be cut"]


def _read(response: Response) -> tuple[Response, str | None]:
    """Return a response without its reasoning, and why it is not a whole answer; None if it is one."""
    parts = parts_of(response.text or "")
    chars = response.reasoning_chars + parts.reasoning_chars
    aloud = response.aloud or parts.reasoning_chars > 0
    answer = response
    if parts.answer != response.text or chars != response.reasoning_chars or aloud != response.aloud:
        logprobs = None if parts.reasoning_chars else response.logprobs  # which of them are the answer's is not known
        answer = replace(response, text=parts.answer, reasoning_chars=chars, aloud=aloud, logprobs=logprobs)
    cut = _CUT.get(response.finish)
    if response.refusal is not None:
        said = printable(redacted(response.refusal), 200).strip()
        return answer, f"refused{f': {said}' if said else ''}"
    if parts.unfinished:
        return answer, f"{_ENDLESS}{f': {cut}' if cut else ''}"
    if cut is not None:
        return answer, cut
    if not parts.answer.strip() and (chars or not response.abstains):
        return replace(answer, abstains=True, note=_NO_ANSWER if chars else _EMPTY), None
    return answer, None
