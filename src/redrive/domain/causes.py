"""What of an error's text tells its cause: the codes it names, the place it came from, and its words.

Everything that differs between two failures of one cause is taken out: ids, numbers, times, addresses, paths
and quoted values. Every pattern here takes linear time on any text; callers bound its length.
"""

from __future__ import annotations

import re
from typing import Final

from redrive.domain import limits

_CODES_KEPT: Final = 4
_END = r"(?![-:./]?\w)"  # a longer thing that begins like a code is no code

_VERSION = r"(?:/\d(?:\.\d)?)?"
#: Where a message names a code that tells causes apart; one group each. A number counts as a code only beside
#: a word that says so, because most numbers are ids.
_CODE: Final = re.compile(
    "|".join(
        (
            rf"\bHTTP{_VERSION}[\s:=(]{{0,3}}(?:status|error)?[\s_:=]?(?:code)?[\s:=(]{{0,3}}([1-5]\d\d){_END}",
            rf"\bstatus(?:[\s_-]?code)?[\"']?[\s:=(]{{1,3}}([1-5]\d\d){_END}",
            r"\berror '([1-5]\d\d) ",  # httpx
            r"\A([1-5]\d\d), message=",  # aiohttp
            rf"\b(?:errno|winerror|sqlcode)[\"']?[\s:=(]{{1,3}}(-?\d{{1,5}}){_END}",
            rf"\bsqlstate[\"']?[\s:=(\[]{{1,3}}([0-9A-Z]{{5}}){_END}",
            rf"\b(?:error|return|response|result|vendor|exit)[\s_-]?code[\"']?[\s:=(]{{1,3}}(-?\d{{1,5}}){_END}",
            rf"\b(?:exit(?:ed with)?(?: status)?|signal)[\s:=]{{1,3}}(-?\d{{1,3}}){_END}",
            r"\berror[\s:]{1,2}(\d{1,5})(?=\s?[:(\])])",  # ERROR 1062 (23000): …
            r"\A\(?(\d{4,5})(?=, [\"']| \()",  # (1062, "…") and 1062 (23000): …
            rf"\b((?:ORA|PLS|TNS)-\d{{4,5}}){_END}",
            r"[\"']code[\"']\s?[:=]\s?[\"']?(-?\d{1,5}|[a-z][a-z_.-]{1,60})(?=[\"',\s}])",  # in JSON
            r"\berror[\s_-]?code[\"']?[\s:=(]{1,3}[\"']?([a-z][a-z_.-]{1,60})(?![\w-])",
            r"\bStatusCode\.([A-Z_]{2,30})\b",  # gRPC
        )
    ),
    re.IGNORECASE,
)

_HEX = "[0-9a-f]{1,4}"
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}"
_DAY = r"(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}"
_QUOTED = (("'", "'"), ('"', '"'), ("`", "`"), ("‘", "’"), ("“", "”"), ("«", "»"))
_STRING = "|".join(rf"{a}(?:\\.|[^{b}\\])*(?:{b}|\\?\Z)" for a, b in _QUOTED)

#: In this order: what holds other things goes first.
_NOISE: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), token)
    for pattern, token in (
        (r"\b[a-z][a-z0-9+.-]{1,20}://[^\s'\"<>)\]]+", "<url>"),
        # a quote inside a word is an apostrophe; a string that was cut off ends with the text
        (rf"(?<!\w)[bruf]{{0,2}}(?:{_STRING})", "<text>"),
        (r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,8}\w{1,24}\b", "<address>"),
        (r"(?<![\w)\]>])[-+](?=\d)", ""),
        (r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", "<n>"),
        (rf"(?<![\w:.])(?:{_HEX}:){{7}}{_HEX}(?![\w:])", "<address>"),
        (rf"(?<![\w:.])(?:{_HEX}(?::{_HEX}){{0,6}})?::(?:{_HEX}(?::{_HEX}){{0,6}})?(?![\w:])", "<address>"),
        (r"\[<address>\]", "<address>"),
        (r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]\d)", "<address>"),
        (r"(?<![\w.-])(?:[\w-]{1,63}\.){1,8}[\w-]{1,63}(?=:\d)", "<address>"),
        (r"<address>:\d{1,5}\b", "<address>"),
        (r"\b[a-z]:\\[^\s'\"<>|]+", "<path>"),
        (r"(?<![\w<>/.])(?:~|\.{1,2})?(?:/[\w.@%+~$-]+){2,}/?", "<path>"),
        (rf"\b(?:{_DAY},?\s)?(?:\d{{1,2}}[\s-])?{_MONTH}[\s-]\d[\d:.,\s-]*(?:gmt|utc)?", "<n> "),
        (r"\b0x[0-9a-f]+\b", "<n>"),
        (r"(?<![\w.])[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?\b", "<n>"),
        (r"\b(?=\w*\d)\w+(?:[-:./+]\w+)*", "<n>"),
        (r"\b[a-f]{7,}\b", "<n>"),  # of hexadecimal digits, one in a thousand has no number
        (r"(<\w+>)(?:[\s,;]+\1)+", r"\1"),  # a list of values is as good as one
        (r"\s+", " "),
    )
)  # fmt: skip

