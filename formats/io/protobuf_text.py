"""Messages in the text format of Protocol Buffers, read without a schema but with the numbers of lines.

The format (protobuf.dev/reference/protobuf/textformat-spec)::

    node {                              # a message: braces or angle brackets, after an optional colon
      name: "conv" 'olution'            # a string, in parts, with the escapes of C
      id: 7; size: -1, cost: 1.5e3      # a number; fields may end in a comma or a semicolon
      dtype: DT_FLOAT                   # a name
      control_input: [1, 2]             # several values of one field
    }

Extensions (``[name.of.extension]``) are refused: no format that is read here has any.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from mtpp.errors import InputError
from mtpp.formats.io.json_shape import shown

_DEEPEST = 100
_TOKEN = re.compile(
    r"""\s*+(?:\#[^\n]*+\s*+)*+(?:
    (?P<mark>[{}<>\[\]:,;])
    |(?P<name>-?[A-Za-z_][\w.]*)
    |(?P<number>-?\s*(?:0[xX][0-9a-fA-F]+|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?[fF]?))(?![\w.])
    |(?P<string>"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+')
    |(?P<unread>\S)
    |(?P<end>\Z))""",
    re.VERBOSE | re.ASCII,
)
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|[xX][0-9a-fA-F]{1,2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_ESCAPED = {
    b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v",
    b"\\": b"\\", b"'": b"'", b'"': b'"', b"?": b"?",
}  # fmt: skip
_CLOSING = {"{": "}", "<": ">"}


class Token(NamedTuple):
    """A piece of text: *kind* is ``string`` (its contents), ``number``, ``name`` or ``mark``."""

    kind: str
    text: str
    line: int


@dataclass
class Message:
    """A message: the values of each field in the order of the text, and the line where it begins."""

    line: int
    fields: dict[str, list[Token | Message]] = field(default_factory=dict)

    def add(self, name: str, value: Token | Message) -> None:
        """Append a value of a field."""
        self.fields.setdefault(name, []).append(value)


def parse_text(text: str) -> Message:
    """Return the message that *text* is.

    Raises
    ------
    InputError
        On what is no such text, with the line in *where*.

    Notes
    -----
    O(length). Messages may be nested a hundred deep, without recursion.
    """
    tokens = _Tokens(text)
    top = Message(1)
    open_messages: list[tuple[Message, str]] = [(top, "")]
    while True:
        message, closing = open_messages[-1]
        token = tokens.take()
        if token is None:
            if closing:
                problem = f"the text ends inside the message that begins in line {message.line}"
                raise InputError(problem, where=f"line {tokens.line}", remedy="is the file complete?")
            return top
        if token.kind == "mark" and token.text == closing:
            open_messages.pop()
            tokens.skip(",;")
            continue
        if token.kind != "name" or token.text.startswith("-"):
            raise _unexpected(token, "the name of a field")
        opened = _field(message, token, tokens)
        if opened is not None:
            open_messages.append(opened)
            if len(open_messages) > _DEEPEST:
                raise InputError("nested too deeply", where=f"line {token.line}", remedy="flatten it")


class _Tokens:
    """The tokens of a text, one of which can be looked at before it is taken."""

    def __init__(self, text: str) -> None:
        self._rest = _scan(text)
        self._next = next(self._rest, None)
        self.line = 1

    def take(self) -> Token | None:
        """Return the next token, None at the end."""
        token = self._next
        if token is not None:
            self.line = token.line
            self._next = next(self._rest, None)
        return token

    def need(self, what: str) -> Token:
        """Return the next token, which has to be there."""
        token = self.take()
        if token is None:
            raise InputError(f"the text ends where {what} belongs", where=f"line {self.line}", remedy="is it complete?")
        return token

    def skip(self, marks: str) -> bool:
        """Take the next token if it is one of these marks."""
        token = self._next
        if token is None or token.kind != "mark" or token.text not in marks:
            return False
        self.take()
        return True

    def take_string(self) -> Token | None:
        """Return the next token if it is a string."""
        return self.take() if self._next is not None and self._next.kind == "string" else None


def _field(message: Message, name: Token, tokens: _Tokens) -> tuple[Message, str] | None:
    """Read the rest of a field; return the message that it opens, and how that is to end."""
    colon = tokens.skip(":")
    value = tokens.need(f"the value of {name.text!r}")
    if value.kind == "mark":
        if value.text in _CLOSING:
            opened = Message(name.line)
            message.add(name.text, opened)
            return opened, _CLOSING[value.text]
        if value.text == "[" and colon:
            _add_list(message, name.text, tokens)
            tokens.skip(",;")
            return None
        raise _unexpected(value, f"the value of {name.text!r}")
    if not colon:
        raise _unexpected(value, f"':' after {name.text!r}")
    message.add(name.text, _whole_string(value, tokens) if value.kind == "string" else value)
    tokens.skip(",;")
    return None


def _add_list(message: Message, name: str, tokens: _Tokens) -> None:
    what = f"a value in the list {name!r}"
    if tokens.skip("]"):
        return
    while True:
        value = tokens.need(what)
        if value.kind == "mark":
            raise _unexpected(value, what)
        message.add(name, _whole_string(value, tokens) if value.kind == "string" else value)
        if tokens.skip("]"):
            return
        if not tokens.skip(","):
            raise _unexpected(tokens.need("',' or ']'"), "',' or ']'")


def _whole_string(first: Token, tokens: _Tokens) -> Token:
    parts = [first.text]
    while (token := tokens.take_string()) is not None:
        parts.append(token.text)
    return Token("string", "".join(parts), first.line)


def _unexpected(token: Token, wanted: str) -> InputError:
    return InputError(f"found {shown(token.text)} instead of {wanted}", where=f"line {token.line}")


def _scan(text: str) -> Iterator[Token]:
    line, counted = 1, 0
    for match in _TOKEN.finditer(text):
        kind = str(match.lastgroup)
        start = match.start(kind)
        line += text.count("\n", counted, start)
        counted = start
        if kind == "string":
            yield Token(kind, _unescaped(match[kind][1:-1], line), line)
        elif kind in ("mark", "name", "number"):
            yield Token(kind, match[kind], line)
        elif kind == "unread":
            what = text[start : start + 20].split("\n")[0]
            problem = "a string without an end" if what[:1] in "\"'" else f"cannot be read: {shown(what)}"
            raise InputError(problem, where=f"line {line}")


def _unescaped(text: str, line: int) -> str:
    if "\\" not in text:
        return text
    try:
        return _ESCAPE.sub(_character, text.encode()).decode()
    except (UnicodeDecodeError, ValueError, KeyError):
        raise InputError(f"the string {shown(text)} has an escape that is none", where=f"line {line}") from None


def _character(match: re.Match[bytes]) -> bytes:
    code = match[1]
    if code in _ESCAPED:
        return _ESCAPED[code]
    if code[:1] in b"uU":
        return chr(int(code[1:], 16)).encode()
    return bytes([int(code[1:], 16) if code[:1] in b"xX" else int(code, 8)])
