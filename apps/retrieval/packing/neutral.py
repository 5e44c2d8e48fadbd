"""A memory's words as data: on lines of their own, without what a chat format takes for its own.

Each line of a text stands behind a mark, so no line of it can be one of the frame's, or begin with the name of a
speaker. What remains are markers that count in the middle of a line, too: their first sign becomes a look-alike.
Other text stays as it is.
"""

import re

_BREAKS = re.compile("\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# Control characters but the tab; surrogates, which no text can be encoded with; tags, which models read and people
# do not see.
_UNSEEN = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\U000e0000-\U000e007f]")
REPLACED = "\ufffd"

_NAMES = (
    "s|bos|eos|pad|unk|start_of_turn|end_of_turn|think|system|developer|user|assistant|human|model|tool|function"
    "|tools|tool_calls?|tool_responses?|tool_results?|function_calls?|function_results?|invoke|instructions?"
    "|memory-context"
)
_BRACKETED = (
    "INST|SYS|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|TOOL_ARGS|gMASK|sMASK|MASK|CLS"
    "|SEP|PAD|UNK|BOS|EOS|THINK"
)
_LESS, _GREATER, _BAR = "[<\uff1c\ufe64]", "[>\uff1e\ufe65]", "[|\uff5c]"
_FIRST_SIGNS = "<[|\uff1c\ufe64\uff5c"
_MARKERS = (
    (re.compile(f"{_LESS}(?={_BAR})"), "‹"),
    (re.compile(f"(?<={_BAR}){_GREATER}"), "›"),
    (re.compile(rf"{_LESS}(?=\s*/?\s*(?:\w+:)?(?:{_NAMES})(?!\w))", re.IGNORECASE), "‹"),
    (re.compile(rf"{_LESS}{_LESS}(?=\s*/?\s*SYS\b)", re.IGNORECASE), "‹‹"),
    (re.compile(rf"\[(?=\s*/?\s*(?:{_BRACKETED})\s*\])", re.IGNORECASE), "⟦"),
)


def neutral(text: str) -> str:
    """The text with one kind of line break and without markers of chat formats."""
    text = _UNSEEN.sub(REPLACED, _BREAKS.sub("\n", text))
    if any(sign in text for sign in _FIRST_SIGNS):
        for marker, instead in _MARKERS:
            text = marker.sub(instead, text)
    return text


def quoted(text: str) -> str:
    """Every line behind `> ` (an empty one is `>`), each ended by a line break. Empty for an empty text."""
    if not text:
        return ""
    return "".join(f"> {line}\n" if line else ">\n" for line in neutral(text).split("\n"))


def on_one_line(text: str) -> str:
    """The words of a title or a place on one line, white space collapsed."""
    return " ".join(neutral(text).split())
