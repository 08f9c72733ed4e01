"""A worker process: is given one job by its parent, does it, and says how that went.

It talks in pairs: a word, and what belongs to it. Besides what jobs say, ``("refused", error)`` means that the job is
not to be done as it is, and ``("peer lost", None)`` that another process has gone that this one waits for. A process
that ends without a word has died; what it and its libraries printed is in a file that the parent reads then.
"""

from __future__ import annotations

import os
import sys
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection

from mtpp.errors import MtppError
from mtpp.host.child_process import follow_parent
from mtpp.runtime.pipeline.tokens import PeerGone


def serve(descriptor: int, parent_id: int) -> None:
    """Do the job that comes in over the connection with that descriptor, for the process with that number."""
    follow_parent()
    if os.getppid() != parent_id:  # it died before that
        return
    parent = Connection(descriptor)
    with suppress(EOFError, OSError):  # the parent is gone, and nobody waits any more
        job = parent.recv()
        try:
            job.run(parent)
        except PeerGone:
            parent.send(("peer lost", None))
        except MtppError as error:
            parent.send(("refused", error))
        except (EOFError, ConnectionError):
            raise
        except Exception:
            traceback.print_exc()
            sys.stderr.flush()
            sys.exit(1)
