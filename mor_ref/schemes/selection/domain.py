"""The suites of selections, and the domains of the core that they join."""

JOINS = {"IN_ROWS": ("selections",)}
