"""Every block of the pages for Python that imports mtpp runs as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from processes import ROOT, environment, environment_with_libraries

from mtpp.datasets import sample_path

NAMES = ("python", "pytorch", "layouts", "device_maps", "capacity", "replace-device-map-auto")
PAGES = [ROOT / "docs" / f"{page}.md" for page in NAMES]
BLOCKS = [
    block
    for page in PAGES
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    if "import mtpp" in block
]
COMMANDS = (
    *("partition", "verify", "bound", "certify", "compare", "evaluate", "inspect", "convert", "profile", "split"),
    *("run_pipeline", "plan_training", "simulate", "report", "generate", "warmup"),
)


@pytest.mark.parametrize("block", BLOCKS, ids=[re.findall(r"mtpp\.(\w+)\(", block)[0] for block in BLOCKS])
def test_blocks_run(block: str, tmp_path: Path) -> None:
    """In a process of its own, in a folder with the sample model and the pages; what a block asserts holds."""
    needs_torch = "import torch" in block
    if needs_torch:
        pytest.importorskip("torch", reason="needs PyTorch")
    env = environment_with_libraries() if needs_torch else environment()
    os.symlink(sample_path("resnet50"), tmp_path / "resnet50.onnx")
    os.symlink(ROOT / "docs", tmp_path / "docs")
    (tmp_path / "block.py").write_text(f'if __name__ == "__main__":\n{re.sub("(?m)^", "    ", block)}')
    done = subprocess.run(
        [sys.executable, "block.py"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr


def test_every_command_has_its_lines() -> None:
    """What each command does is a call in some block of at most a dozen lines."""
    called = set(re.findall(r"mtpp\.(\w+)\(", "\n".join(BLOCKS)))
    assert called.issuperset(COMMANDS)
    assert max(len([line for line in block.splitlines() if line.strip()]) for block in BLOCKS) <= 12
