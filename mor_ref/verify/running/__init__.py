"""Running a candidate on suites, or on a stream of cases."""
