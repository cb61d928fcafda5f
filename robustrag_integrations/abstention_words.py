"""The words in which replies abstain, by language: a table for `abstention`.

Written without Latin accents, case-folded. `denies`: a clause that says that nothing is known or given. `of_source`:
words that deny where a text, or what was asked for, is spoken of: a document that does not contain a date says nothing,
a drink that does not contain alcohol is an answer. `aside`: a clause that says nothing of its own next to one that
denies (an apology, what else the text is about). `turns`: words
before which a new clause begins. `asks`: words that begin an indirect question, which belongs to what is denied.
`sources` and `asked`: words for a text and for what was asked for (`ASKED_FOR`); `filler`: how an apology or an offer of
help begins; of languages whose words stand in no list that all share.
"""

# ruff: noqa: E501 - tables

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter


@dataclass(frozen=True)
class AbstentionWords:
    """One language's words, as regular expressions; alternatives are tried anywhere in a clause."""

    denies: str
    aside: str
    of_source: str = ""
    turns: str = ""
    asks: str = ""
    sources: str = ""
    asked: str = ""
    filler: str = ""


def listed(words: str) -> list[str]:
    """Return the words of a space-separated list."""
    return words.split()


_W = r"(?:[\w'’-]+ )"

_SOURCE_EN = (
    "text|texts|passage|passages|document|documents|context|contexts|excerpt|excerpts|source|sources|article|articles"
    "|information|snippet|snippets|paragraph|paragraphs|material|page|pages|extract|content|story|report|author"
    "|answer|question|sentences?|lines|data|details|detail"
)
_TELL_EN = (
    "say|says|said|state|states|stated|mention|mentions|mentioned|specify|specifies|specified|provide"
    "|provides|provided"
    "|contain|contains|contained|include|includes|included|give|gives|given|indicate|indicates|indicated|disclose"
    "|discloses|disclosed|reveal|reveals|revealed|cover|covers|covered|discuss|discusses|discussed|address|addresses"
    "|addressed|answer|answers|answered|tell|tells|name|names|named|list|lists|listed|identify|identifies|identified"
    "|describe|describes|described|supply|supplies|supplied|offer|offers|offered|refer|refers|explain|explains"
    "|explained|clarify|clarifies|touch|touches|shed|sheds|contained|found|recorded|report|reports|reported|present"
    "|available|known|clear|stipulated|noted|detailed|spelled|determined|inferred|derived|deduced|established"
    "|documented|go into|talk about|have|hold|allow|help|let|elaborate|comment|bring up"
)
_SURELY_TELL_EN = (
    "say|says|said|state|states|stated|mention|mentions|mentioned|specify|specifies|specified|indicate|indicates"
    "|indicated|disclose|discloses|disclosed|tell us|discuss|discussed|elaborate|go into|specifically (?:say|mention)"
)
_STRONG_EN = (
    "stated|mentioned|specified|indicated|disclosed|provided|given|revealed|discussed|spelled out"
    "|touched (?:on|upon)|referred to"
)
_WEAK_EN = (
    "addressed|named|answered|described|explained|detailed|recorded|noted|documented|determined"
    "|known|found|identified|inferred|answerable|derivable|part of"
)
_THIN_EN = "available|clear|included|contained|present|listed|covered"

_STATED_EN = "stated|mentioned|specified|indicated|disclosed|spelled out"
_WRITING_EN = (
    "docs?|documentation|readme|manual|guide|chapter|book|letter|transcript|table|notes?|entry|record|file|website"
    "|e-?mail|post|review|summary|abstract|section|caption|writer|log"
)
_HERE_EN = (
    r"(?: (?:anywhere|in (?:the|this|that|my|any|what)|from (?:the|this)|by (?:the|this)|here|there"
    r"|to me|at all)\b.*)?$"
)
_LEARN_EN = (
    "know|tell|say|answer|determine|find|identify|see|provide|confirm|verify|infer|locate|give|help"
    "|assist|deduce|work"
    "|establish|name|state|respond|make out|figure|derive|conclude|be sure|be certain|have|spot"
    "|discover|offer|specify"
    "|judge|decide|guess"
)
_NOT = r"(?:not|never|n't|nowhere|neither|cannot)"

