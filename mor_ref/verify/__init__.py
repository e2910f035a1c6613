"""Verifying somebody's implementation on golden vectors, or on tensors of one's own.

The package can be called: `mor_ref.verify(candidate, inputs=..., recipe=...)`.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from mor_ref.api.border import called_as
from mor_ref.verify.asserting.assert_bit_exact import assert_bit_exact

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from mor_ref.metrics.thresholds import Threshold
    from mor_ref.recipes import OwnRecipe, RecipeLike
    from mor_ref.verify.comparing.allowed import Nans, Zeros
    from mor_ref.verify.comparing.domain import Domain
    from mor_ref.verify.own_tensors import Function
    from mor_ref.verify.reporting.report import Report

__all__ = ["assert_bit_exact"]


class Verify(ModuleType):
    """A module that can be called: the function `verify` has the name of the package.

    Type checkers take `mor_ref.verify` for an object of this class.
    """

    assert_bit_exact = staticmethod(assert_bit_exact)

    @called_as("verify")
    def __call__(
        self,
        candidate: "str | Function",
        *,
        inputs: "str | Path | Sequence[str | Path] | Mapping[str, Any]",
        recipe: "RecipeLike | OwnRecipe",
        nan: "Nans" = "exact",
        zero_sign: "Zeros" = "exact",
        ties: "Threshold" = 0,
        domain: "Domain" = "all",
        timeout: float = 60.0,
    ) -> "Report":
        """Return the report on a candidate for tensors of one's own.

        `candidate` is a name as for `mor-ref verify`, or a function of (operation, parameters,
        inputs) that returns a dict of fields. `inputs` are arrays by name, or the paths of files.
        `recipe` is a text such as "mxfp8:rceil" or "nvfp4:amax=3.5", or a table. `nan`,
        `zero_sign`, `ties` and `domain` mean the same as for the command. Print the report for the
        text of the command.

        Tensors of float64 are rounded to float32 first (QNT-004), and the report says so.

        >>> import mor_ref, numpy as np
        >>> mine = {"a": np.ones((2, 64), np.float32)}
        >>> report = mor_ref.verify("numba", inputs=mine, recipe="mxfp8:rceil")
        >>> report.verdict, report.results[0].title
        ('match', 'Own tensors with mxfp8_e4m3:rceil:32')
        >>> print(report.headline)
        numba: match (1 match, 0 mismatch, 0 not run)
        """
        from mor_ref.verify.comparing.allowed import Allowed
        from mor_ref.verify.comparing.domain import as_domain
        from mor_ref.verify.comparing.near_ties import as_ties
        from mor_ref.verify.own_tensors import verify_on

        allowed = Allowed(nan, zero_sign, as_ties(ties))
        return verify_on(candidate, inputs, recipe, timeout, allowed, as_domain(domain))


sys.modules[__name__].__class__ = Verify
