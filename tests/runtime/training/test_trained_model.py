"""Programs that are trained: read again by every process."""

from __future__ import annotations

from pathlib import Path

import pytest

from mtpp.errors import InputError
from mtpp.runtime.training.trained_model import TrainedModel


def test_a_file_that_changed_meanwhile_is_refused(tmp_path: Path) -> None:
    """Another model is not trained in place of the one that was checked."""
    path = tmp_path / "model.pt2"
    path.write_bytes(b"another one")
    with pytest.raises(InputError, match="has changed since the run began"):
        TrainedModel(path, "0" * 64, 1 << 20, {}, [], 0).load()
