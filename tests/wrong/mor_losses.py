"""MoR that judges one rung by the losses of another, or does not count all losses."""

import numpy as np

from wrong.microscaling import Register
from wrong.mor_counts import counted, ranged
from wrong.mor_right import INFINITE, acceptance, errors, fields, read, tiled, written

KERNELS = Register()
mor = KERNELS.mor
PAIRS = ("two_way", "three_way")
_LOST = "e4m3.nonfinite"


def _judged(change):
    """Return all fields, with choices that follow from other counts of losses in e4m3."""

    def mixed(bits_in, parameters):
        x, unit, ys = read(bits_in, parameters)
        found = fields(x, unit, ys)
        return found | written(
            bits_in, parameters, acceptance(parameters, found | change(found)), ys
        )

    return mixed


mor(
    "lost_in_the_yardstick",
    "e4m3 is refused where e5m2, its yardstick, loses a number.",
    PAIRS,
)(_judged(lambda found: {_LOST: found[_LOST] | found["e5m2.nonfinite"]}))
mor(
    "lost_by_the_yardstick_alone",
    "e4m3 is judged by the losses of e5m2.",
    PAIRS,
)(_judged(lambda found: {_LOST: found["e5m2.nonfinite"]}))
mor(
    "lost_by_e4m3_alone",
    "e5m2 is judged by the losses of e4m3.",
    ("three_way",),
)(_judged(lambda found: {"e5m2.nonfinite": found[_LOST]}))
mor(
    "lost_in_nvfp4",
    "e4m3 is refused where NVFP4 loses a number.",
    ("nvfp4",),
)(_judged(lambda found: {_LOST: found[_LOST] | found["nvfp4.nonfinite"]}))
mor(
    "lost_by_e4m3_for_nvfp4",
    "NVFP4 is judged by the losses of e4m3.",
    ("nvfp4",),
)(_judged(lambda found: {"nvfp4.nonfinite": found[_LOST]}))


def _lost_but(left_out):
    """Return a function that marks lost numbers, except for some numbers of x."""

    def change(name, x, y, unit):
        _, _, gone = errors(x, y)
        return {f"{name}.nonfinite": tiled(gone & ~left_out(x), unit, dtype=np.uint64)}

    return counted(change)


for _name, _mistake, _left_out in (
    ("negative_infinity_not_lost", "-infinity is not counted as lost.", lambda x: x == -np.inf),
    ("infinity_not_lost", "An infinity is not counted as lost.", np.isinf),
    ("nan_not_lost", "A NaN is not counted as lost.", np.isnan),
    (
        "negative_nan_not_lost",
        "A NaN with the sign bit is not counted as lost.",
        lambda x: np.isnan(x) & np.signbit(x),
    ),
):
    mor(_name, _mistake)(_lost_but(_left_out))


mor("amin_of_nothing", "amin of a unit of zeros is infinite.")(
    ranged(lambda _x, _u, _amax, amin: {"amin": np.where(amin == 0, np.uint32(INFINITE), amin)})
)