WORDS: dict[str, AbstentionWords] = {
    "en": AbstentionWords(
        denies=(
            rf"\b(?:i|we) ?(?:really |simply |just |honestly |also )?(?:do|did|can|ca|could|would|'m|am|'re|are"
            rf"|was|were|have)?(?: not|n't|not)"
            rf" {_W}{{0,3}}?(?:{_LEARN_EN}|able|sure|certain|aware|familiar|given|told|provided|enough)\b"
            rf"|\b(?:i|we) (?:dont|cant|couldnt|cannot) {_W}{{0,3}}?(?:{_LEARN_EN})\b"
            r"|\b(?:i am|i'm|we are|we're) (?:un(?:able|sure|certain|aware)|at a loss|in the dark)"
            r"|(?:^|\b(?:i|we) (?:am |are |was |were )|'m |'re )(?:[a-z]+ )?unable to\b"
            r"|\b(?:i|we) (?:have|had|see|find|found) (?:no|nothing)\b|^(?:\w+ )?no (?:idea|clue)\b(?! (?:is|was|were|has|had)\b)|^not (?:sure|certain)\b"
            r"|\b(?:i|we) (?:lack|fail to|failed to)\b|\b(?:i|we)(?:'d| would)? need (?:\w+ )?more (?:information|context|detail)"
            rf"|\bthere (?:is|are|was|were)(?:n't| not) {_W}{{0,2}}?(?:info|information|context|data|details?|mention|indication|reference|answer)\b"
            r"|\b(?:do|does|did)(?: not|n't) (?:\w+ )?answer (?:the|this|that|your) question\b|\bi(?:'d| would) rather not (?:guess|say|answer)\b"
            r"|\b(?:i|we) ha(?:ve|d)(?: not|n't) (?:\w+ )?(?:found|got|seen) (?:\w+ )?(?:information|info|answer|mention|details?)\b"
            r"|^more (?:information|context|details?) (?:is|are|would be) (?:needed|required)\b|^unsure$"
            r"|\b(?:text|passage|document|context|excerpt|article|information|question) is too (?:vague|short|general|limited|brief)\b"
            r"|^not (?:who|what|when|where|why|how|whether)\b|\bno way (?:to|of) (?:tell|know|say|determin|answer)"
            rf"|^(?:do|does|did)(?: not|n't) {_W}{{0,3}}?(?:{_SURELY_TELL_EN})\b"
            rf"|\b(?:it|this|that|there|which|what|who|where|when|{_WRITING_EN})\b ?(?:[\w'-]+ ){{0,6}}?"
            rf"(?:do|does|did|is|are|was|were|has|have|had)(?: {_NOT}"
            rf"|n't) {_W}{{0,3}}?(?:{_SURELY_TELL_EN})\b(?! (?:as|to be|for)\b)"
            rf"|\b(?:{_SOURCE_EN})\b ?(?:[\w'-]+ ){{0,6}}?"
            rf"(?:do|does|did|is|are|was|were|has|have|had|can|ca|could|will|would)?(?: {_NOT}"
            rf"|n't) {_W}{{0,3}}?(?:{_TELL_EN})\b(?! (?:as|to be|for)\b)"
            rf"|(?:\bis|\bare|\bwas|\bwere|\bbeen|\bbe|'s)(?: {_NOT}|n't) {_W}{{0,2}}?(?:{_STRONG_EN})\b(?! (?:as"
            rf"|to be|for)\b)"
            rf"|(?:\bis|\bare|\bwas|\bwere|\bbeen|\bbe|'s)(?: not|n't) {_W}{{0,2}}?(?:{_WEAK_EN}){_HERE_EN}"
            rf"|(?:\bis|\bare|\bwas|\bwere|'s)(?: {_NOT}|n't) {_W}{{0,2}}?(?:covered|listed|contained)"
            r" (?:anywhere|here|there|in (?:the|this|that|my|any|what))\b.*$"
            rf"|(?:\bis|\bare|'s)(?: {_NOT}|n't) something (?:the|this|that|i|we)\b"
            rf"|(?:\bis|\bwas|'s)(?: {_NOT}|n't) possible to (?:say|tell|determine|answer|know|infer|identify"
            rf"|find out|establish)"
            rf"|\b(?:neither|nowhere|nothing|no one|nobody)\b.{{0,80}}\b(?:{_STRONG_EN}|said|named|say|says|tells?)\b"
            rf"|\b(?:text|passage|document|context|excerpt|source|article|information|author|paragraph)s? {_W}{{0,2}}?(?:gives?|provides?"
            rf"|offers?|contains?|has|have|mentions?|names?|lists?|states?|says?|includes?|makes?|tells? us|holds?) (?:no|nothing)\b"
            rf"|\bit {_W}{{0,2}}?(?:gives?|provides?|offers?|mentions?|names?|states?|says?|tells? us) (?:no|nothing)\b"
            rf"|\b(?:hard|difficult) to (?:say|tell|know)\b"
            rf"|\bca(?:nnot|n not|n't|nt) {_W}{{0,2}}?be {_W}{{0,1}}?(?:answered|determined|known|inferred"
            rf"|derived|deduced|found|"
            r"established|identified|ascertained|given|told|extracted|confirmed|verified|concluded|gleaned|seen"
            r"|read)\b"
            rf"|\bno {_W}{{0,2}}?(?:info(?:rmation)?|mention|answers?|details?|indication|reference|data|clue|hint"
            rf"|statement)"
            r"(?: (?:about|on|of|regarding|(?:is|are|was|were|has been|have been) (?:\w+ )?(?:given|found|provided|available|there|stated|offered|included"
            r"|disclosed|mentioned|specified|supplied)|in|for|to|concerning|given|available|provided|found|here|there|that"
            r"|which|whatsoever|at all|as to|can|could|from|i|has|exists?|stated)\b|$)"
            r"|\bno (?:word|evidence|passage|sentence|part|record)\b.{0,60}\b(?:text|passage|document|context"
            r"|excerpt|source|article)"
            rf"|\bno {_W}{{0,2}}?(?:text|document|source|excerpt)\b {_W}{{0,2}}?(?:{_TELL_EN})"
            rf"|\bno {_W}{{1,4}}?(?:is|are|has been|have been) {_W}{{0,2}}?(?:{_STATED_EN}|given|named|listed){_HERE_EN}"
            rf"|\bno {_W}{{1,4}}?(?:was|were) {_W}{{0,2}}?(?:{_STATED_EN}){_HERE_EN}"
            rf"|\bno {_W}{{1,4}}?(?:appears?|occurs?|comes? up|shows? up|turns? up|exists?|to be found|(?:is|are|was|were)"
            rf" (?:given|named|listed|provided|found|included|recorded|present|available))"
            rf" {_W}{{0,2}}?(?:in|from|by|within) (?:the|this|that|these|my|any) {_W}{{0,2}}?(?:{_SOURCE_EN}|{_WRITING_EN})\b"
            rf"|\bno {_W}{{1,4}}?(?:can|could) be (?:found|determined|identified|given|inferred|derived|established)\b"
            rf"|\bthere(?: is| are|'s|'re| was| were) no {_W}{{1,4}}?(?:in|on|within) (?:the|this|that|these|my|any)"
            rf" {_W}{{0,2}}?(?:{_SOURCE_EN}|{_WRITING_EN})\b"
            r"|^(?:can't|cannot|can not|couldn't|could not) (?:really )?(?:tell|say|determine|answer|know|find (?:it|that"
            r"|this|any|the answer))\b"
            r"|(?:\bis|'s|\bremains?|\bwas) (?:still |currently )?(?:unknown|unclear|uncertain|not (?:known|clear|certain"
            r"|stated|specified)) (?:if|whether|who|whom|whose|what|when|where|which|why|how)\b"
            rf"|\b(?:answer|information|it|that|this|name|date|number|one)(?: to (?:this|the|your|that) question| requested| needed| required| asked for| sought)?(?: is| are| was| isn't| aren't| does|'s"
            rf")(?: not|n't)? (?:to be )?(?<=not |n't )(?:found |given |contained |included )?(?:anywhere"
            rf"|in (?:the|this|that|my|what|any))\b"
            r"|\bnothing (?:about|on|regarding) (?:it|this|that|him|her|them)\b|\bnothing is (?:said|known|mentioned|stated|given)\b"
            r"|\b(?:none|neither) of (?:this|that|what)\b"
            rf"|\b(?:none|neither) of (?:the|these|those|its|my) {_W}{{0,3}}?(?:{_SOURCE_EN}|{_WRITING_EN})\b"
            rf"|\b(?:none|neither) of\b.{{0,60}}\b(?:{_STATED_EN}|named|listed|given|known)\b"
            r"|\b(?:impossible|not possible) to (?:say|tell|determine|answer|know|infer|identify|find|establish"
            r"|be|give)"
            r"|\binsufficient(?: to\b|.{0,30}\b(?:information|context|data|details?|evidence|material|text)|$)"
            r"|\b(?:is|are) insufficient\b|\bnot enough (?:info|context|data|detail)"
            r"|\btoo little (?:information|context)"
            r"|\b(?:is|are|remains?|stays?) silent\b|\bsilent (?:on|about)\b"
            r"|\b(?:leaves?|left) .{0,80}\b(?:open|out|unanswered|unsaid|unstated|unclear|unspecified|unmentioned)\b"
            r"|\bfails? to (?:say|mention|state|specify|give|provide|tell|indicate|answer|name|list|identify|address)"
            r"|\b(?:lacks?|omits?|lacking|missing)\b.{0,60}\b(?:information|answer|details?|text|data|passage"
            r"|document|context)"
            r"|\b(?:text|passage|document|context|excerpt|source|article|information|answer|it|this"
            r"|that)\b.{0,40}\b(?:lacks|omits|is missing|is absent|are missing|are absent)\b"
            r"|^(?:it is |it's |it |this is |that is |that's |that |the answer is |answer is |the answer "
            r"|answer |status )?"
            r"(?:remains |stays |still )?(?:unknown|unclear|unspecified|undisclosed|undetermined|undeterminable"
            r"|unanswerable|indeterminable|indeterminate|not (?:explicitly |directly |specifically |clearly |actually )?(?:stated|mentioned|given|specified|known|available"
            r"|provided"
            r"|indicated|found|disclosed|clear|applicable|sure|answerable|here|there|covered|enough|determinable"
            r"|listed"
            r"|reported|recorded|included|discussed|addressed|answered|named|in the \w+))"
            r"(?: (?:in|from|based|according|here|to me|by|given)\b.*)?$"
            r"|\b(?:is|are|remains?|stays?|was|were) (?:left )?(?:simply |still |entirely )?(?:unknown|unclear"
            r"|unspecified|undisclosed"
            r"|unstated|unmentioned|undetermined|unanswered)(?: (?:to me|from|in|based|according"
            r"|here|at)\b.*)?$"
            r"|^(?:i |we )?(?:dunno|idk)\b|\b(?:refuse|decline) to answer\b|\b(?:must|have to|will) decline$"
            r"|\banyone's guess\b|\bguess is as good as mine\b|^it (?:isn't|is not) (?:there|here|in it)$"
            r"|^(?:n/a|na|tbd|tba|to be determined|undefined|no results?(?: found)?|not (?:in|from) (?:the )?(?:text|passage"
            r"|document|context|source)s?|none given|none found|none stated|none mentioned|no answer|null|no data|pass"
            r"|no comment)$"
            rf"|^(?:the |this |that |your )?(?:given |provided |retrieved )?(?:{_SOURCE_EN})s?(?: is|'s| are| seems?(?: to be)?| appears?(?: to be)?)"
            r" (?:only |completely |entirely |totally )?(?:about (?:something|someone|another|a different)|unrelated"
            r"|irrelevant|not (?:relevant|related)|off.topic)\b"
            rf"|^(?:the |this |that )?(?:{_SOURCE_EN})s? (?:does not|doesn't|do not|don't) relate to\b"
            # in other languages, of which there are no more words here
            r"|^(?:nezinau|nezinu|ei tea)$"
            r"|\bbeats me\b|\b(?:beyond|outside) (?:the scope|what|my knowledge)|\b(?:who|nobody|no one"
            r"|noone) knows\b"
        ),
        aside=(
            r"^(?:(?:i am|i'm|we are|we're)? ?(?:so |very |really )?(?:sorry|afraid)|unfortunately|regrettably"
            r"|apologies|my apologies|i apologi[sz]e"
            r"|sadly|alas|honestly|frankly|hmm+|well|ok(?:ay)?|thanks?|thank you)\b(?: (?:but|that|about that"
            r"|for that))*$"
            r"|^(?:as far as|so far as|from what|judging by|judging from|going by|looking at|per|as per|based|given|in|within"
            r"|on the basis|after|having|from"
            r"|according|with|without|despite|regarding|concerning|about|as for|as to|with regard|with respect"
            r"|when it comes)\b"
            r".*\b(?:text|passage|document|context|excerpt|source|article|information|paragraph|i can|i see"
            r"|i was|i have"
            r"|question|provided|given|above|material|reading|read|page|content)s?\b"
            r"|^(?:regarding|concerning|about|as for|as to|with regard|with respect|when it comes)\b"
            r"|^as an? (?:\w+ )?(?:ai|language model|assistant|chatbot)\b"
            r"|\b(?:different|another|other|unrelated|something else|other things|elsewhere|else|only (?:about"
            r"|describes"
            r"|covers|discusses|mentions|talks|deals|says|speaks)|merely|solely|irrelevant)\b"
            r"|^(?:it|the (?:text|passage|document|context|excerpt|article)|this (?:text|passage"
            r"|document))s? (?:only|just|merely|is about|deals|describes|talks|focuses|concerns|discusses|covers"
            r"|treats)\b"
            r"|^(?:the |this |that )?(?:given |provided |retrieved |above )?(?:text|passage|document|context|excerpt|article|information)s?"
            r" (?:provided |given )?(?:only |mainly |merely |primarily |just )?(?:mentions?|discusses|discuss|describes?|(?:is|are) about|talks? about|focus(?:es)? on|covers?|deals? with"
            r"|concerns?|refers? to|(?:provides?|contains?) (?:\w+ )?(?:information|details) (?:about|on))\b"
            r"|^(?:please|could you|can you|if you|you (?:may|might|could|can|should|would)|i (?:would|'d) need"
            r"|more (?:information|context)|feel free|let me know|so i|so we|i would|i'd|i prefer|i have to"
            r"|i must)\b"
        ),
        of_source=(
            rf"(?:\bis|\bare|\bwas|\bwere|\bbeen|\bbe|'s)(?: {_NOT}|n't) {_W}{{0,2}}?(?:{_THIN_EN}){_HERE_EN}"
            r"|\b(?:is|are|was|were|remains?|stays?) (?:left )?(?:simply |still |entirely )?(?:missing|absent|omitted)"
            r"(?: (?:to me|from|in|based|here|at)\b.*)?$"
            rf"|^(?:do|does|did)(?: not|n't) {_W}{{0,3}}?(?:provide|contain|include|give|answer|offer|have|list|name|cover)\b"
            rf"|\bnothing {_W}{{0,6}}?(?:about|on|in|here|there|is|that|to)\b"
            rf"|\bit {_W}{{0,2}}?(?:contains?|has|have|lists?|includes?|makes?|holds?) (?:no|nothing)\b"
        ),
        turns=(
            r"but|although|though|however|yet|except|whereas|while|even though|still|and (?=i |we |do(?:es)? not |do(?:es)?n't |the (?:text"
            r"|passage|document|context)|it (?:does|is)|that is|there)|so (?=i |the |it )|because|since (?=the"
            r"|it|i |there)|as (?=the (?:text|passage|document|context)|it (?:does|is)|there)"
        ),
        asks=r"who|whom|whose|what|which|when|where|why|how|whether|if|that",
        filler=(
            r"my apologies|it (?:only|just|merely|simply|instead) (?:mentions|discusses|describes|talks about|covers|states|says|focuses on|refers to)\b"
            r"|is there anything else|would you like|do you want me|how (?:can|may) i help|can i help|let me know|feel free|i(?:'d| would) be happy"
            r"|i'm happy to|if you (?:have|provide|could|can|want|need|would)\b|(?:please|could you|can you)(?: please)? (?:provide|share|give|clarify|supply|check)"
        ),
    ),
    "de": AbstentionWords(
        denies=(
            r"\bweiss (?:ich |man |das |es |die antwort |leider )*nicht\b|\bich weiss\b.*\bnicht\b"
            r"|\bwissen wir nicht\b|\bkeine ahnung\b"
            r"|\b(?:kann|kannst|konnen|konnte|lasst|lassen|liess|vermag)\b.*\b(?:nicht|kein\w*"
            r"|nichts)\b.{0,60}\b(?:be)?(?:antwort|sagen|bestimm|ermittel|entnehm|feststell|find|beurteil|ableit"
            r"|schliess|angeb|geb|entnomm|erschliess|nennen|machen|herausles|erkenn|herausfind|klar)"
            r"|\bnicht .{0,40}\b(?:erwahn|genannt|angegeb|gesag|bekannt|ersichtlich|spezifizier"
            r"|beschrieb|klar\b|aufgefuhr|vermerk|benannt|geklart|beantwort|bestimm|feststell|hervor|entnehm"
            r"|find|moglich|thematisier|behandel|angefuhr|eingegang|dargeleg|festgehalt|verzeichn|uberliefer"
            r"|zu sagen|ein\b|vorhand|auskunft)"
            r"|\b(?:erwahn|nenn|sag|verrat|liefer|(?<!es )(?:geb|gib(?!t es\b))|mach|geht|gehen|behandel|beantwort|find|steh"
            r"|auss?er|klar|beschreib|thematisier|spezifizier|verzeichn"
            r"|bekannt)\w*\b.{0,60}\b(?:nicht|kein\w*|nichts)\b"
            r"|\bkein\w* (?:\w+ ){0,2}?(?:angab|information|hinweis|antwort|auskunft|daten|erwahnung|aussage"
            r"|details|anhaltspunkt|erkenntnis|rede)"
            r"|\bnichts (?:daruber|dazu|davon|zu|uber|erwahnt|bekannt|gesagt|hieruber|hierzu|zum)\b"
            r"|^(?:unbekannt|unklar|ungeklart|nicht bekannt|fehlanzeige)$"
            r"|\b(?:ist|bleibt|sind|bleiben|war) (?:mir |leider |\w+ ){0,2}?(?:unbekannt|unklar|ungewiss"
            r"|ungenannt|unerwahnt|ungeklart)\b"
            r"|\b(?:bleibt|bleiben|bleibe|blieb) (?:mir |leider |\w+ ){0,2}?offen\b"
            r"|(?:^|\b)(?:frage|fragen|antwort|das|dies|es|ob|wer|wen|wem|was|wann|wo|warum|wie|ausgang|ergebnis)\b.*"
            r"\b(?:ist|sind|war) (?:\w+ ){0,2}?offen\b"
            r"|\b(?:angab|inform|hinweis|antwort|daten|kontext|detail|auskunft|wissen|kenntnis|anhalt|grundlage|zusammenhang"
            r"|name|datum|jahr|zahl|text|dokument|abschnitt|quelle)\w*\b.*\b(?:fehlt|fehlen)\b"
            r"|\b(?:fehlt|fehlen)\b.*\b(?:angab|inform|hinweis|antwort|daten|kontext|detail|auskunft|wissen|kenntnis|anhalt"
            r"|grundlage|zusammenhang|name|datum|jahr|zahl|text|dokument|abschnitt|quelle)"
            r"|^(?:das|es|dies|dazu|hierzu) (?:\w+ ){0,2}?(?:fehlt|fehlen)$"
            r"|\b(?:schweigt|lasst .* offen|unmoglich|unzureichend|reicht nicht|reichen nicht"
            r"|bin (?:mir )?(?:nicht sicher|unsicher)|bin uberfragt)\b"
            r"|\bunbeantwortet\b|\bausser stande\b|\bnicht in der lage\b"
        ),
        aside=(
            r"^(?:der|die|das|dieser|dieses|im) (?:text|abschnitt|dokument|passage|artikel|auszug)\w* (?:\w+ )?(?:handelt|behandelt|beschreibt|erwahnt|spricht|befasst|geht es)\b|"
            r"^(?:es tut mir leid|tut mir leid|leider|entschuldigung|bedauere|sorry|verzeihung"
            r"|ich bedauere)\b(?: aber)?|^(?:laut|nach|gemass|aufgrund|anhand|auf (?:der )?(?:basis|grundlage)"
            r"|basierend|aus dem|in dem|im|soweit|zu dieser|was .* angeht|was .* betrifft|zur frage|bezuglich"
            r"|hinsichtlich|uber)\b|\b(?:ander\w*|etwas anderes|lediglich|ausschliesslich)\b|^(?:daher|deshalb"
            r"|deswegen|darum|also|somit)\b"
        ),
        of_source=(r"\b(?:enthalt|beinhalt|biet)\w*\b.{0,60}\b(?:nicht|kein\w*|nichts)\b|\bnicht .{0,40}\benthalt"),
        turns=(
            r"aber|obwohl|jedoch|allerdings|doch|wobei|auch wenn|sondern|nur|und (?=ich|der text|das dokument"
            r"|es)|da (?=der|das|die|im|es)|denn|weil"
        ),
        asks=(
            r"wer|wen|wem|wessen|was|wann|wo|warum|wie|wieso|weshalb|welche\w*|ob|dass|wohin|woher|wozu|womit"
            r"|worin|wodurch|woraus|um|zu|in welche\w*|an welche\w*|von wem|seit wann"
        ),
    ),
    "fr": AbstentionWords(
        denies=(
            r"\bje (?:ne |n')?(?:le |l'|en )?(?:sai|ai|peu|trouv|suis|connai|dispos|parvien|vois|pourrai"
            r"|saurai)\w*\b.{0,20}\b(?:pas|aucun\w*|rien|incapable)\b|\b(?:j|l)'ignore\b|\bon ignore\b|\bje suis incapable"
            r"|\baucune idee\b"
            r"|\b(?:ne|n)(?:'| )(?:\w+['’ ]){0,4}?\w*(?:mention|indiqu|precis|inform|repond(?!u|ait|it)|determin|trouv|figur"
            r"|dit\b|disent|sait|savoir|connu|fourni|evoqu|abord|specifi|possible"
            r"|est fait|apport|livr|enonc|renseign|revel|cit|nomm|explicit|suffi"
            r"|ressort|es?t pas (?:dit|clair|connu|precis)|repons|mene|dire\b|dispos|decri|conclu"
            r"|dedui|defini|rien)\w*"
            r"|\b(?:pas|aucun\w*|nulle|rien) (?:[\w']+ ){0,4}?(?:mention|indiqu|precis|information|reponse"
            r"|donnee|indication|detail|renseignement|element|trace|trouve|connu|repondre|(?:sur|dans)\b|a ce sujet"
            r"|fourni|dit)\w*"
            r"|^(?:inconnu\w*|non (?:precis|mentionn|indiqu|specifi|communiqu|renseign|connu|fourni|dispon)\w*"
            r"|pas (?:precis|mentionn|indiqu|dispon|d'info|d'idee|de reponse)\w*)$|\bimpossible (?:de"
            r"|a)\b|\b(?:est|reste|demeure) (?:inconnu|indetermine|inconnue|flou|sans reponse)\w*"
            r"|\binsuffisant\w*|\bmuet\w*\b|\bsilence sur\b|\bmanque d'info"
        ),
        aside=(
            r"^(?:le |la |ce |cet |l'|cette )(?:texte|passage|document|extrait|article) (?:\w+ )?(?:parle|traite|decrit|mentionne|evoque|porte)\b|"
            r"^(?:desole\w*|je suis desole\w*|malheureusement|navre\w*|je regrette|pardon|excusez\w*)\b"
            r"|^(?:selon|d'apres|sur la base|a partir|dans (?:le|ce|l')|au vu|compte tenu|en ce qui concerne"
            r"|quant a|concernant|a propos|pour ce qui)\b|\b(?:autre\w*|seulement|uniquement)\b|^(?:donc"
            r"|par consequent|ainsi)\b"
        ),
        of_source=(
            r"\b(?:ne|n)(?:'| )(?:\w+['’ ]){0,4}?\w*(?:permet|donn|contien|parle|traite|comport|offr|inclu|compren|fournit|est pas dispon|sont pas dispon|a (?:pas|aucun))\w*"
        ),
        turns=(
            r"mais|bien que|quoique|cependant|toutefois|pourtant|meme si|(?<=, )car|donc|et (?=je|le texte|le document"
            r"|il n)|puisque"
        ),
        asks=r"qui|que|quoi|quand|ou|pourquoi|comment|combien|quel\w*|si|lequel|laquelle|dont|de|a qui|en quelle",
    ),
    "es": AbstentionWords(
        denies=(
            r"\bno (?:[\w]+ ){0,4}?(?:lo )?(?:se\b(?= (?:la|el|lo|quien\w*|que|cual\w*|cuando|donde|como"
            r"|cuant\w*|si|nada|bien|con|exact\w*|segur\w*|responder)\b|$)|se sabe|sabemos|saber|mencion|indic|especific|informa(?:n|do)?\b"
            r"|determin|encuentro|encontr(?:e\b|ado)|figur|dice|dicen|se conoc|conozco|conocid|proporcion"
            r"|abord|detall|consta|hay (?:\w+ ){0,3}?(?:inform|dat[oa]|respuest|mencion|indic|detall|referenc"
            r"|nada|ningun|suficient|constancia|forma|manera|rastro|pista|evidenc)|puedo|podemos|precis"
            r"|dispong|disponib|aclar|senal|explic|nombr|alud|qued\w* claro|deja\w* claro"
            r"|esta claro|estoy seguro|deduc|desprend|revela|(?:lo|la|se) dan?\b|tengo (?:\w+ )?(?:idea|inform|dato|respuest))\w*"
            r"|\bno aparec\w*$|\bnadie (?:lo )?sabe\b"
            r"|\b(?:ningun\w*|nada|sin) (?:[\w]+ ){0,4}?(?:inform|dato|respuest|mencion|indic|detall|referenc"
            r"|sobre|al respecto|dice|especific|en el)\w*|^(?:desconocid\w*|sin (?:informacion|datos|respuesta)"
            r"|no (?:mencionad|especificad|indicad|disponible|consta|conocid)\w*|se desconoce)$"
            r"|\b(?:desconozco|se desconoce|ignoro|lo ignoro|ni idea|imposible (?:de )?\w+r\b|es imposible"
            r"|insuficient\w*|falta informacion|carece|carezco|guarda silencio|soy incapaz)\b|\b(?:es"
            r"|sigue siendo|queda) (?:desconocid|incierto|un misterio)\w*"
        ),
        aside=(
            r"^(?:el|este) (?:texto|pasaje|documento|fragmento|articulo) (?:\w+ )?(?:trata|habla|menciona|describe|se refiere)\b|"
            r"^(?:lo siento|lo lamento|lamentablemente|desafortunadamente|por desgracia|perdon\w*|disculp\w*"
            r"|me temo)\b|^(?:segun|de acuerdo|en base|con base|a partir|basand\w*|en (?:el|este)|en cuanto"
            r"|respecto|sobre|por lo que|con la informacion)\b|\b(?:otr[ao]s?|solo|solamente|unicamente)\b"
        ),
        of_source=(
            r"\bno (?:[\w]+ ){0,4}?(?:sabe|respon|encontr|encuentr|conoc|permite|ofrec|contien|aparec|pued|es posible|trata"
            r"|refier|hace|dispon|tengo|tiene|incluy|da\b|dan\b|cuent|habla|recog|aport|qued|viene|deja|existe|cita|esta en|facilit"
            r"|suministr)\w*"
        ),
        turns=(
            r"pero|aunque|sin embargo|no obstante|pues|ya que|porque|y (?=no |el texto|el documento)|asi que"
            r"|si bien"
        ),
        asks=r"quien\w*|que|cuando|donde|por que|como|cuant\w*|cual\w*|si|a quien",
    ),
    "it": AbstentionWords(
        denies=(
            r"\bnon (?:[\w']+[ ']){0,4}?(?:lo )?(?:so\b|si sa\b|sappia|sapere|sapre|menzion|indic|specific|informa(?:no|to"
            r"|do|m)?\b|risult|determin|figur|dice|dicono|conosco|conosci|si conosc|forn"
            r"|affront|dett|precis|riport|c(?:'e|i sono) (?:\w+ ){0,3}?(?:inform|dat[oi]|rispost|menzion|indicaz|dettagl|riferim|tracci|accenn|modo|nulla|nient|element)|posso|si evince"
            r"|si ricav|emerg|riesco|dispong|possibil\w* (?:rispo|dir|stabil|sap|cap)|noto\b|nota\b|chiar|sono (?:in grado|sicur|noti)|abbiamo"
            r"|spieg|rivel|accenn|dedu|ho (?:\w+ )?(?:idea|inform|dat[oi]|rispost|trovat))\w*|\bnon compa\w*$"
            r"|\b(?:nessun\w*|nulla|niente|senza) (?:[\w']+[ ']){0,3}?(?:inform|dat[oi]|rispost|menzion|indicaz"
            r"|dettagl|riferiment|a riguardo|al riguardo|su|in proposito|traccia|accenno|idea)\w*"
            r"|^(?:sconosciut\w*|ignot\w*|non (?:specificat|indicat|menzionat|disponibil|not|dat|conosciut"
            r"|precisat|fornit)\w*)$"
            r"|\b(?:ignoro|boh|impossibile \w+|e impossibile|insufficient[ei]|tace)\b"
            r"|\bmanca\w*\b.*\b(?:inform|dat[oi]\b|dettagl|contest|element|rispost|riferiment|indicaz|nome|test[oi]\b)"
            r"|\b(?:inform|dat[oi]\b|dettagl|contest|element|rispost|riferiment|indicaz|nome\b).*\bmanca\w*\b|\b(?:e|resta"
            r"|rimane) (?:ignot|sconosciut|incert|imprecisat)\w*"
        ),
        aside=(
            r"^(?:il|questo) (?:testo|brano|passaggio|documento) (?:\w+ )?(?:parla|tratta|descrive|menziona)\b|"
            r"^(?:mi dispiace|spiacente|purtroppo|scusa\w*|mi spiace)\b|^(?:secondo|in base|sulla base|stando"
            r"|dal|dall'|nel|per quanto|riguardo|quanto a|circa|a partire)\b|\b(?:altr[oaie]|d'altro|soltanto"
            r"|solamente|esclusivamente)\b"
        ),
        of_source=(
            r"\bnon (?:[\w']+[ ']){0,4}?(?:sa\b|rispo|trov|conosc|permett|consent|offr|contien|compa|parla|tratt|puo|possibil"
            r"|dispon|ho\b|ha\b|fa\b|inclu|nomin|esist|da\b|cita|riferi|presenta|viene|vengono|basta|bastano|cont)\w*"
        ),
        turns=(
            r"(?<!nie )ma|anche se|sebbene|benche|tuttavia|pero|perche|poiche|e (?=non |il testo|il documento)|quindi"
            r"|dato che|pur"
        ),
        asks=r"chi|che|cosa|quando|dove|perche|come|quant\w*|qual\w*|se|a chi|di chi|in quale",
    ),
    "pt": AbstentionWords(
        denies=(
            r"\bnao (?:[\w]+ ){0,4}?(?:o )?(?:sei\b|se sabe|sabemos|saber|mencion|indic|especific|informa(?:d[oa]s?"
            r"|m)?\b|determin|encontr(?:ei|ado|o)\b|const|diz|dizem|conheco|conhecid|se conhec|fornec"
            r"|abord|detalh|ha (?:\w+ ){0,3}?(?:inform|dado|respost|menc|indic|detalh|referenc"
            r"|nada|nenhum|sufic|registr|regist|como|evidenc|pista|forma|maneira)|posso|precis"
            r"|disponh|disponiv|esclarec|consig|revel|consegu|esta claro|(?:ficou|fica) claro|explic|deduz"
            r"|tenho (?:\w+ )?(?:ideia|inform|dado|respost))\w*|\bnao aparec\w*$"
            r"|\b(?:nenhum\w*|nada|sem) (?:[\w]+ ){0,4}?(?:inform|dado|respost|menc|indic|detalh|referenc|sobre"
            r"|a respeito|consta|diz)\w*|^(?:desconhecid\w*|sem (?:informacao|informacoes|dados|resposta)"
            r"|nao (?:informad|mencionad|especificad|indicad|disponivel|consta)\w*)$"
            r"|\b(?:desconheco|ignoro|impossivel|insuficient\w*|carece|falta informacao|desconhece-se"
            r"|nao faco ideia|omiss\w*|silencia|incapaz)\b|\b(?:e|permanece|continua|fica) (?:desconhecid"
            r"|incert)\w*"
        ),
        aside=(
            r"^(?:o|este) (?:texto|trecho|documento|artigo) (?:\w+ )?(?:fala|trata|descreve|menciona|discute)\b|"
            r"^(?:desculp\w*|lamento|sinto muito|infelizmente|perdao|lamentavelmente)\b|^(?:segundo|de acordo"
            r"|com base|a partir|conforme|no texto|em relacao|quanto|sobre|pelo)\b|\b(?:outr[oa]s?|apenas"
            r"|somente)\b"
        ),
        of_source=(
            r"\bnao (?:[\w]+ ){0,4}?(?:sabe|respon|encontr|conhec|permit|oferec|contem|conten|aparec|pode|possivel|trata|refer"
            r"|faz|dispo|tenho|tem\b|inclu|da\b|fala|nome|exist|deix|apresent|traz|esta|foi|cita|ficou|fica)\w*"
        ),
        turns=(
            r"mas|embora|porem|contudo|todavia|entretanto|porque|pois|e (?=nao |o texto|o documento)|ainda que"
            r"|ja que"
        ),
        asks=r"quem|que|o que|quando|onde|por que|como|quant\w*|qual|quais|se|a quem|de quem",
    ),
    "pl": AbstentionWords(
        denies=(
            r"\bnie (?:\w+ ){0,3}?(?:wiem|wiadom|wiemy|poda|okresl|wspomin|wspomn|mowa|ma (?:\w+ ){0,2}?(?:inform|dan|odpow|wzmian|mowy)"
            r"|(?:moge|mozna|mozemy) (?:\w+ ){0,5}?(?:odpow|stwierdz|ustal|okresl|powiedz|wskaz|znalezc|wywnios|wniosk|sprawdz|udziel"
            r"|pomoc|podac|potwierdz|wyczyt|rozstrzyg)|da\b|potraf|znam|znan|znalaz|znajd|znalezi|odpowiada|ustal|wskaz|informuj|wynika"
            r"|jest (?:znan|pod|mozliw|jasn|wspom|pewn|okresl)|jestem (?:pewn|pewien|w stanie|przekon)|pada\b|udziel|pozwal|dostarcz|precyz"
            r"|porusz|wymien|opisuj|ujawn|wyjasn|umiem|odnos|pisz|pisan|uwzgl|powiedz|stwierdz|przedstaw|dotycz"
            r"|sposob|wystarcz|figur|okresla|napisan)\w*"
            r"|\bbrak (?:\w+ ){0,3}?(?:inform|dan|odpowied|wzmiank|szczegol|wskaz|tak|tam|tego|w)\w*|\bbrakuje\b"
            r"|^(?:nieznan\w*|nie wiem|brak|brak \w+|niewiadom\w*|nieokreslon\w*)$"
            r"|\b(?:zadn\w*|nic) (?:\w+ ){0,4}?(?:inform|dan|wzmian|na ten temat|o tym|nie|wskaz|szczegol)\w*"
            r"|\b(?:niemozliw\w*|nie sposob|milczy|niewystarczaj\w*|nie mam pojecia|pozostaje nieznan\w*"
            r"|jest nieznan\w*|pomija)\b|\bnieznan\w*$|^(?:inform\w*|dane|odpowiedz|data) (?:jest |sa )?niedostepn\w*$"
        ),
        aside=(
            r"^(?:przykro mi|niestety|przepraszam|wybacz\w*)\b|^(?:na podstawie|wedlug|zgodnie|z tekstu"
            r"|w (?:tekscie|dokumencie|podanym|tym)|jesli chodzi|co do|o ile)\b|\b(?:inn\w*|tylko|jedynie"
            r"|wylacznie)\b"
        ),
        of_source=r"\bnie (?:\w+ ){0,3}?(?:zawier|mowi|ma\b|uwzgl|opisuj|dotycz)\w*",
        turns=(
            r"ale|lecz|choc|chociaz|jednak|jednakze|natomiast|poniewaz|gdyz|bo|wiec|a (?=nie |tekst)|i (?=nie )"
            r"|mimo ze"
        ),
        asks=(
            r"kto|kogo|komu|kim|co|czego|kiedy|gdzie|dlaczego|jak\w*|ile|ktor\w*|czy|ze|skad|dokad|w jak\w*"
            r"|w ktor\w*|od kiedy|z czego|o co"
        ),
    ),
    "tr": AbstentionWords(
        denies=(
            r"\b(?:bilmi?yorum|bilmi?yoruz|bilemi?yor\w*|bilinmi?yor\w*|bilinmemekte\w*|bilmem|emin degil\w*"
            r"|haberim yok|fikrim yok|bilgim yok)\b"
            r"|\b(?:belirt|acikla|bahse|soyle|deg(?:in)?|yaz|yer al|gec|iste|soz ed|ani?l|bildir"
            r"|saptan|tespit ed|ulas|yanitla|cevapla|cikar|bulunam|anlas|anlat|sapta|belirl|tanimla"
            r"|konu ed|goster|ifade ed|deginil|paylas|kayd)\w*(?:mem|mam|mi?yor|mu?yor|me?mek|ma?mak|mez\b|maz\b"
            r"|madi|medi|mami?s|memi?s|emi|ami|eme|ama)\w*"
            r"|\b(?:bilgi|yanit|cevap|veri|ayrinti|detay|ipucu|ifade|aciklama|kayit)\w* (?:\w+ )?(?:yok|yoktur"
            r"|yer almi?yor|bulunmu?yor|bulunmamakta\w*|mevcut degil|veri?lmemi?s\w*|veri?lmi?yor|bulunamadi"
            r"|iceriyor degil|vermi?yor|sunmu?yor|icermi?yor)\b|^(?:bilinmi?yor|verilmemi?s|belirsiz|belirtilmemi?s"
            r"|bilgi yok|yok|yanit yok|bilinmemekte)\w*$"
            r"|\b(?:mumkun|belli|kesin|yeterli|soz konusu) degil\w*|^(?:acik|net|mevcut) degil\w*$|\b(?:imkansiz|yetersiz"
            r"|belirsiz|olanaksiz)\w*|\bsoyleyemem\b|\bveremi?yorum\b|\b\w+(?:emi?yorum|ami?yorum|emem|amam"
            r"|amadim|emedim)\b"
        ),
        aside=(
            r"^(?:uzgunum|maalesef|ne yazik ki|kusura bakma\w*|ozur dilerim)\b|\b(?:gore|temelinde|bakildiginda"
            r"|hakkinda|konusunda|dayanarak|kadariyla)$|^(?:verilen|sunulan|bu metin|metin\w*"
            r"|belge\w*)\b.*\bgore$|\b(?:baska|farkli|yalnizca|sadece)\b"
        ),
        of_source=r"\b(?:acik|net|mevcut) degil\w*|\b(?:icer|sun|sagla|veril|bul)\w*(?:mem|mam|m[ui]?yor|me?mek|ma?mak|m[ae]z\b|m[ae]di|m[ae]mi?s|m[ae]d[iı]m)\w*",
        turns=r"ama|fakat|ancak|lakin|oysa|cunku|zira|ve (?=metin|belge)|bu yuzden|dolayisiyla",
        asks=r"kim\w*|ne|neyi?|nerede|neresi|nasil|neden|nicin|hangi\w*|kac|ne zaman",
    ),
    "vi": AbstentionWords(
        denies=(
            r"\b(?:khong|chua|chang) (?:\w+ ){0,4}?(?:biet|ro\b|duoc (?:neu|de cap|nhac|cung cap|ghi|noi"
            r"|cho biet|xac dinh|cong bo|trinh bay|tiet lo)|de cap|nhac|neu|noi|cung cap|chua|co (?:thong tin"
            r"|cau tra loi|du lieu|dap an|trong|du|chi tiet|noi dung|de cap|ghi|nhac|kha nang|de)|the (?:tra loi"
            r"|xac dinh|biet|tim|ket luan|noi|suy|khang dinh|dua)|tim thay|tim ra|du thong tin|xac dinh|chac"
            r"|tra loi (?:duoc|cau hoi)|ghi|cho biet|the hien|thay|trinh bay|tiet lo|liet ke|mo ta|kha thi)\b"
            r"|\b(?:thieu thong tin|khong ro|khong biet|chua ro|chiu thoi|bat kha thi)\b|^(?:khong (?:ro|biet|co"
            r"|xac dinh)|chua biet|khong co thong tin|vo danh)$"
        ),
        aside=(
            r"^(?:xin loi|rat tiec|tiec la|that tiec|thanh that xin loi)\b|^(?:theo|dua (?:vao|tren)|can cu"
            r"|trong|ve|doi voi|voi|tu)\b.*\b(?:tai lieu|van ban|doan|ngu canh|noi dung|thong tin|bai|cau hoi)"
            r"|\b(?:khac|chi noi|chi de cap)\b"
        ),
        of_source=r"\b(?:khong|chua|chang) (?:\w+ ){0,4}?(?:nam|bao gom|chua|tra loi)\b",
        turns=r"nhung|tuy nhien|mac du|va (?=toi|van ban|tai lieu|khong)|tuy|bai viet (?=khong)",
        asks=r"ai|cai gi|gi|khi nao|o dau|tai sao|nhu the nao|bao nhieu|nao|lieu",
    ),
    "nl": AbstentionWords(
        denies=(
            r"\b(?:ik )?weet (?:ik )?(?:het |dat )?(?:\w+ )?niet\b|\bgeen (?:\w+ )?(?:informatie|antwoord|idee"
            r"|gegevens|vermelding|details)|\bniet (?:\w+ )?(?:vermeld|genoemd|bekend|duidelijk|gegeven"
            r"|aangegeven|mogelijk|te (?:bepalen|vinden|beantwoorden)|beantwoord|gezegd|in (?:de|het|deze) )"
            r"|\b(?:vermeldt|noemt|zegt|staat|meldt|blijkt|beantwoordt de vraag)\b.{0,60}\b(?:niet|niets|geen)\b|^onbekend$"
            r"|\bkan\b.{0,80}\bniet\b.{0,30}\b(?:vinden|beantwoord|zeggen|bepal|vaststel|achterhal|opmak|afleid)\w*"
            r"|\b(?:bevat|geeft|verstrekt|biedt) (?:\w+ ){0,3}?(?:geen|niet|onvoldoende) (?:\w+ ){0,3}?(?:informatie|antwoord|gegevens|uitsluitsel)\b"
            r"|\b(?:niet|on)voldoende informatie\b|\bniet genoeg informatie\b|\b(?:niet|geen) (?:zeker|idee)$"
        ),
        aside=r"^(?:helaas|sorry|het spijt me|volgens|op basis van)\b|\b(?:ander\w*|alleen|slechts)\b",
        of_source=r"\b(?:bevat|geeft)\b.{0,60}\b(?:niet|niets|geen)\b",
        turns=r"maar|hoewel|echter|omdat|en (?=ik|de tekst)",
        asks=r"wie|wat|wanneer|waar|waarom|hoe|welke?|of|dat",
    ),
    "sv": AbstentionWords(  # and Danish and Norwegian
        denies=(
            r"\b(?:jag |jeg )?(?:vet|ved) (?:jag |jeg )?(?:\w+ )?(?:inte|ikke|ej)\b|\b(?:inte|ikke|ej) (?:\w+ ){0,2}?(?:namn|angi|angive"
            r"|naevn|nevn|oppgi|oplys|framga|fremga|mojlig|mulig|besvar|bestam|bestem|anges|kant\b|kendt|kjent|sagt|omtal|specific|spesifi"
            r"|beskriv|fastsla|avgor|afgor|sikker|saker|klart?\b|tydelig|tilstrekkelig)\w*"
            r"|\b(?:kan|kunne|kunde) (?:jag |jeg |\w+ ){0,3}?(?:inte|ikke|ej) (?:\w+ ){0,3}?(?:svara|svare|besvar|hitta|finde\b|finne\b|saga|sige|si\b"
            r"|avgora|afgore|avgjore|bestam|bestem|utlas|bekraft|bekraeft|bekreft|fastsla|hjalpa|hjaelpe|hjelpe)\w*"
            r"|\b(?:framgar|fremgar|namner|naevner|nevner|star|anger|angiver|angir|sager|siger|sier|namns|naevnes|nevnes|anges|angives|angis"
            r"|oplyses|oppgis|oppgir|opplyser|oplyser|uppger|fortaller|fortaeller|forteller|besvarar|besvarer) (?:\w+ ){0,3}?(?:inte|ikke|ej|ingen|inget|ingenting|intet)\b"
            r"|\b(?:ingen|inget|inga|intet) (?:\w+ )?(?:information|informasjon|svar|uppgift|oplysning|opplysning|anelse|aning|omtale)\w*"
            r"|\b(?:inte|ikke) (?:nok|tillrackligt|tilstraekkeligt?|tilstrekkelig|nog) (?:med )?(?:information|informasjon|oplysning|opplysning)\w*"
            r"|^(?:det (?:er|ar) )?(?:uklart|oklart|ukendt|ukjent|okant)$|\b(?:vides|vites) (?:inte|ikke)\b|\bgar det (?:inte|ikke|ej) (?:att|an at|an a) (?:svar|bestam|avgor|afgor|fastsla|sag|si)\w*"
            r"|\b(?:hittar|finder|finner) (?:jag |jeg )?(?:inte|ikke|ej) (?:\w+ )?(?:svar|information|informasjon|oplysning|opplysning)\w*|^(?:ingen som helst aning|ingen ide|aner ikke|aner det ikke)$|\b(?:inte|ikke) nogon aning\b"
        ),
        aside=r"^(?:tyvarr|desvarre|dessverre|beklager|ledsen|enligt|ifolge|baserat|basert|baseret|pa (?:grundval|grunnlag|baggrund))\b|\b(?:annat|andet|annet)\b",
        of_source=(
            r"\b(?:innehaller|indeholder|inneholder|ger|giver|gir) (?:\w+ ){0,3}?(?:inte|ikke|ej|ingen|inget|ingenting|intet)\b"
            r"|\b(?:inte|ikke|ej) (?:\w+ )?(?:fundet|funnet|hittat|given|gitt|tillganglig|tilgaengelig|tilgjengelig)\w*"
        ),
        turns=r"(?<=, )men|aven om|selv om|selvom|eftersom",
        asks=r"vem|vad|nar|var|varfor|hur|vilken|om|att|hvem|hva|hvad|hvor\w*|nar|hvilke\w*",
        asked=r"\b(?:dato\w*|datum\w*|navn\w*|aret|arstall\w*|arsak\w*|informasjon\w*|oplysning\w*|opplysning\w*)\b",
        filler=r"jeg beklager|jag beklagar|beklagar|unnskyld|undskyld|forlat|ursakta",
    ),
    "id": AbstentionWords(  # and Malay
        denies=(
            r"\b(?:tidak|tak|belum|bukan) (?:\w+ ){0,3}?(?:tahu|disebut|menyebut|diketahui|ada (?:\w+ )?(?:informasi"
            r"|jawaban|keterangan|data|petunjuk|maklumat|jawapan|penyebutan|sebutan|ide)|dijelaskan|menjelaskan|jelas\b"
            r"|(?:dapat|bisa|mampu|boleh) (?:\w+ )?(?:menjawab|menentukan|dijawab|ditentukan|memastikan|dipastikan|menemukan|ditemukan"
            r"|memberikan|disimpulkan|menyimpulkan|mengetahui|mencari|menyatakan|mengenal pasti|mengatakan)"
            r"|tercantum|yakin|pasti\b|mencantumkan|dicantumkan|dinyatakan|menyatakan|dicatat|tertulis|tertera|mengungkap|diungkap"
            r"|mengetahui|cukup (?:informasi|data|maklumat|keterangan)|memiliki (?:informasi|jawaban|data)|diberitahu)\w*"
            r"|\b(?:tanpa informasi|informasi tidak|kurang informasi|tiada (?:maklumat|jawapan|informasi|data|sebutan))\b|^entah\w*"
        ),
        aside=r"^(?:maaf|mohon maaf|sayangnya|berdasarkan|menurut|dalam)\b|\b(?:lain|hanya)\b",
        of_source=(
            r"\b(?:tidak|tak|belum) (?:\w+ ){0,2}?(?:mengandung|mengandungi|memuat|memberi\w*|tersedia|ditemu\w*|dijumpai|menjawab|membahas|menyediakan"
            r"|berisi|terdapat|ada\b|menyinggung|diberikan)"
        ),
        turns=r"tetapi|tapi|namun|meskipun|walaupun|karena|kerana",
        asks=r"siapa|apa|kapan|bila|di mana|mengapa|bagaimana|berapa|apakah|bahwa",
        sources=r"\b(?:teks|dokumen|bacaan|kutipan|konteks|artikel|bagian|petikan|sumber|informasi|maklumat)\b",
        asked=r"\b(?:tanggal\w*|tarikh\w*|nama\w*|jawab\w*|jawap\w*|alasan\w*|jumlah\w*|tahun\w*)\b",
    ),
    "cs": AbstentionWords(  # and Slovak
        denies=(
            r"\b(?:nevim|nevime|neviem|neni (?:\w+ ){0,2}?(?:uveden|znam|jasn|zmin|mozn|specifik|receno|popsan)\w*|neuvad\w*|neuvied\w*"
            r"|nezmin\w*|(?:nelze|nemohu|nemuzu|nemuzeme|nedokaz\w*) (?:\w+ ){0,6}?(?:odpov|urcit|zjist|rict|najit|stanov|poskyt|potvrd|zodpov|pomoc)\w*"
            r"|nenasel|nenasla|nerik\w*|nevyplyv\w*|neposkyt\w*|nejsem (?:si )?(?:\w+ )?jist\w*|nejsou (?:\w+ ){0,2}?(?:uveden|znam|zmin)\w*"
            r"|neodpovid\w*|nemam (?:\w+ )?(?:poneti|tuseni|inform|predstav)\w*|neprozra\w*|nespecifik\w*|neupresn\w*)\b"
            r"|\b(?:zadn\w*|nic|nedostatek|dostatek|dost) (?:\w+ ){0,2}(?:inform|o tom|k tomu|udaj|zmink)\w*"
            r"|^(?:neuveden\w*|neznam[eoy]?|neznamo)$|\b(?:je|zustava) neznam\w*"
            r"|\bchybi (?:\w+ )?(?:inform|udaj|odpov)\w*|\b(?:inform\w*|udaj\w*|odpoved\w*) (?:\w+ ){0,3}?chybi\b"
        ),
        aside=r"^(?:bohuzel|omlouvam se|lituji|podle|na zaklade|v textu)\b|\b(?:jin\w*|pouze|jen)\b",
        of_source=(
            r"\b(?:neobsah\w*|nehovor\w*|nepis\w*|nebyl\w* (?:\w+ )?(?:nalez|zmin|uved)\w*|nelze|neni|nejsou|nemluv\w*|nedav\w*"
            r"|neda se|nenachaz\w*|nenajd\w*|neexist\w*)\b"
        ),
        turns=r"ale|ackoli|i kdyz|avsak|protoze|takze",
        asks=r"kdo|co|kdy|kde|proc|jak\w*|kolik|kter\w*|zda|ze",
        sources=r"\b(?:pasaz\w*|uryv\w*|clan\w*|zdroj\w*|odstav\w*|otaz\w*)\b",
        asked=r"\b(?:odpoved\w*|inform\w*|datum\w*|jmen[oa]|udaj\w*|rok)\b",
        filler=r"je mi lito|litujeme|prominte|lutujem|prepacte",
    ),
    "ro": AbstentionWords(
        denies=(
            r"\bnu (?:\w+[ -]){0,4}?(?:stiu|stim|se stie|cunosc|mention|precize|preciza|indic|specific|spun[e]?\b|reies|apar[e]?$|rezult"
            r"|(?:pot|putem|poate) (?:\w+ ){0,2}?(?:raspun|spun|determin|stabil|afl|gasi|oferi|preciz|confirm|sti\b|deduc)"
            r"|gases|am gasit|sunt (?:sigur|suficiente|mention|inform|oferite inform|preciz)|exista (?:\w+ ){0,2}?(?:inform|raspuns|date|mentiun|detal)"
            r"|este (?:clar|mention|precizat|cunoscut|dat[a]?\b|indicat|specific|suficient|posibil sa)|dezval|am (?:\w+ )?(?:inform|idee))\w*"
            r"|\b(?:nicio|fara|lipsesc|lipseste) (?:\w+ ){0,2}?(?:inform|raspuns|mentiun|date\b)\w*|^(?:necunoscut|nespecificat|neprecizat|nementionat)\w*$|\bhabar n-?am\b|\bnici o idee\b"
        ),
        aside=r"^(?:din pacate|imi pare rau|scuze|conform|potrivit|pe baza|in text)\b|\b(?:alt\w*|doar|numai)\b",
        of_source=r"\bnu (?:\w+[ -]){0,3}?(?:contin|ofer|fost|are\b|include|vorbes|raspund|da\b|exista|afla|gaseste|gasit|disponibil)\w*",
        turns=r"dar|desi|insa|totusi|pentru ca|deoarece",
        asks=r"cine|ce|cand|unde|de ce|cum|daca|cat\w*|care",
        sources=r"\b(?:textul\w*|pasaj\w*|fragmentul\w*|documentul\w*|contextul\w*|intreb\w*|sursa|sursele)\b",
        asked=r"\b(?:raspuns\w*|informati\w*|numele|motivul|anul)\b|\bdata (?=nu)",
        filler=r"imi pare rau|din pacate|scuze|regret",
    ),
    "fi": AbstentionWords(
        denies=(
            r"\b(?:en|ei|emme|eivat) (?:\w+ ){0,3}?(?:tieda|tiedeta|osaa (?:sanoa|vastata)|mainit|kerro|kerrot|sanota|ilmene|kay ilmi|kayda ilmi"
            r"|(?:pysty|voi|voida) (?:\w+ ){0,4}?(?:vasta|sano|paatell|selvit|maarit|kerto|loyt|vahvist|antaa vastaus)"
            r"|selvia|anneta|loydy|loytanyt (?:\w+ )?(?:vastaus|tieto)|ole (?:\w+ )?(?:varma|tieto|mainit|vastaus|kerrottu|ilmoitettu|annettu|maarit|riittavasti tieto|tarpeeksi"
            r"|selvaa?\b|tiedossa|hajuakaan|aavistus))\w*"
            r"|^(?:tuntematon|ei (?:\w+ )?tietoa|ei mainittu|ei mainintaa|ei tiedossa|ei hajuakaan|ei aavistustakaan|ei ilmoitettu|ei kerrottu)$"
        ),
        aside=r"^(?:valitettavasti|pahoittelen|anteeksi)\b|\b(?:mukaan|perusteella)$|\b(?:muu\w*|vain)\b",
        of_source=r"\b(?:ei|eivat) (?:\w+ ){0,2}?(?:sisalla|ole\b|sano\b|vasta\w*|anna|kerro|kuvaile|kasittele|puhu)\w*",
        turns=r"mutta|vaikka|kuitenkin|koska",
        asks=r"kuka|mika|mita|milloin|missa|miksi|miten|kuinka|onko",
        sources=r"\b(?:teksti\w*|teksteis\w*|asiakirja\w*|katkelma\w*|lahte\w*|artikkeli\w*|kysymy\w*)\b",
        asked=r"\b(?:vastaus\w*|vastaust\w*|tieto[ajn]?\w*|paivamaara\w*|nimea|nimi)\b",
        filler=r"valitettavasti|pahoittelen|anteeksi|ikava kylla",
    ),
    "hu": AbstentionWords(
        denies=(
            r"\bnem (?:\w+ ){0,3}?(?:tudom|tudjuk|tudni\b|tudhat|tudok (?:\w+ ){0,3}?(?:valasz|mond|segit|informaci)|emlit|derul|szerepel|talalhato|talalom|talaltam|talaltunk"
            r"|adja meg|ismert?\b|ismeretes|mondja|lehet (?:\w+ ){0,3}?(?:megvalasz|megallap|megmond|meghataroz|tudni|eldont|valasz|kovetkeztet)"
            r"|kozol|kozli|allapithat|irja|egyertelmu|vilagos|all rendelkezes|vagyok (?:\w+ )?biztos|tesz emlitest|ter ki|tartalmaz (?:\w+ ){0,2}?inform)\w*"
            r"|\bnincs (?:\w+ ){0,3}?(?:inform|adat\b|valasz|emlit|szo\b|benne|megadva|feltuntet|megemlit|leirva|eleg inform|elegendo)\w*"
            r"|\bfogalmam sincs\b|^ismeretlen$"
        ),
        aside=r"^(?:sajnos|sajnalom|elnezest)\b|\b(?:szerint|alapjan)$|\b(?:mas\w*|csak)\b",
        of_source=r"\bnem (?:\w+ ){0,2}?(?:tartalmaz|szol\b|beszel|valaszol|adja|ad\b|all\b|tud\b|talal|van|reszletez)\w*|\bnincs\w*",
        turns=r"(?<=, )(?:de|bar)|azonban|viszont|mert",
        asks=r"ki|kit|mi|mit|mikor|hol|miert|hogyan|mennyi|hany|melyik|hogy",
        sources=r"\b(?:szoveg\w*|dokumentum\w*|reszlet\w*|cikk\w*|forras\w*|kerdes\w*)\b",
        asked=r"\b(?:valasz(?:t|a|at|ok)?|informacio\w*|datum\w*|nev[et]\w*|adat\w*)\b",
        filler=r"sajnos|sajnalom|elnezest|bocsanat",
    ),
    "hr": AbstentionWords(  # and Serbian, Bosnian and Slovene in Latin letters
        denies=(
            r"\bne (?:\w+ ){0,3}?(?:znam|znamo|vem|kaze|kazu|spomin\w*|navod\w*|navaja|pise|precizira|otkriva|pominje|zna se|ve se|ga|specificir\w*"
            r"|objasnjava|(?:mogu|mozemo|moze|morem) (?:\w+ ){0,4}?(?:odgovor|rec|kaz|naci|pronac|utvrd|zakljuc|odred|potvrd|pomoc|saznat))\w*"
            r"|\b(?:nije|nisu|ni|nisam) (?:\w+ ){0,3}?(?:pronas(?:ao|la)\b|naveden|poznat|jasn|spomenut|pomenut|receno|odreden|specificir|znano|siguran|sigurna"
            r"|preprican|moguce (?:\w+ ){0,2}?(?:odgov|utvrd|odred|zakljuc|rec|znat)|nas(?:ao|la)\b|dovoljno informacij|opisan)\w*"
            r"|\bnema(?:m|mo)? (?:\w+ ){0,3}?(?:informacij|podat|odgovor|spomen|pomen|pojma|naznak)\w*|\bni (?:informacij|podatk|odgovor)\w*"
            r"|^nepoznat\w*$|\b(?:je|ostaje) nepoznat[oa]\b|\bnedovoljno (?:informacij|podat)\w*"
        ),
        aside=r"^(?:nazalost|zao mi je|oprostite|prema|na temelju|na osnovu|u tekstu)\b|\b(?:drug\w*|samo)\b",
        of_source=(
            r"\bne (?:\w+ ){0,2}?(?:sadrz\w*|daje|pruza|govori|odgovara|vsebuje|nudi|nalazi)|\b(?:nije|nisu|nema|ni) (?:\w+ ){0,3}?"
            r"(?:pronaden|naden|pronadjen|dostup|dan\b|dat|u tekstu|ponuden)\w*|\bnema\b"
        ),
        turns=r"ali|iako|medutim|no(?= ne)|jer|pa (?=ne)",
        asks=r"tko|ko|sto|sta|kada|kad|gdje|gde|zasto|kako|koliko|koj\w*|da li|kdo|kaj|kje",
        sources=r"\b(?:odlom\w*|clan\w*|izvor\w*|ulom\w*|pitanj\w*|informacij\w*)\b",
        asked=r"\b(?:odgovor\w*|datum\w*|ime\b|razlog\w*|podat\w*)\b",
        filler=r"nazalost|zao mi je|oprostite|izvini\w*|zal mi je|zal\b",
    ),
    "ca": AbstentionWords(
        denies=(
            r"\bno (?:[\w']+ ){0,3}?(?:ho se\b|(?:se|s'en) sap|s'?esment|esment|s'?mencion|mencion|s'?indic|indic|s'?especific|especific|diu\b|diuen"
            r"|precis|determin|s'ha (?:trobat|indicat|esmentat|especificat)|he (?:\w+ )?trobat (?:\w+ ){0,2}?(?:respost|informaci)|hi ha (?:\w+ ){0,2}?(?:informaci|dad[ea]|respost|menci|refer|constancia)"
            r"|(?:puc|podem|es pot|es possible) (?:\w+ ){0,2}?(?:respon|dir\b|determin|saber|trob|contest|deduir)|tinc (?:\w+ )?(?:idea|informaci|dad)"
            r"|consta|n?'?estic segur|ho diu|revela|queda clar|es coneix|dona (?:\w+ )?informaci)\w*"
            r"|\bno s'(?:indica|esmenta|especifica|menciona|explica|ha)\w*|\bno n'estic segur\w*"
            r"|^(?:desconegut\w*|ni idea|sense informacio|no especificat|no disponible)$|\bes desconegut\w*|\b(?:desconec|es desconeix)\b"
            r"|\bcap (?:informaci|menci|respost)\w*"
        ),
        aside=r"^(?:ho sento|malauradament|disculpeu|segons|d'acord amb|en base|basant)\b|\b(?:altr[ea]s?|nomes)\b",
        of_source=r"\bno (?:[\w']+ ){0,3}?(?:conte|parla|inclou|ofereix|permet|apareix|respon|te\b|tracta|es troba|figura|proporciona|hi)\w*",
        turns=r"pero|encara que|tanmateix|perque|ja que",
        asks=r"qui|que|quan|on|per que|com|quant\w*|quin\w*|si",
        sources=r"\b(?:fragment\w*|passatge\w*|document\w*|pregunt\w*)\b",
        asked=r"\b(?:respost\w*|informacio|data|dates|nom|noms|aixo)\b",
        filler=r"ho sento|malauradament|em sap greu|disculp\w*|perdon\w*",
    ),
    "sw": AbstentionWords(
        denies=(
            r"\b(?:sijui|sifahamu|hatujui)\b|\bsina (?:uhakika|taarifa|habari|jibu|maelezo|wazo)\b"
            r"|\bhakuna (?:\w+ ){0,3}?(?:taarifa|habari|maelezo|jibu|data|iliyotajwa|kilichotajwa|yaliyotajwa)\b"
            r"|\bha\w{1,5}?(?:taj|elez|onesh|onyesh|bainish|julikan|fahamik|ainish)\w*"
            r"|\b(?:siwezi|hatuwezi|haiwezekani) (?:\w+ )?(?:kujibu|kusema|kutoa jibu|kuthibitisha|kujua|kupata|kubaini|kuamua|kujulikana)\b"
            r"|\b(?:maelezo|taarifa|habari) (?:\w+ ){0,3}?hayatoshi\b|\b(?:taarifa|habari) haitoshi\b|\bhaitoshi\b.*\b(?:taarifa|habari)\b"
        ),
        aside=r"^(?:samahani|kwa bahati mbaya|pole|kulingana na|kwa mujibu)\b|\b(?:tu|ingine|nyingine|lingine)\b",
        of_source=r"\bha\w{1,5}?(?:sem|toi|patikan|ja?andik|po\b|mo\b|na\b|zungumzi|jibu|toa)\w*|\bhakuna\b",
        turns=r"lakini|ingawa|hata hivyo|kwa sababu|kwa kuwa",
        asks=r"nani|nini|lini|wapi|kwa nini|vipi|ngapi|kama|kwamba",
        sources=r"\b(?:maandishi\w*|hati|andiko|nakala|kifungu|aya|makala|chanzo|swali|muktadha)\b",
        asked=r"\b(?:jibu|tarehe|jina|sababu|taarifa|habari|maelezo)\b",
        filler=r"samahani|kwa bahati mbaya|pole|naomba radhi",
    ),
    "tl": AbstentionWords(
        denies=(
            r"\bhindi (?:(?:ko|po|namin|pa|ito|nito|ako|sa teksto|ng teksto|talaga|malinaw na) ){0,3}(?:alam(?! n[ig])|nabanggit|binanggit|binabanggit"
            r"|nakasaad|tinukoy|natukoy|matukoy|masagot|masasagot|makasagot|makakasagot|masabi|sigurado|tiyak|nakasulat|nakalagay)\b"
            r"|\bhindi (?:\w+ ){0,4}?(?:masagot|masasagot|makasagot|matukoy ang sagot)\b|^hindi (?:ito )?malinaw$|\bhindi sapat ang (?:impormasyon|datos|konteksto)"
            r"|\bwala(?:ng| akong| pong| itong)? (?:\w+ ){0,2}?(?:impormasyon|sagot|nabanggit|binanggit|nakasaad|nakasulat|ideya|detalye|datos|kasagutan)\b"
        ),
        aside=r"^(?:paumanhin|pasensya|sa kasamaang palad|ayon sa|batay sa)\b|\b(?:iba|ibang|lamang|lang)\b",
        of_source=r"\bhindi (?:\w+ ){0,4}?(?:sinasabi|sinabi|inilahad|ipinahayag|mahanap|makita|ibinigay|nagbibigay|naglalaman|ibinibigay|malinaw|nagsasabi|alam)\b|\bwala(?:ng)?\b",
        turns=r"ngunit|pero|subalit|bagaman|kahit|dahil",
        asks=r"kung|sino|ano|kailan|saan|bakit|paano|ilan|alin",
        sources=r"\b(?:teksto|dokumento|sipi|talata|artikulo|konteksto|tanong)\b",
        asked=r"\b(?:sagot|petsa|pangalan|dahilan|impormasyon)\b",
        filler=r"paumanhin|pasensya|sa kasamaang palad|ikinalulungkot",
    ),
    "el": AbstentionWords(
        denies=(
            r"(?<!\w)(?:δεν|δε|μη|μην|χωρισ) (?:\w+ ){0,3}?(?:ξερ|γνωριζ|αναφερ|λεγεται|δινεται|δινονται|υπαρχ\w* (?:\w+ )?"
            r"(?:πληροφ|απαντ|αναφορ|στοιχ|αρκετ)|μπορ\w* (?:\w+ ){0,4}?(?:απαντ|προσδιορ|βρω|πω|καθορ|επιβεβαι|διαπιστ|συμπερ|βοηθ|εξακριβ)"
            r"|προκυπτ|διευκρινιζ|προσδιοριζ|κατονομαζ|ειναι (?:γνωστ|σαφεσ|δυνατ|σιγουρ|ξεκαθαρ)"
            r"|ειμαι (?:\w+ )?(?:σιγουρ|βεβαι|σε θεση)|εχω (?:\w+ )?(?:ιδεα|πληροφ|στοιχ|απαντ)|γινεται (?:\w+ )?(?:αναφορ|λογοσ|μνεια)|βρηκα|διαθετ\w* (?:\w+ ){0,3}?(?:πληροφ|στοιχ|απαντ)|δηλων|καθοριζ)\w*"
            r"|^(?:αγνωστ|αδυνατ|ασαφ)\w*$|(?<!\w)(?:αγνοω|(?:ειναι|παραμενει) αγνωστ|αδυνατ\w* να (?:απαντ|προσδιορ|γνωρ))\w*"
            r"|(?<!\w)(?:καμια|κανενα) (?:\w+ )?(?:πληροφορ|αναφορ|στοιχει|απαντ|ιδεα)\w*"
        ),
        aside=r"^(?:δυστυχωσ|λυπαμαι|συγγνωμη|συμφωνα|με βαση|βασει|απο το)(?!\w)|(?<!\w)(?:αλλ[οηα]|μονο)(?!\w)",
        of_source=r"(?<!\w)(?:δεν|δε) (?:\w+ ){0,3}?(?:περιεχ|λεει|λενε|διν|παρεχ|απαντ|οριζ|εμφανιζ|βρισκ|μιλ|υπαρχ|περιλαμβαν|εχει|εξηγ|ειναι διαθεσ)\w*",
        turns=r"αλλα|ωστοσο|ομωσ|αν και|παρολο|επειδη|διοτι",
        asks=r"ποι\w*|τι|ποτε|που|γιατι|πωσ|ποσ\w*|αν|εαν",
        sources=r"(?<!\w)(?:κειμεν|εγγραφ|αποσπασμ|αρθρ|πηγ[ηεω]|ερωτησ|πληροφορ)\w*",
        asked=r"(?<!\w)(?:απαντηση|απαντησεισ|ημερομηνι\w*|ονομα|λογοσ|ετοσ|αυτο)(?!\w)",
        filler=r"δυστυχωσ|λυπαμαι|συγγνωμη|με συγχωρ",
    ),
    "ru": AbstentionWords(
        denies=(
            r"\bне (?:\w+ ){0,3}?(?:зна(?:ю|ем|ют|м)\b|извест\w+|указ\w+|упом\w+|сказан\w*|да[её]т\w*"
            r"|дан[аоы]?\b|приво\w+|отвеча\w+ на вопрос"
            r"|(?:могу|можем|может|могут|можно|возможно) (?:\w+ ){0,5}?(?:ответ|отвеч|сказ|определ|устан|узн|назв|дать|дат|найти|выясн|помо|сдел|подтверд|утвержд|пон|предост|быть)\w*"
            r"|опред\w+|сообща\w+|сообщ\w+|уточн\w+|ясн\w+|понятн\w+|привед\w+|нахожу|вижу|предостав\w+"
            r"|раскры\w+|хвата\w+|уда\w+|увер\w+|располаг\w+|затраг\w+|каса\w+"
            r"|описа\w+|описы\w+|назв\w+|назыв\w+|след\w+|обсужд\w+|освещ\w+|оговор\w+|объясн\w+|встреча\w+"
            r"|представл\w+|достаточ\w+|в состоянии|обозначен\w*)\b"
            r"|\bнет (?:\w+ ){0,4}?(?:информ\w+|ответ\w*|данн\w+|сведени\w+|упомин\w+|указан\w+|идей|возможн\w+"
            r"|подробн\w+|ни)\b|\b(?:информ\w+|ответ\w*|данн\w+|сведени\w+|упомин\w+)\b.{0,60}\b(?:нет"
            r"|отсутств\w+)\b|\bникто не зна\w+|\b(?:ни слова|нигде|ниоткуда)\b|^(?:ничего )?неизвестн\w+$|\bнельзя (?:\w+ ){0,2}?(?:сказать|ответить|определить|узнать|установить|понять|судить|выяснить|утверждать|сделать вывод)\b|\b(?:невозможн\w*|неизвестно\b|неизвест(?:на|ны|ен)\b(?! \w+$)"
            r"|неясн\w+|недостаточн\w+|отсутств\w+|умалчива\w+|затрудня\w+|непонятн\w+|молч\w+|понятия не)\b"
        ),
        aside=(
            r"^(?:к сожалению|извините|простите|увы|сожалею|прошу прощения)\b|^(?:согласно|судя|на основ\w+"
            r"|исходя|по (?:данному|этому|тексту|имеющ\w+|предостав\w+)|в (?:данном|этом|тексте|предостав\w+)"
            r"|что касается|относительно|насколько)\b|\b(?:друг\w+|ином|иной|только|лишь)\b"
        ),
        of_source=r"\bне (?:\w+ ){0,3}?(?:говор|содерж|получ|наш[её]л|нашл|найд|может|возможн|позвол|име)\w*|\bничего\b",
        turns=(
            r"но|хотя|однако|зато|а (?=не |в тексте|точн|имен)|и (?=не )|поэтому|так как|потому что|поскольку"
            r"|правда"
        ),
        asks=(
            r"кто|кого|кому|кем|что|чего|когда|где|почему|как\w*|сколько|котор\w*|ли|куда|откуда|зачем|чем"
            r"|из чего|в каком|в каком году"
        ),
    ),
    "uk": AbstentionWords(
        denies=(
            r"\bне (?:\w+ ){0,3}?(?:знаю|знаємо|відом[оаі]\b|вказ\w+|згад\w+|сказан\w*|йдеться|повідомл\w+|впевнен\w*|уточн\w+|визнач\w+"
            r"|(?:можу|можна|можливо|можемо) (?:\w+ ){0,4}?(?:відпов|сказ|визнач|встанов|знайт|дізнат|зроб|підтверд|допомог)\w*"
            r"|знайш\w+ (?:\w+ )?(?:відпов|інформ)\w*|зазнач\w+|навед\w+|поясн\w+|розкри\w+|зрозуміл\w*|ясно)\b"
            r"|\bнема\w* (?:\w+ ){0,3}?(?:інформ\w+|відповід\w+|дан\w+|відомост\w+|згад\w+)"
            r"|\b(?:відповід\w+|інформ\w+|дан(?:их|і)|відомост\w+)\b.{0,40}\b(?:нема\w*|відсутн\w+)\b"
            r"|\b(?:неможлив\w+ (?:\w+ )?(?:відпов|визнач|встанов|сказ|дізн)\w*|гадки не маю|поняття не маю|нічого (?:\w+ )?(?:не (?:сказан|відом|мовит|говор|зазнач)))\w*"
            r"|^невідом[оаие]\w?$|\bневідом[оа]\b(?! \w+$)|\bбракує (?:інформ|дан)\w*"
        ),
        aside=r"^(?:на жаль|вибачте|перепрошую|згідно|на основі|у тексті|в тексті)\b|\b(?:інш\w+|лише|тільки)\b",
        of_source=r"\bне (?:\w+ ){0,3}?(?:міст\w+|нада\w+|говор\w*|ма[єю]\w*|дає|відповіда\w+|розповід\w+)\b|\b(?:нема\w*|нічого|відсутн\w+)\b",
        turns=r"але|хоча|проте|однак|тому що|бо",
        asks=r"хто|що|коли|де|чому|як\w*|скільки|котр\w*|чи",
        sources=r"\b(?:уривк\w*|уривок|стат(?:ті|тя|тею)|джерел\w*|питанн\w*|інформац\w*)\b",
        asked=r"\b(?:відповідь|відповіді|ім'я|дат[аиу]|рік|відомост\w*|даних)\b",
        filler=r"на жаль|вибачте|перепрошую|шкода",
    ),
    "bg": AbstentionWords(  # and Macedonian
        denies=(
            r"\bне (?:\w+ ){0,2}?(?:знам\b|знаем\b|знае\b|казва\b|казано|споменава\b|споменат\w*|посочва\b|посочен\w*|указан\w*|уточнява|уточнен\w*|разкрива|става ясно|е ясно"
            r"|съм (?:\w+ )?сигур\w*|е известн\w*|се знае|намирам|намерих|се дава информация|наведено|се наведува|споменува|(?:мога|може|можем) (?:\w+ ){0,4}?(?:отговор|каж|опред|устан|намер|потвърд|разбер|помог)\w*"
            r"|е възможно (?:\w+ ){0,2}?(?:отговор|опред|устан|каж)\w*)"
            r"|\bняма (?:\w+ ){0,3}?(?:информац|данни|отговор|сведени|споменаване|указани)\w*|\bнямам (?:\w+ )?(?:представа|информац|отговор|данни|идея)\w*|\bнема информац\w*"
            r"|^неизвест\w*$|\bневъзможно (?:\w+ ){0,2}?(?:отговор|опред|устан|каж)\w*|\bнедостатъчн\w+ (?:информац|данни)\w*"
        ),
        aside=r"^(?:за съжаление|съжалявам|според|въз основа|от текста)\b|\b(?:друг\w*|само)\b",
        of_source=r"\bне (?:\w+ ){0,2}?(?:съдържа|съдържат|дава|предоставя|говори|отговаря|е намер\w*|е даден\w*|е налич\w*|са налич\w*|е включен\w*|содржи)\b|\b(?:няма|липсва)\b",
        turns=r"но|обаче|макар|защото|тъй като",
        asks=r"кой|коя|кое|кои|какво|кога|къде|защо|как|колко|дали",
        sources=r"\b(?:откъс\w*|пасаж\w*|статия\w*|въпрос\w*)\b",
        asked=r"\b(?:отговор(?:ът|а)?|дата(?:та)?|име(?:то)?|причина(?:та)?)\b",
        filler=r"съжалявам|за съжаление|извинете|жалам",
    ),
    "sr": AbstentionWords(
        denies=(
            r"\bне (?:\w+ ){0,3}?(?:знам|знамо|каже|кажу|помиње|спомиње|наводи|пише|прецизира|открива|зна се"
            r"|(?:могу|може|можемо) (?:\w+ ){0,4}?(?:одговор|каж|рећ|нађ|пронађ|утврд|закључ|одред|потврд|помогн)\w*)"
            r"|\b(?:није|нису|нисам) (?:\w+ ){0,3}?(?:наведен|познат|јасн|споменут|поменут|речено|одређен|сигур|могуће (?:\w+ ){0,2}?(?:одгов|утврд|одред|рећ))\w*"
            r"|\bнема(?:м|мо)? (?:\w+ ){0,3}?(?:информациј|подат|одговор|помен|појма)\w*|^непознат\w*$|\bнедовољно (?:информациј|подат)\w*"
        ),
        aside=r"^(?:нажалост|жао ми је|извините|према|на основу)\b|\b(?:друг\w*|само)\b",
        of_source=r"\bне (?:\w+ ){0,2}?(?:садрж\w*|даје|пружа|говори|одговара)|\b(?:није|нису|нема) (?:\w+ ){0,3}?(?:пронађен|нађен|доступ|дат)\w*",
        turns=r"али|иако|међутим|јер",
        asks=r"ко|шта|када|кад|где|зашто|како|колико|кој\w*|да ли",
        sources=r"\b(?:одлом\w*|члан\w*|извор\w*|питањ\w*)\b",
        asked=r"\b(?:одговор\w*|датум\w*|име|разлог\w*|подат\w*)\b",
        filler=r"нажалост|жао ми је|извините|опростите",
    ),
    "ar": AbstentionWords(
        denies=(
            r"(?:^|\s)[وف]?(?:لا|لم|لن|ليس|ليست|لست|غير|دون|ما) (?:\S+ ){0,4}?(?:ب?[ا]?ل?)?(?:[ايتن]?عرف"
            r"|[ايتن]?علم|[ايتن]?دري|متأكد|يذكر|تذكر|يرد(?! على)|ترد(?! على)|يحدد|تحدد|يمكن"
            r"|[ايتن]?ستطيع|يشير|تشير|يتطرق|تتطرق|يتناول|تتناول|[ايتن]?جد|ذكر|مذكور|معروف|معلوم|محدد"
            r"|متوفر|متاح|وارد|واضح|يوضح|توضح|يبين|يجيب|تجيب|يتوفر|تتوفر|ممكن|لدي(?!ه|ها|هم|نا)|املك|أملك|أعرف|أعلم|أدري"
            r"|أستطيع|أجد|أعثر|يكشف|يفصح|يقل|يقول|تقول|كاف|كافية|يتحدث|في (?:النص|الوثيق|السياق|المقطع|هذا|هذه|المستند|الفقر)|بيانات|إشارة|تفاصيل|إمكان|بإمكان|تحديد"
            r"|قادر|يسمح|تسمح|يفيد|تفيد|شيء|إجابة|معلومات|جواب)\S*"
            r"|(?:^|\s)(?:نمی ?دان|نامشخص|مشخص نیست|نہیں معلوم|معلوم نہیں|مجهول|غير معروف|لا أعرف|لست أدري|يتعذر|يستحيل|تعذر|يخلو|تخلو|يسكت|تنقص|لا إجابة"
            r"|لا جواب|مستحيل|تغفل|يغفل|يفتقر|تفتقر)\S*"
        ),
        aside=(
            r"^(?:عذر|آسف|للأسف|معذرة|نأسف|أعتذر|مع الأسف|أسف|المعذرة)|^(?:بناء|وفقا|حسب|بحسب|استنادا|من خلال"
            r"|في (?:النص|الوثيقة|هذا)|وفق|فيما|بالنسبة|أما|طبقا|على حد)|(?:آخر|أخرى|فقط|مختلف)\S*"
        ),
        of_source=r"(?:^|\s)[وف]?(?:لا|لم|لن) (?:\S+ ){0,4}?(?:يقدم|تقدم|يعطي|يوفر|توفر|يعرف|يتضمن|تتضمن|يحتوي|تحتوي)\S*",
        turns=r"لكن|ولكن|لكنه|لكنني|غير أن|إلا أن|رغم|وإن|بينما|أما|لأن|لذلك|فالنص|و(?=لا |لم |ليس)|مع أن|وإن كان",
        asks=r"من|ما|ماذا|متى|أين|لماذا|كيف|كم|أي|هل|أن|إن كان|إذا|ما إذا",
    ),
    "he": AbstentionWords(
        denies=(
            r"(?:^|\s)[וש]?(?:לא|אין|איני|אינני|אינו|אינה|אינם|איננו|אינן|בלי|ללא) (?:\S+ ){0,3}?\S{0,2}(?:יודע"
            r"|יודעת|ידוע|ידועה|יודעים|מציין|מציינת|צוין|צוינה|צוינו|מצוין|מוזכר|נזכר|הוזכר|מזכיר|ניתן|אפשר|מידע|תשוב|נאמר|כתוב|נמסר|מופיע|מצאתי|מצליח|יכול|יכולה|מוסר|מפרט|מתייחס|לדעת"
            r"|לקבוע|לענות|אזכור|פרטים|נתונים|ברור|בטוח|לי |מספק|עוסק|נותן|נמצא|מספיק|בידי|די |רמז|דבר|מושג"
            r"|התייחס|עונה|אומר|אומרת|זמין|מובא|נכלל|מצויין|מפורט|מזוהה|נחשף|מגלה|מסביר|מזכירה|מוסרת|מפרטת|לכך"
            r"|במסמך|בטקסט|בקטע|מתואר|לי|להשיב|להסיק|למצוא)"
            r"|(?:^|\s)(?:אין לי מושג|חסר|לא ידוע|לא צוין|אי אפשר|בלתי אפשרי|שום דבר|לא נאמר|אין תשובה|נעדר|שותק)\S*"
        ),
        aside=(
            r"^(?:מצטער|מצטערת|לצערי|סליחה|אני מצטער|אני מצטערת|מתנצל|צר לי)|^(?:לפי|על פי|על סמך|בהתבסס|מתוך"
            r"|בהתאם|בנוגע|לגבי|באשר)|(?:אחר|אחרת|אחרים|רק)(?:\s|$)"
        ),
        of_source=r"(?:^|\s)[וש]?(?:לא|אין|אינו|אינה|אינם|אינן) (?:\S+ ){0,3}?\S{0,2}(?:כולל|כוללת|מכיל|מכילה)",
        turns=r"אבל|אך|אולם|למרות|אם כי|ואילו|כי|לכן|ו(?=לא |אין|איני|אינני|הטקסט)|אף ש|אלא|משום|מכיוון",
        asks=r"מי|מה|מתי|איפה|היכן|למה|מדוע|איך|כיצד|כמה|איזה|איזו|האם|אם|ש\S+",
    ),
    "hi": AbstentionWords(
        denies=(
            r"(?<!\S)(?:उत्तर|जवाब)(?: \S+){0,3}? (?:नहीं|नही)(?! (?:दिया|लिखा|भेजा)$)(?:\s|$)"
            r"|(?<!\S)(?:पता|जान\S*|मालूम|ज्ञात|जानकारी|उल्लेख|बता\S*|दि\S* ?ग\S*|दी|दिया|मिल\S*|स्पष्ट"
            r"|निर्धारित|तय|संभव|कह\S*|लिख\S*|वर्णन|मौजूद|उपलब्ध|सूचना|विवरण|ज़िक्र|जिक्र|चर्चा|कुछ|दे|बात|यकीन"
            r"|निश्चित|दर्शा\S*|संकेत|पाया|पाई|निकाल\S*|आधार)(?: \S+){0,3}? (?:नहीं|नही|न"
            r"|असंभव)(?:\s|$)|(?:नहीं|नही) (?:\S+ ){0,3}?(?:पता|जान\S*|मालूम|ज्ञात|बता\S*|स्पष्ट|कह\S*|लिखा)(?:\s|$)"
            r"|^अज्ञात(?: है| हैं)?$|(?:असंभव|अपर्याप्त|अनिश्चित|अस्पष्ट)|कोई (?:\S+ ){0,3}?(?:जानकारी|उत्तर|जवाब|उल्लेख|सूचना"
            r"|विवरण|ज़िक्र|जिक्र)(?: \S+){0,3}? ?(?:नहीं|नही)"
        ),
        aside=(
            r"^(?:क्षमा|माफ़|माफ|खेद|दुर्भाग्य|अफ़सोस|अफसोस)|(?:अनुसार|आधार पर|बारे में|विषय में|मुताबिक"
            r"|संबंध में)$|(?:किसी और|अन्य|दूसर\S+|केवल|सिर्फ)"
        ),
        of_source=(
            r"शामिल(?: \S+){0,3}? (?:नहीं|नही|न)(?:\s|$)"
            r"|(?<!\S)(?:नहीं|नही) (?:\S+ ){0,3}?(?:दी|दिया ग\S*|दिए ग\S*|मिल\S*|सक\S*|देता|देती|देते|है|हैं)(?:\s|$)"
        ),
        turns=r"लेकिन|(?<=, )पर(?= )|परंतु|किंतु|मगर|हालाँकि|हालांकि|क्योंकि|इसलिए|और (?=मुझे|पाठ)|जबकि",
        asks=r"कौन|किस\S*|क्या|कब|कहाँ|कहां|क्यों|कैसे|कितन\S*|कि",
    ),
    "zh": AbstentionWords(
        denies=(
            r"(?:不知道|不清楚|不明(?![瞭了白熱热])|未知(?![数數])|不[详詳](?!之)|不晓得|不曉得|无从得知|無從得知|无法|無法|不能(?:确定|確定"
            r"|回答|判断|判斷|得知|得出|推断)|没有(?!后|後)[^，。]{0,12}(?:提|说|說|(?:信息|資訊|资料|資料)(?!费)|答案"
            r"|给出|給出|写|寫|记载|記載|相关|相關|提供|涉及|说明|說明|交代|描述|讲|講|显示|顯示|包含|找到|内容"
            r"|內容|指出|列出|依据|線索|线索)|沒有[^，。]{0,12}(?:提|说|說|信息|資訊|资料|資料|答案|给出|給出|写"
            r"|寫|记载|記載|相关|相關|提供|涉及|说明|說明|交代|描述|讲|講|顯示|包含|找到|內容|指出)"
            r"|没(?:有)?(?:提|说|写|讲|找|给|交代|涉及|记|告诉|明)|沒(?:有)?(?:提|說|寫|講|找|給|交代|告訴)"
            r"|未(?:提|说|說|给|給|涉|指|明|记|記|能|作|见|見|包|载|載|显|告|列|写|寫|透露|披露|注明|予|经|找)"
            r"|无(?:相关|答案|信息|资料|记载|从|此|可奉告|任何)|無(?:相關|答案|資訊|資料|記載|從|此)|并未|並未"
            r"|找不到|查不到|看不出|不(?:包含|含有|涉及|包括|足以|够|夠|确定|確定|得而知|可知|提及|存在)"
            r"|只字未提|隻字未提|不足|很难(?:确定|判断)|难以|難以|不可能(?:知道|得知|判断|确定))"
        ),
        aside=(
            r"^(?:抱歉|对不起|對不起|很遗憾|很遺憾|不好意思|非常抱歉|很抱歉|遗憾|可惜)|^(?:根据|根據|从|從|依据"
            r"|依據|基于|基於|按照|就|关于|關於|在)?(?:所|提供|给|給|上述|这|這|该|該|现有|現有|本|文|上下文"
            r"|已知|资料|資料|材料|段)[^，。]{0,14}(?:内容|內容|文|信息|資訊|资料|資料|看|知|材料|段落|片段|文本|文件|中"
            r"|里|问题|問題|来看|而言)$|^(?:关于|關於|至于|至於|对于|對於)|别的|別的|其他|另外|另一|只(?:讲|講"
            r"|说|說|提|介绍|介紹|谈|談|是)|仅|僅|无关|無關|^(?:因此|所以|故)"
        ),
        turns=r"但是?|不过|不過|然而|虽然|雖然|尽管|儘管|可是|只是|至于|至於|因为|因為|所以|因此",
        asks=r"谁|誰|什么|什麼|哪|何|怎|是否|多少|几|幾",
    ),
    "ja": AbstentionWords(
        denies=(
            r"(?:(?:わか|分か|判)(?:りませ|りかね|らな|らず|らぬ|らん)|わからな|知(?:り|ら)(?:ませ|な(?!い人))"
            r"|存じ(?:ませ|上げませ)|不明(?![瞭熱])|未詳|(?:情報(?!料)|記載|記述|言及|答え|回答|手がかり|該当|説明|データ|根拠"
            r"|示唆|内容|箇所|情報源)[^、。]{0,10}(?:な(?:い|く|かった|し)|ありませ|ござ|無|ません|見当たら"
            r"|見つか(?:ら|りませ)|され(?:て(?:い|お)?(?:ませ|な|りませ|ら)|ず)|含まれ(?:て)?(?:い)?(?:ませ|な"
            r"|ず))|(?:記載|言及|記述|説明|明記|示|触れ|述べ|書|記さ|載|語|明か|挙げ|特定|確認|判断|回答"
            r"|答え|決め|断定|読み取|お答え|見つけ|見つか|見当た|導|推測|特定)[^、。]{0,10}(?:て(?:い"
            r"|お)?(?:ませ|な|らず|りませ)|ません|れない|きない|ず$|ない|ぬ|かね|らない|えない|できま|せんで)"
            r"|でき(?:ませ|な|かね|ず)|不可能|不十分|不足して|足り(?:ませ|な|ず)|ありませんでした|特になし"
            r"|該当なし|情報なし|記載なし|無記載|無回答|なし$|難しい|困難|いえません|言えません|書かれてい?ない)"
        ),
        aside=(
            r"^(?:申し訳|すみません|残念|恐れ入|恐縮|ごめん|あいにく)|(?:よると|よれば|基づ(?:く|いて|き)|限り"
            r"|からは?|中に?は?|上で?は?|範囲で(?:は)?|関して(?:は)?|ついて(?:は)?)$|^(?:この|その|本|提供|提示"
            r"|与え|文書|文章|文脈|テキスト|資料|質問)[^、。]{0,20}(?:は|では|には|も)$|別の|他の|以外|だけ|のみ"
            r"|異なる"
        ),
        of_source=r"(?:含|提供)[^、。]{0,10}(?:て(?:い|お)?(?:ませ|な|らず|りませ)|ません|れない|ず$|ない|ぬ)",
        turns=r"ただし|しかし|ですが|だが|けれども|けれど|なお|もっとも|一方|ので|ため",
        asks=r"誰|何|いつ|どこ|なぜ|どう|どの|どれ|いくつ|いくら",
    ),
    "ko": AbstentionWords(
        denies=(
            r"(?:모르|모릅니|모른|몰라|몰랐|알 수 ?없|알 수가 ?없|알지 ?못|알려지지|알려져 ?있지|알려진 바"
            r"|(?:나와|나타나|적혀|언급|명시|기재|기록|설명|제시|서술|밝혀|밝히|확인|담겨|쓰여|다루"
            r"|말하|알려|드러나|표시|규정|정해|주어|실려|거론|소개|찾아볼)[^,.]{0,8}(?:않|없|못)"
            r"|(?:정보|답(?!하)|내용|언급|기록|단서|설명|자료|근거|구절|대목|말|부분|데이터|기재|명시)(?:이|가|은|는"
            r"|도|을|를|에 대한)?[^,.]{0,16}(?:없|않|못|부족)|수 ?없|불가능|불명|미상|불분명|미확인|찾지 ?못"
            r"|찾을 ?수|^없음$|^없습니다$|부족|미기재|확실하지|확실치|분명하지|어렵|정보 없음|해당 없음)"
        ),
        aside=(
            r"^(?:죄송|미안|유감|아쉽|안타깝|송구)|(?:따르면|바탕으로|근거로|기준으로|기반으로|만으로는|대해서는"
            r"|대해|관해서는|관해|경우|보면|볼 때|관련하여)$|다른|별개|만을? |뿐"
        ),
        of_source=r"(?:포함|제공)[^,.]{0,8}(?:않|없|못)|(?:질문|물음)[^,.]{0,4}(?:답하|대답)[^,.]{0,8}(?:않|못)",
        turns=(
            r"하지만|그러나|다만|그렇지만|그런데|(?<!\S)단(?=[ ,])|지만(?=[ ,])|으나(?=[ ,])|따라서|그래서"
            r"|때문에|므로"
        ),
        asks=r"누가|누구\S*|무엇\S*|언제\S*|어디\S*|왜|어떻게|몇\S*|얼마\S*|어느|어떤",
    ),
    "th": AbstentionWords(
        denies=(
            r"(?:ไม่|มิ|ยังไม่|มิได้|ไม่ได้|ไม่มี|ไม่สามารถ|ปราศจาก|ขาด)(?:[\u0e00-\u0e7f ]{0,9}?)(?:ทราบ|รู้"
            r"|ระบุ|กล่าว|บอก|พูดถึง|เอ่ย|มีข้อมูล|มีคำตอบ|ข้อมูล|คำตอบ|พบ|ปรากฏ|แน่ใจ|แน่ชัด|ชัดเจน|ตอบคำถาม|เพียงพอ"
            r"|เปิดเผย|อธิบาย|มีการ|มีเนื้อหา|เกี่ยวข้อง|ครอบคลุม|เขียน|เจอ|มั่นใจ|เขียนถึง|รายละเอียด|แจ้ง"
            r"|หาคำตอบ|บันทึก)|^(?:ไม่ทราบ|ไม่รู้|ไม่มี$|ไม่แน่ใจ|ไม่ระบุ)|ไม่(?:อาจ|สามารถ)(?:ที่จะ)?(?:ตอบ|ระบุ"
            r"|บอก|หา|ทราบ|ยืนยัน|สรุป|ให้|รู้|กำหนด|ค้นหา|พบ)|หาไม่พบ|หาไม่เจอ|ไม่พบ"
        ),
        aside=(
            r"^(?:ขออภัย|เสียใจ|ขอโทษ|น่าเสียดาย|ต้องขออภัย)|^(?:ตาม|จาก|ใน|อ้างอิง|เกี่ยวกับ"
            r"|สำหรับ)(?:[\u0e00-\u0e7f]*)(?:ข้อความ|เอกสาร|เนื้อหา|บริบท|บทความ|ข้อมูล|คำถาม)|อื่น|เท่านั้น"
            r"|เพียง"
        ),
        turns=r"แต่|อย่างไรก็ตาม|แม้|ถึงแม้|เพราะ|เนื่องจาก|ดังนั้น|ส่วน|และ(?=ไม่)|โดยไม่(?=ระบุ|ได้)",
        asks=r"ใคร|อะไร|เมื่อใด|เมื่อไร|ที่ไหน|ทำไม|อย่างไร|เท่าใด|เท่าไร|กี่|ว่า",
    ),
}

