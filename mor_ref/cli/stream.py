"""`mor-ref gen` and `mor-ref ver`: test cases as lines of text, in the manner of TestFloat."""

import os
import sys

from mor_ref.argument_checks import known_name, whole_number
from mor_ref.cli.output_text import ending_if_unwritable
from mor_ref.cli.statuses import Status, comparison_status
from mor_ref.counts_in_words import counted
from mor_ref.golden.streams.stream import Stream, inputs_of, stream_named, with_results
from mor_ref.verify.comparing.allowed import Allowed
from mor_ref.verify.reporting.text import addresses
from mor_ref.verify.running.check_lines import LineError, Sent, checked, computed

FORMATS = ("testfloat",)
_MOST = 1 << 62
_LAST_SEED = 0xFFFF
_PIECE = 1 << 20  # bytes: more than a pipe holds


def _check(form: str, seed: int | None, count: int | None) -> None:
    """Refuse a format that is not known, and numbers outside their ranges."""
    known_name("format", form, FORMATS)
    if seed is not None:
        whole_number("seed", seed, 0, _LAST_SEED)
    if count is not None:
        whole_number("count", count, 1, _MOST)


def run_gen(name: str, form: str, seed: int, count: int | None) -> int:
    """Write the inputs of a stream, until its end or until the reader closes the pipe."""
    _check(form, seed, count)
    stream = stream_named(name)
    with ending_if_unwritable(sys.stdout):
        try:
            for arrays in inputs_of(stream, seed, count):
                _write(stream.question.written(arrays))
        except BrokenPipeError:
            return Status.DONE
        except KeyboardInterrupt:
            return Status.INTERRUPTED
        return Status.DONE


def _write(content: bytes) -> None:
    """Write to the standard output without a buffer, which a closed pipe would spoil later."""
    left = memoryview(content)
    while left:
        left = left[os.write(1, left) :]


def run_ver(
    name: str,
    form: str,
    errors: int,
    count: int | None,
    seed: int | None = None,
    fields: str | None = None,
    allowed: tuple[str, str] = ("exact", "exact"),
) -> int:
    """Print each mismatch, then the counts; return the exit status.

    The status stays 1 if a later line ends the check. With the seed of the inputs, the inputs of
    each line are checked as well. `fields` are the results of a line, and `allowed` the bits of NaN
    and the sign of zero that count as equal.
    """
    whole_number("errors", errors, 1, _MOST)
    _check(form, seed, count)
    stream, bits = _stream_with(name, fields), Allowed(*allowed)  # type: ignore[arg-type]  # checked there
    sent = None if seed is None else Sent(inputs_of(stream, seed))
    lines = found = other_bits = 0
    rules: set[str] = set()
    was_interrupted, ended_by = False, None
    try:
        for part in checked(stream, lambda: os.read(0, _PIECE), count, sent, bits):
            places = part.wrong[: errors - found].tolist()
            found += len(places)
            other_bits += part.other_bits
            lines += places[-1] + 1 if found == errors else part.count
            for place in places:
                print(part.describe(place), flush=True)
                rules |= part.rules(place)
            if found == errors:
                break
    except KeyboardInterrupt:
        was_interrupted = True
    except LineError as error:
        if not found:
            raise
        ended_by = error
    for line in addresses((), sorted(rules)):
        print(line)
    end = ", stopped here" if found == errors else ""
    print(f"{stream.name}: {_counts(lines, found, other_bits)}{end}", flush=True)
    if ended_by:
        print(f"mor-ref: {ended_by}", file=sys.stderr)
    if was_interrupted and not found:
        return Status.INTERRUPTED
    return comparison_status(differs=bool(found))


def _counts(lines: int, found: int, other_bits: int) -> str:
    """Return the verdict, and how many lines and entries were compared."""
    verdict = "mismatch" if found else "match" if lines else "not run"
    allowed = f", {counted(other_bits, 'entry')} with other bits allowed" if other_bits else ""
    return f"{verdict}, {counted(lines, 'line')}, {found:,} of them wrong{allowed}"


def _stream_with(name: str, fields: str | None) -> Stream:
    """Return the stream of a name, with the results that are listed."""
    stream = stream_named(name)
    return stream if fields is None else computed(with_results(stream, fields.split(",")))
