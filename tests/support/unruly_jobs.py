"""Jobs of worker processes that end badly, or never."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection

from mtpp.errors import InputError
from mtpp.runtime.pipeline.tokens import PeerGone


@dataclass(frozen=True)
class UnrulyJob:
    """Does what its verb says."""

    verb: str

    def descriptors(self) -> tuple[int, ...]:
        """Return none."""
        return ()

    def run(self, parent: Connection) -> None:
        """Do it."""
        parent.send(("ready", self.verb))
        if self.verb == "raise":
            print("first words", flush=True)
            raise ValueError("something is odd")
        if self.verb == "die":
            os.write(2, b"the library's last words\n")
            os.kill(os.getpid(), signal.SIGKILL)
        if self.verb == "exit":
            sys.exit(3)
        if self.verb == "refuse":
            raise InputError("not like this", source="some.onnx", remedy="do it otherwise")
        if self.verb == "peer lost":
            raise PeerGone
        if self.verb == "hang":
            while True:
                time.sleep(0.01)
        parent.send(("done", None))