# What a question asks for, and words that stand for it: "the date is not included", "no contiene el nombre".
ASKED_FOR = re.compile(
    r"\b(?:(?:it|this|that)(?= (?:is|was|isn't|wasn't)\b|'s)|which|who|what|when|where|answers?|names?|dates?|years?|numbers?"
    r"|amounts?|prices?|costs?|details?|data|reasons?|causes?|ages?|titles?|identity|location|mention|reference|inform\w*"
    r"|antwort\w*|angabe\w*|hinweis\w*|namen?|datum|jahr\w*|zahl(?:en)?|daten|grund|einzelheit\w*"
    r"|reponse\w*|nom|annee|nombre|donnee\w*|indication\w*|raison|cela|ceci|ca"
    r"|respuesta\w*|nombres?|fechas?|ano|numero|datos?|detalles?|indicacion\w*|referencia\w*|idea|esto|eso|nada al respecto"
    r"|rispost[ae]|nome|nomi|dati|anno|dettagli\w*|riferiment\w*|menzione"
    r"|respost\w*|dados?|detalhes?|mencao|claro|isso|isto"
    r"|odpowiedz(?:i|ia)?|nazw\w*|imi(?:e|ona|enia)|dat[aey]|rok(?:u|iem)?|liczb\w*|dan(?:e|ych)|szczegol\w*|wzmian\w*"
    r"|antwoord\w*|naam|jaar|gegevens|uppgift\w*|namn\w*|svar\w*"
    r"|bilgi\w*|yanit\w*|ceva[bp]\w*|tarih\w*|isim|ism(?:i|ini)|adi(?:ni)?|veri(?:ler\w*)?|ayrinti\w*|thong tin|cau tra loi"
    r"|ответ(?:а|у|ы|ов|ом|е)?|имя|имени|дат[ауыео]|год\w*|информац\w*|сведени\w*|данны\w*|упомина\w*|подробност\w*|не сказано"
    r"|об этом|не написано)\b"
    r"|إجاب|جواب|اسم|تاريخ|تفاصيل|بيانات|إشار|ذلك|תשוב|שם|תאריך|פרטים|נתונים|אזכור|מידע|उत्तर|जवाब|नाम|तारीख|जानकारी|सूचना|विवरण|उल्लेख"
    r"|答え|回答|情報|名前|日付|記載|詳細|データ|답|이름|날짜|정보|내용|세부|언급"
)

