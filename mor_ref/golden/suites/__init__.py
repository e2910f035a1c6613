"""All suites, in the order of the specification."""

from mor_ref.golden.model.suite import Suite
from mor_ref.golden.suites import decisions, large, policies, quantization, single_blocks
from mor_ref.golden.suites import encoding as conversions
from mor_ref.golden.suites import nvfp4 as blocks
from mor_ref.golden.suites import scales as scaling

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
