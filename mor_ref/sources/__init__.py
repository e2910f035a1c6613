"""Sources for other languages: the C99 library, its import into SystemVerilog, and constants."""

from mor_ref.sources.files import write_sources

__all__ = ["write_sources"]
