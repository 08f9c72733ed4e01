"""A child process that says what it hears, until it is told to end."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

from mtpp.host.child_process import follow_parent, message_pipes


def serve() -> None:
    """Answer every message; start a process of its own on ``"start"``; end with exit code 7 on ``"end"``."""
    follow_parent()
    requests, replies = message_pipes()
    while True:
        message = pickle.load(requests)
        print("words of a library", flush=True)
        if message == "end":
            os._exit(7)
        if message == "start":
            other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            pickle.dump(("started", other.pid), replies)
        else:
            pickle.dump(("heard", message), replies)
        replies.flush()
