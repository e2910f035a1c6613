"""The model of golden vectors: suites, cases, fields and views."""
