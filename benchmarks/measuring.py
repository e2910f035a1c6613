"""Timing contenders in turn, and the table of ratios."""

import time

from rich.console import Console
from rich.table import Table

ROUNDS = 7


def best_times(contenders, rounds=ROUNDS):
    """The best time of each contender, in seconds.

    Every contender is run in turn, round after round, and its best time counts: what disturbs the
    machine disturbs all of them.
    """
    times = dict.fromkeys(contenders, float("inf"))
    for call in contenders.values():
        call()  # compiles, and touches the memory
    for _ in range(rounds):
        for name, call in contenders.items():
            start = time.perf_counter()
            call()
            times[name] = min(times[name], time.perf_counter() - start)
    return times


class Ratios:
    """Rows of an operation, its rate, a peer, and the ratio that is wanted."""

    def __init__(self):
        self._table = Table("operation", "M/s", "peer", "ratio", "wanted", "met", box=None)

    def add(self, operation, size, seconds, peer, ratio, wanted, *, at_most=False):
        """One row; a ratio is the peer's time over ours, or ours over the peer's if at most."""
        met = ratio <= wanted if at_most else ratio >= wanted
        self._table.add_row(
            operation,
            f"{size / seconds / 1e6:,.0f}",
            peer,
            f"{ratio:.2f}",
            f"{'<=' if at_most else '>='} {wanted}",
            "yes" if met else "NO",
        )

    def show(self):
        """Print the table."""
        Console().print(self._table)
