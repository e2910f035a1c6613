"""All suites: single steps, single blocks, tensors and large tensors, each by chapter."""

from typing import TYPE_CHECKING

from mor_ref.schemes import collected_later

if TYPE_CHECKING:
    from mor_ref.golden.suites.catalogue import SUITES

__all__ = ["SUITES"]

__getattr__ = collected_later(__name__, "SUITES")
