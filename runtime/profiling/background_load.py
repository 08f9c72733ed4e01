"""Other work on the machine while something is measured, as stages of a pipeline have it beside them.

Cores share caches, memory and often more: what an op takes alone is less than what it takes while the other cores work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread


@contextmanager
def background_load(workers: Sequence[Callable[[], object]]) -> Iterator[None]:
    """Call each of *workers* over and over in a thread while the context lasts; raise at its end what one raised.

    Notes
    -----
    Threads are enough: ONNX Runtime lets go of the interpreter while it runs a model.
    """
    done = Event()
    faults: list[BaseException] = []

    def work(worker: Callable[[], object]) -> None:
        try:
            while not done.is_set():
                worker()
        except BaseException as error:
            faults.append(error)

    threads = [Thread(target=work, args=(worker,), daemon=True) for worker in workers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()
    if faults:
        raise faults[0]
