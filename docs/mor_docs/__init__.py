"""What the site is made with: the trace of rules, and tables and pictures made at build time."""
