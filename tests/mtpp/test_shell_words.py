"""Words of proposed command lines, as a shell takes them."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from mtpp.formats.modelled.open_sizes import OpenSize, OpenSizes
from mtpp.formats.modelled.size_roles import Role
from mtpp.terminal_safe import shell_word

TEXTS = [
    "plain:0=1",
    "two words=3",
    "a'b=1",
    '$(touch x)`y`"',
    "-k",
    "back\\slash",
    "\x1b[31mred\x07",
    "tab\tand\nline'\\",
    "名=4",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_shell_takes_a_word_for_what_it_stands_for(text: str) -> None:
    """Whatever is in it; what is shown has no control characters."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    word = shell_word(text)
    assert word.isprintable()
    done = subprocess.run([bash, "-c", f"printf '%s' {word}"], capture_output=True, check=True, timeout=60)
    assert done.stdout.decode() == text


def test_proposals_quote_names() -> None:
    """A size whose name holds blanks or orders can be pasted."""
    error = OpenSizes([OpenSize("a b", (), Role.OTHER, 3), OpenSize("\x07", (), Role.OTHER, 4)], "m")
    told = error.told(lambda name: {"dims": "--dim"}.get(name, name))
    assert "--dim 'a b=3' --dim $'\\x07=4'" in told