LATIN = (
    "en", "de", "fr", "es", "it", "pt", "pl", "tr", "vi", "nl", "sv", "id", "cs", "ro", "fi", "hu", "hr", "ca", "sw", "tl",
)  # fmt: skip
OTHER_SCRIPTS = {
    "greek": ("el",), "cyrillic": ("ru", "uk", "bg", "sr"), "hebrew": ("he",),
    "arabic": ("ar", "fa", "ur"), "devanagari": ("hi", "mr"), "bengali": ("bn",), "gujarati": ("gu",), "tamil": ("ta",),
    "telugu": ("te",),
    "han": ("zh", "ja"), "kana": ("ja",), "hangul": ("ko",), "thai": ("th",),
}  # fmt: skip

# Words that say nothing beside a clause that denies: the text itself, the answer, and small words.
EMPTY = frozenset(
    listed(
        "a an the this that these those it its is are was were be been there here i we you my me your our of in on "
        "at to by for from with as and or so then just only all any such provided given available supplied above "
        "below following answer answers question questions text texts passage passages document documents context "
        "contexts excerpt source sources article information info content page paragraph material snippet result "
        "response final note status data sorry unfortunately please yes-or-no ai asked about alone based according "
        "short brief explanation reason reasoning therefore thus hence exactly precisely directly explicitly does do did not no than which who what when where der die das den "
        "dem des ein eine einem einen einer es ist sind im in am aus zu zum zur und oder mit auf fur antwort frage "
        "dokument kontext abschnitt quelle auszug angabe leider hier dazu hierzu daruber vorliegenden gegebenen le "
        "la les l un une des du de d dans ce cette ces est sont et ou en reponse document contexte extrait passage "
        "texte source question fourni fournie donne cela ceci ici el lo los las un una unos unas del al en este "
        "esta estos y o es son respuesta documento contexto fragmento pasaje pregunta fuente proporcionado dado "
        "texto aqui il i gli uno nel nella questo questa e ed sono risposta documento contesto brano estratto "
        "domanda fonte testo fornito qui o os as um uma no na neste nesta este resposta documento contexto trecho "
        "passagem pergunta fonte texto fornecido w z na do o i odpowiedz dokument kontekst fragment tekst pytanie "
        "zrodlo to tym ten bu su o ve bir yanit cevap belge metin baglam soru kaynak parca verilen cau tra loi tai "
        "lieu van ban doan van ngu canh cau hoi nguon het de een antwoord tekst ответ вопрос документ текст "
        "контекст отрывок источник в из на и это этот данный тексте документе الجواب الإجابة السؤال النص الوثيقة "
        "السياق المقطع في من هذا هذه תשובה שאלה מסמך טקסט הקשר קטע מקור זה זאת उत्तर जवाब प्रश्न पाठ दस्तावेज़ "
        "संदर्भ अंश यह इस में का की के το η ο στο στη κειμενο κειμενου εγγραφο αποσπασμα απαντηση ερωτηση textul textului text "
        "teksti tekstissa a szoveg szovegben 답 답변 질문 문서 본문 문맥 글 이 그 정답 죄송합니다 죄송하지만 "
    )
)
UNSPACED_EMPTY = frozenset(
    listed(
        "答案 回答 問題 问题 答 抱歉 对不起 對不起 答え 答 回答 質問 結論 คำตอบ คำถาม ครับ ค่ะ คะ 文中 文章 文档 "
        "文書 本文 "
    )
)


