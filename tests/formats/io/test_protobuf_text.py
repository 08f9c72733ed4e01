"""The text format of Protocol Buffers: what a tokenizer has to get right, and what it has to refuse."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from hypothesis import given
from hypothesis import strategies as st
from refusals import refusal

from mtpp.formats.io.protobuf_text import Message, parse_text


def _plain(message: Message) -> dict[str, list[Any]]:
    return {
        name: [_plain(value) if isinstance(value, Message) else value.text for value in values]
        for name, values in message.fields.items()
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("# nothing\n", {}),
        ("a: 1 # { b: 2", {"a": ["1"]}),
        (" " * 100_000 + "#" * 100_000, {}),
        ("a: 1 a:2", {"a": ["1", "2"]}),
        ("a:-1,b:+1".replace("+", ""), {"a": ["-1"], "b": ["1"]}),
        ("a: 1.5e-3; b: .5f c: 0x1F d: - 7", {"a": ["1.5e-3"], "b": [".5f"], "c": ["0x1F"], "d": ["- 7"]}),
        ("a { b { } }", {"a": [{"b": [{}]}]}),
        ("a: { b < c: 1 > }, a <>;", {"a": [{"b": [{"c": ["1"]}]}, {}]}),
        ("a: [1, 2] b: [] c: [X]", {"a": ["1", "2"], "c": ["X"]}),
        ("a: DT_FLOAT b: true c: -inf", {"a": ["DT_FLOAT"], "b": ["true"], "c": ["-inf"]}),
        ('s: "a # b { } \\" \'" # comment\nt: \'x"y\'', {"s": ["a # b { } \" '"], "t": ['x"y']}),
        ("s: 'one' \"two\"\n 'three' a: 1", {"s": ["onetwothree"], "a": ["1"]}),
        (r's: "\n\t\\\x41\101\u00e9\303\251\U0001F600"', {"s": ["\n\t\\AAéé😀"]}),
    ],
)
def test_messages(text: str, expected: dict[str, Any]) -> None:
    """Fields in order, whatever separates them."""
    assert _plain(parse_text(text)) == expected


def test_lines() -> None:
    """Tokens and messages know where they begin, comments and strings counted."""
    message = parse_text('# one\n\na: "x"\n\n  b {\n c: 1 }')
    assert (message.fields["a"][0].line, message.fields["b"][0].line) == (3, 5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a {\n b: 1", "line 2: the text ends inside the message that begins in line 1; is the file complete?"),
        ("a {\n b: 1 >", "line 2: found '>' instead of the name of a field"),
        ("}", "line 1: found '}' instead of the name of a field"),
        ("a:", "line 1: the text ends where the value of 'a' belongs"),
        ("a", "line 1: the text ends where the value of 'a' belongs"),
        ("a 1", "line 1: found '1' instead of ':' after 'a'"),
        ("a: b: 1", "line 1: found ':' instead of the name of a field"),
        ("a: [1 2]", "line 1: found '2' instead of ',' or ']'"),
        ("a: [1,", "line 1: the text ends where a value in the list 'a' belongs"),
        ("a: [[1]]", "line 1: found '[' instead of a value in the list 'a'"),
        ("[ext]: 1", "line 1: found '[' instead of the name of a field"),
        ("7: 1", "line 1: found '7' instead of the name of a field"),
        ("\n\na: 'x\n'", "line 3: a string without an end"),
        ("a: 1x", "line 1: cannot be read: '1x'"),
        ("a: 1.2.3", "line 1: cannot be read: '1.2.3'"),
        ("a: @", "line 1: cannot be read: '@'"),
        (r"a: '\q'", r"line 1: the string '\\q' has an escape that is none"),
        (r"a: '\xff'", r"line 1: the string '\\xff' has an escape that is none"),
        (r"a: '\777'", r"line 1: the string '\\777' has an escape that is none"),
        ("a {" * 10_000, "line 1: nested too deeply"),
    ],
)
def test_what_is_no_message(text: str, message: str) -> None:
    """The line, what was found and what belongs there."""
    assert str(refusal(parse_text, text)).startswith(message)


def _schema() -> Any:
    """Return a class of messages that hold a string, a number and messages of the same kind."""
    field = descriptor_pb2.FieldDescriptorProto
    kinds = {
        "text": field.TYPE_STRING,
        "number": field.TYPE_INT64,
        "raw": field.TYPE_BYTES,
        "inner": field.TYPE_MESSAGE,
    }
    file = descriptor_pb2.FileDescriptorProto(name="tree.proto", syntax="proto3")
    message = file.message_type.add(name="Tree")
    for number, (name, kind) in enumerate(kinds.items(), start=1):
        row = message.field.add(name=name, number=number, type=kind, label=field.LABEL_REPEATED)
        if kind == field.TYPE_MESSAGE:
            row.type_name = ".Tree"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Tree"))


TREES = st.recursive(
    st.builds(dict, text=st.lists(st.text(max_size=8), max_size=2), number=st.lists(st.integers(-9, 9), max_size=2)),
    lambda inner: st.builds(dict, text=st.lists(st.text(max_size=8), max_size=2), inner=st.lists(inner, max_size=3)),
    max_leaves=6,
)


@given(tree=TREES, one_line=st.booleans(), angles=st.booleans(), unicode=st.booleans(), short=st.booleans())
def test_what_the_protobuf_library_writes(
    tree: dict[str, Any], one_line: bool, angles: bool, unicode: bool, short: bool
) -> None:
    """However it lays out a message, the fields read are those written."""
    text = text_format.MessageToString(
        _TREE(**tree),
        as_one_line=one_line,
        pointy_brackets=angles,
        as_utf8=unicode,
        use_short_repeated_primitives=short,
    )
    assert _plain(parse_text(text)) == _expected(tree)


_TREE = _schema()


def _expected(tree: dict[str, Any]) -> dict[str, list[Any]]:
    plain = {"text": tree["text"], "number": [str(number) for number in tree.get("number", ())]}
    plain["inner"] = [_expected(inner) for inner in tree.get("inner", ())]
    return {name: values for name, values in plain.items() if values}
