"""The statistics of the experiment, against printed tables and scipy."""

import math

import pytest
from extras import imported

from experiments.statistics import (
    Differences,
    differences,
    holm,
    is_real,
    last_tenth,
    verdict,
)

# Student's data on sleep (Biometrika 6, 1908): the differences of ten patients. R prints these
# for t.test(extra ~ group, data = sleep, paired = TRUE), with the other sign.
SLEEP = Differences((1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4))


def test_means_and_intervals_are_those_of_students_example():
    assert SLEEP.mean == pytest.approx(1.58)
    assert SLEEP.deviation == pytest.approx(1.229995, abs=1e-6)
    assert SLEEP.interval == pytest.approx((0.7001142, 2.4598858), abs=1e-7)
    assert SLEEP.smallest_seen == pytest.approx(2.4598858 - 1.58, abs=1e-7)


@pytest.mark.parametrize(
    ("count", "one_sided", "two_sided"), [(3, 2.920, 4.303), (4, 2.353, 3.182), (8, 1.895, 2.365)]
)
def test_bounds_have_the_quantiles_of_printed_tables(count, one_sided, two_sided):
    pairs = Differences((1.0, *([0.0] * (count - 1))))
    assert (pairs.upper_bound - pairs.mean) / pairs.error == pytest.approx(one_sided, abs=5e-4)
    assert pairs.smallest_seen / pairs.error == pytest.approx(two_sided, abs=5e-4)


@pytest.mark.parametrize("pairs", [(0.1, 0.3, -0.2, 0.4), (0.9, 0.6, 1.1), SLEEP.values])
def test_the_p_value_is_that_of_scipys_test(pairs):
    stats = imported("scipy.stats")
    expected = stats.ttest_1samp(pairs, 0.5, alternative="less").pvalue
    assert Differences(pairs).p_value == pytest.approx(expected, rel=1e-12)


def test_the_p_value_and_the_bound_answer_alike_at_one_recipe():
    for shift in (-0.5, 0.0, 0.2, 0.3, 0.4, 0.6):
        pairs = Differences(tuple(shift + x for x in (-0.2, 0.1, 0.3, -0.1)))
        assert (pairs.p_value < 0.05) == (pairs.upper_bound < 0.5)


def test_holms_method_on_a_worked_example():
    """Return the adjusted values that R prints for p.adjust(c(.01, .04, .03, .005), "holm")."""
    adjusted = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005})
    assert adjusted == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06, "d": 0.02})
    assert holm({"a": 0.7, "b": 0.8}) == {"a": 1.0, "b": 1.0}


def test_differences_are_of_the_seeds_that_both_have_in_percent():
    found = differences({0: 1.01, 2: 2.0, 5: 9.0}, {2: 2.0, 0: 1.0, 3: 1.0})
    assert found.values == pytest.approx((1.0, 0.0))
    with pytest.raises(ValueError, match="share 1 seeds; run two or more"):
        differences({0: 1.0}, {0: 1.0, 1: 1.0})


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ((0.0, 0.1, -0.1), "within 0.5 %"),
        ((1.0, 1.1, 0.9), "above 0.5 %"),
        ((1.0, -1.0, 2.0), "too few pairs to say"),
        ((0.1, math.inf, 0.2), "diverged"),
        ((0.1, math.nan, 0.2), "diverged"),
        ((0.5, 0.5), "too few pairs to say"),
        ((0.1, 0.1), "within 0.5 %"),
    ],
)
def test_verdicts(pairs, expected):
    found = Differences(pairs)
    assert verdict(found, found.p_value) == expected


@pytest.mark.parametrize("lost", [math.inf, math.nan])
def test_a_run_that_diverged_does_not_disturb_its_family(lost):
    found = Differences((0.1, lost, 0.2)).p_value
    assert holm({"a": found, "b": 0.01}) == {"a": 1.0, "b": 0.02}


def test_an_adjusted_p_value_decides():
    found = Differences((0.1, 0.2, 0.3))
    assert found.p_value < 0.05
    assert verdict(found, 0.06) == "too few pairs to say"


def test_a_difference_is_real_outside_of_noise_only():
    noise, sharp = Differences((-0.3, 0.3, 0.1)), Differences((0.1, 0.11, 0.12))
    assert not is_real(sharp, noise)
    assert is_real(sharp, Differences((0.0, 0.01, -0.01)))
    assert not is_real(Differences((-5.0, 5.0, 1.0)), Differences((0.0, 0.01, -0.01)))


def test_a_difference_is_real_only_if_its_whole_interval_is_outside():
    """Not if its mean alone is."""
    noise = Differences((0.05, 0.43, 0.24))
    low, high = noise.interval
    above = Differences((high + 0.1, high + 0.2, high + 0.3))
    assert above.mean > high > above.interval[0] > 0
    assert not is_real(above, noise)
    below = Differences((low - 0.1, low - 0.2, low - 0.3))
    assert below.mean < low < below.interval[1] < 0
    assert not is_real(below, noise)
    assert is_real(Differences((high + 1, high + 1.1, high + 1.2)), noise)


def test_the_primary_figure_is_the_mean_of_the_last_tenth():
    assert last_tenth([9.0] * 18 + [1.0, 2.0]) == 1.5
    assert last_tenth([9.0] * 18 + [4.0]) == 4.0  # 1.9 steps: the last one
    assert last_tenth([3.0, 4.0]) == 4.0