def _by_first_letter(alternatives: str) -> str:
    """A pattern of these, sorted by their first letters: at most places of a text that leaves few to try."""
    groups = groupby(sorted(set(_TOP_LEVEL.split(alternatives))), key=itemgetter(0))
    return "|".join(f"{letter}(?:{'|'.join(words[1:] for words in group)})" for letter, group in groups)


_TOP_LEVEL = re.compile(r"\|(?![^()]*\))")  # between alternatives that stand in no brackets


# How the words begin of which every clause that denies in a language of `LATIN` holds one: a reply without any needs no
# look at that language.
HINTS = {
    "en": (
        "about some|about another|about a diff|i dunno|refuse|decline|guess|tbd|tba|to be det|undefined|nezin|ei tea|no|neither|never"
        "|cannot|cant|dont|couldnt|n/?a|idk|dunno|null|unable|unsure|uncertain|unaware|unknown|unclear|unspecified|undisclosed|undetermin"
        "|unanswer|unsaid|unstated|unmention|indetermin|unrelated|irrelevant|off.topic|impossible|insufficient|too (?:little|vague|short|general|limited|brief)|silent|need more|more info|more cont|more det|rather not|fail|lack"
        "|omit|missing|absent|hard to|difficult to|at a loss|in the dark|open\\b|out\\b|beats|beyond|outside|knows\\b|pass\\b"
    ),
    "de": (
        "nicht|kein|unbeka|unkla|ungekl|ungewiss|ungenannt|unerw|unbeantw|unmogl|unzurei|unsicher|uberfragt|offen|fehl|schweigt"
        "|ausser stande"
    ),
    "fr": (
        "ne\\b|n'|n |pas\\b|aucun|rien|nulle|incapable|inconnu|non\\b|indeterm|flou|sans|impossible|insuffi|muet|silen|manque|ignore"
    ),
    "es": (
        "no\\b|nadie|ningun|nada|sin\\b|se descono|descono|ni idea|imposible|insufi|falta|care[cz]|guarda|incapaz|inciert|misterio|ignoro"
    ),
    "it": "non\\b|nessun|nulla|niente|senza|sconosc|igno|boh|imposs|insuffi|manca|tace|incert|imprecisat",
    "pt": "nao\\b|nenhum|nada|sem\\b|desconhe|ignoro|imposs|insufi|carece|falta|omiss|silencia|incapaz|incert",
    "pl": "nie|brak|zadn|nic\\b|milczy|pomija",
    "tr": (
        "yok|deg|belir|imkan|yetersiz|olanak|bil|emin|haber|fikr|acik|ver|bah|soy|yaz|yer|bul|gec|iste|soz|anl|anil|sun|sap|sagl|tesp"
        "|ulas|icer|yanit|ceva|cika|tani|konu|gost|ifad|payl|kay|mumkun|net|kesin|mevcut|yeter"
    ),
    "vi": "khong|chua|chang|thieu|bat kha thi|chiu thoi|vo danh",
    "nl": "niet|geen|onbekend|onvoldoende",
    "sv": "inte\\b|ikke|ej\\b|inge[nt]|inga|intet|okant|ukendt|ukjent|uklar|oklar|aner\\b",
    "id": "tidak|tak\\b|belum|bukan|tiada|entah|tanpa|informasi|kurang",
    "cs": "ne|zadn|nic\\b|dost|chybi|zustava nezn",
    "ro": "nu\\b|nici|fara|lips|ne[cspm]|habar",
    "fi": "en\\b|ei\\b|emme|eivat|tuntematon",
    "hu": "nem\\b|nincs|sincs|ismeretlen",
    "hr": "ne\\b|nema|nij|nis|ni\\b|nepoz|nedov",
    "ca": "no\\b|ni idea|desconeg|desconec|es descon|sense info|cap\\b",
    "sw": "sijui|sifaham|sina\\b|siwezi|hatu|hakuna|ha[ijklwyz][a-z]{0,4}(?:taj|elez|onesh|onyesh|bain|julik|faham|ain|sem|toi|toa|pat|andi|wez|tosh|jib|po|mo|na|zung)",
    "tl": "hindi|wala",
}
_HINTS_WITHIN_WORDS = {"en": "n't", "fr": "'ignore", "tr": r"yorum|yoruz|[ae]m[ae]m\b|[ae]m[ae]dim\b"}


def hints_of(languages: Iterable[str]) -> re.Pattern[str]:
    """A pattern that matches somewhere in every clause that denies in one of these languages of `LATIN`."""
    words = _by_first_letter("|".join(HINTS[language] for language in languages))
    within = "|".join(_HINTS_WITHIN_WORDS[language] for language in languages if language in _HINTS_WITHIN_WORDS)
    return re.compile(rf"\b(?:{words})" + (f"|{within}" if within else ""))


DENIAL_HINTS = hints_of(LATIN)
