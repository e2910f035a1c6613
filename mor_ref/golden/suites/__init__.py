"""All suites, in the order of the specification."""

from mor_ref.golden.suite import Suite
from mor_ref.golden.suites import (
    blocks,
    conversions,
    large,
    policies,
    scaling,
    single_blocks,
    tensors,
)

SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        *conversions.SUITES,
        *scaling.SUITES,
        *single_blocks.SUITES,
        *tensors.SUITES,
        *policies.SUITES,
        *blocks.SUITES,
        *large.SUITES,
    )
}
