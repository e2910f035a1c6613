"""A wrong implementation that takes one source alone is found, or it is said why it is not."""

import itertools
from fnmatch import fnmatch

import numpy as np
import pytest
from test_wrong_kernels import SUITES, WRONG, first_difference
from wrong import REGISTERED
from wrong.alone import NO_AMAX, REASONS

SOURCES = ("bf16", "f16", "f32")
LARGE = [suite for suite in SUITES if suite.endswith("_large")]
SMALL = [suite for suite in SUITES if suite not in LARGE]
SHARES = {f"{i}/20": WRONG[i::20] for i in range(20)}
BY_NAME = {kernel.name: kernel for kernel in WRONG}
INFINITY = {"bf16": 0x7F80, "f16": 0x7C00}


def is_found(kernel, source, suites):
    """Return whether a suite shows the mistake; None if no suite is answered."""
    found = None
    for suite in suites:
        text = first_difference(kernel, suite, source)
        if text:
            return True
        found = False if text is None else found
    return found


def reason_of(name, source):
    """Return the reason why an implementation is not found."""
    reasons = (r for r, names in REASONS[source].items() if any(fnmatch(name, n) for n in names))
    return next(reasons, None)


@pytest.mark.tier("full", one_in=4)
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("source", SOURCES)
def test_each_is_found_alone(source, share):
    """Those with a reason are not found by any suite but the large ones, which take long."""
    wrong, stale = [], []
    for kernel in SHARES[share]:
        found = is_found(kernel, source, SMALL)
        reason = reason_of(kernel.name, source)
        if reason and found:
            stale.append(kernel.name)
        if found is False and not reason and not is_found(kernel, source, LARGE):
            wrong.append(kernel.name)
    assert (wrong, stale) == ([], [])


def test_each_pattern_is_of_one():
    patterns = itertools.chain(*(names for of in REASONS.values() for names in of.values()))
    assert [n for n in patterns if not any(fnmatch(name, n) for name in BY_NAME)] == []


@pytest.mark.tier("full")
@pytest.mark.parametrize("source", INFINITY)
def test_no_amax_shows_them(source):
    """Every number of the source is the amax of a block, and the pairs of significands."""
    step = {"bf16": 1, "f16": 64}[source]
    right = next(kernel for kernel in REGISTERED if kernel.name == "amax_of_integers")
    names = [name for name in BY_NAME if reason_of(name, source) == NO_AMAX]
    assert names
    every = np.arange(INFINITY[source], dtype=np.uint16)[:, None]
    exponent = INFINITY[source] // 2
    digits = {"bf16": 7, "f16": 10}[source]
    low = exponent >> digits << digits
    pairs = np.arange(0, 1 << 2 * digits, step)
    first, second = low + (pairs >> digits), low + (pairs & (1 << digits) - 1)
    grouped = np.stack([first, second], axis=1).astype(np.uint16).reshape(-1, 1)
    for fmt, (scaling, x, group) in itertools.product(
        ("e4m3", "e5m2", "e2m1", "e2m3", "e3m2"),
        (("fp32", every, "tensor"), ("e8m0", every, "tensor"), ("gam", grouped, [2, 1])),
    ):
        parameters = {
            "format": fmt, "scaling": scaling, "block": "row", "group": group, "source": source,
        }  # fmt: skip
        expected = right.run("quantize", parameters, {"x": x})
        for name in names:
            answer = BY_NAME[name].run("quantize", parameters, {"x": x})
            for field in ("exponent", "scale", "code") if answer else ():
                if field in answer:
                    np.testing.assert_array_equal(answer[field], expected[field], err_msg=name)
