"""Verifying somebody's implementation on golden vectors, or on tensors of one's own.

The package can be called: `mor_ref.verify(candidate, inputs=..., recipe=...)`.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from mor_ref.verify.asserting.assert_bit_exact import assert_bit_exact

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from mor_ref.recipes import OwnRecipe, Table, TensorRecipe
    from mor_ref.verify.comparing.allowed import Nans, Zeros
    from mor_ref.verify.comparing.domain import Domain
    from mor_ref.verify.own_tensors import Function
    from mor_ref.verify.reporting.report import Report

__all__ = ["assert_bit_exact"]


class _Callable(ModuleType):
    """A module that can be called: the function `verify` has the name of the package."""

    def __call__(
        self,
        candidate: "str | Function",
        *,
        inputs: "str | Path | Sequence[str | Path] | Mapping[str, Any]",
        recipe: "str | Table | TensorRecipe | OwnRecipe",
        nan: "Nans" = "exact",
        zero_sign: "Zeros" = "exact",
        domain: "Domain" = "all",
        timeout: float = 60.0,
    ) -> "Report":
        """Return the report on a candidate for tensors of one's own.

        `candidate` is a name as for `mor-ref verify`, or a function of (operation, parameters,
        inputs) that returns a dict of fields. `inputs` are arrays by name, or the paths of files.
        `recipe` is a text such as "mxfp8:rceil" or "nvfp4:amax=3.5", or a table. `nan`, `zero_sign`
        and `domain` mean the same as for the command. Print the report for the text of the command.

        >>> import mor_ref, numpy as np
        >>> report = mor_ref.verify("numba", inputs={"a": np.ones((2, 64))}, recipe="mxfp8:rceil")
        Traceback (most recent call last):
        ValueError: tensor 'a' has dtype float64; give float32, float16 or bfloat16
        >>> mine = {"a": np.ones((2, 64), np.float32)}
        >>> report = mor_ref.verify("numba", inputs=mine, recipe="mxfp8:rceil")
        >>> report.verdict, report.results[0].title
        ('match', 'Own tensors with mxfp8_e4m3:rceil:32')
        >>> print(report.headline)
        numba: match (1 match, 0 mismatch, 0 not run)
        """
        from mor_ref.verify.comparing.allowed import Allowed
        from mor_ref.verify.comparing.domain import as_domain
        from mor_ref.verify.own_tensors import verify_on

        allowed = Allowed(nan, zero_sign)
        return verify_on(candidate, inputs, recipe, timeout, allowed, as_domain(domain))


sys.modules[__name__].__class__ = _Callable
