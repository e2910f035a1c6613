"""Processes for suites, one for each processor."""

import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor


def processes() -> ProcessPoolExecutor:
    """Processes that end with the one that started them, even if that is killed."""
    return ProcessPoolExecutor(initializer=_end_with_parent)


def _end_with_parent() -> None:
    """Left alone, they would wait for work for ever."""
    parent = multiprocessing.parent_process()

    def wait_and_end() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait_and_end, daemon=True).start()
