"""The programs that make the site: the trace of rules, and its tables and pictures."""
