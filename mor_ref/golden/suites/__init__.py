"""All suites, in the order of the specification."""

from mor_ref.golden.suite import Suite
from mor_ref.golden.suites import (
    blocks,
    conversions,
    decisions,
    large,
    policies,
    quantization,
    scaling,
    single_blocks,
)

SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        *conversions.SUITES,
        *scaling.SUITES,
        *decisions.SUITES,
        *single_blocks.SUITES,
        *quantization.SUITES,
        *policies.SUITES,
        *blocks.SUITES,
        *large.SUITES,
    )
}
