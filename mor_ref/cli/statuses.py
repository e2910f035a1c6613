"""The exit statuses of the commands, as docs/guide/stable.md promises them."""

from enum import IntEnum


class Status(IntEnum):
    """How a command has ended; a status from 128 on is that of a shell for a signal."""

    DONE = 0  # the bits match, or the command did its work
    DIFFERS = 1  # or something was left out that had to be there
    WRONG_CALL = 2  # or a file cannot be used
    NOT_RUN = 3  # or results cannot be read, or the memory does not suffice
    BUT_FOR_TIES = 4  # the bits match, except next to a tie, where they were allowed to differ
    FAULT = 5  # of mor_ref itself: an exception that it does not know
    INTERRUPTED = 130  # by Ctrl-C
    CLOSED_PIPE = 141  # nobody reads any more


VERDICT_STATUSES = {
    "match": Status.DONE,
    "match but for ties": Status.BUT_FOR_TIES,
    "mismatch": Status.DIFFERS,
    "incomplete": Status.DIFFERS,
    "not run": Status.NOT_RUN,
    "failed": Status.NOT_RUN,
}


def comparison_status(*, differs: bool) -> Status:
    """Return the status of a command that compares."""
    return Status.DIFFERS if differs else Status.DONE
