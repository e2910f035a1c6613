"""Errors of PTX: a text that cannot be run, and a kernel that does something undefined."""

from mor_ref.cuda.unavailable import CudaError


class PtxError(CudaError):
    """A text that is not PTX, or PTX that cannot be run here."""


class LaunchError(CudaError):
    """A launch with wrong arguments, or a kernel that did what PTX does not define."""


def refusal(line: int, text: str, why: str) -> PtxError:
    """Return the refusal of a line."""
    return PtxError(f"line {line}: {' '.join(text.split())}: {why}")
