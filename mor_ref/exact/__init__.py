"""The exact model: integers and fractions, step by step as the specification has them.

This is the implementation to read when in doubt; expected values come from it. It is slow on
purpose: no NumPy, no tables, no bit tricks. A binary16, bfloat16, binary32 or binary64 number is a
Python float, which holds each of them without rounding; a tensor is a list of rows.
"""

from mor_ref.exact import encoding
from mor_ref.exact.decoding import decode
from mor_ref.exact.encoding import encode, goes_up, goes_up_at_random
from mor_ref.processor_modes import in_usual_modes

# Inside of the model, the steps that call these check the modes.
floor_log2 = in_usual_modes(encoding.floor_log2)
in_units_of = in_usual_modes(encoding.in_units_of)

__all__ = ["decode", "encode", "floor_log2", "goes_up", "goes_up_at_random", "in_units_of"]