#: The innermost frame by language: the pattern, whether the innermost frame comes last, and which of its
#: groups are the file and the function.
_AT = r"^[ \t]{0,40}at "
_FRAMES: Final = tuple(
    (re.compile(pattern, re.MULTILINE), last, file, function)
    for pattern, last, file, function in (
        (r'File "([^"\n]{1,500})", line \d+, in ([^\n]{1,200})', True, 1, 2),  # Python
        (rf"{_AT}([\w$.<>/]{{1,300}})\(([\w$.-]{{1,200}})(?::\d+)?\)", False, 2, 1),  # Java, Kotlin
        (rf"{_AT}([\w.`<>\[\]+]{{1,300}})\([^)\n]{{0,300}}\) in (.{{1,500}}?):line \d+", False, 2, 1),  # .NET
        (
            (
                rf"{_AT}(?:async )?(?:new )?([^\s(]{{1,200}})(?: \[as [^\]\n]{{1,99}}\])?"
                r" \(([^()\n]{1,500}?):\d+:\d+\)"
            ),
            False, 2, 1,
        ),  # JavaScript
        (rf"{_AT}(?:async )?()([^\s():]{{0,9}}:?[^\s():]{{1,500}}):\d+:\d+$", False, 2, 1),  # of no function
        (r"^([\w./*()-]{1,300})\([^)\n]{0,300}\)\n\t([^\n]{1,500}?):\d+", False, 2, 1),  # Go
        (r"^[ \t]{0,40}(?:from )?([^\s:]{1,500}):\d+:in [`'‘]([^'’\n]{1,200})['’]", False, 1, 2),  # Ruby
        (r"^#\d+ ([^\n(]{1,500})\(\d+\): ([^\n(]{1,200})\(", False, 1, 2),  # PHP
    )
)  # fmt: skip
_BUILT: Final = re.compile(r"(?<=[.-])(?=[a-z]*\d)[0-9a-f]{6,}(?=\.)", re.IGNORECASE)  # a bundle's hash
_NUMBERED: Final = re.compile(r"(?<=\$)\d+(?:/0x[0-9a-f]+)?|(?<=Lambda\$)\S+", re.IGNORECASE)
_DYNAMIC: Final = re.compile(r"0x[0-9a-f]+|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)


def codes(message: str) -> str:
    """The codes that a message names (HTTP status, errno, SQLSTATE, a vendor's), joined by commas."""
    found: dict[str, None] = {}
    for match in _CODE.finditer(message[: limits.FINGERPRINTED_CHARS_MAX]):
        found[next(filter(None, match.groups())).lower()] = None
        if len(found) == _CODES_KEPT:
            break
    return ",".join(found)


def place(stack: str) -> str:
    """``file:function`` of the innermost frame: no folder, no line number; empty when none is recognised.

    A file's folder is where a worker is installed, and its lines move with every release.
    """
    for pattern, last, file, function in _FRAMES:
        match = None
        for match in pattern.finditer(stack):  # noqa: B007 - the last one is wanted
            if not last:
                break
        if match is not None:
            name = match[file].replace("\\", "/").rsplit("/", 1)[-1]
            return f"{_BUILT.sub('', name)}:{_NUMBERED.sub('', match[function].strip())}"
    return ""


def words(message: str) -> str:
    """The first line that says anything, in lower case, without what differs from one failure to the next."""
    text = message[: limits.FINGERPRINTED_CHARS_MAX].lstrip().split("\n", 1)[0]
    for pattern, token in _NOISE:
        text = pattern.sub(token, text)
    return text.strip().lower()


def stable_type(name: str) -> str:
    """An error's type without the addresses and ids of classes that are made while a program runs."""
    return _DYNAMIC.sub("", name).strip()
