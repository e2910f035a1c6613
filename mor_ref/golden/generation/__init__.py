"""Making suites: expected values, witnesses of deviations, and files that are wrong on purpose."""
