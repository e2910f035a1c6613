"""The formulas of the chapter on integers with scales and zero points."""

from mor_docs.checked.check import Check, Entry, Names
from mor_docs.evaluation import rounded_to_binary32
from mor_ref.schemes.affine.definition import AFFINE_PROFILES


def _of_integer(entry: Entry) -> Names:
    names = ("x", "scale", "zero_point", "code")
    return {"RN": rounded_to_binary32, **{name: entry[name] for name in names}}


def _of_profile(entry: Entry) -> Names:
    profile = AFFINE_PROFILES[entry.parameters["profile"]]
    return {
        "bnb_int8_row": profile.inverse_factor != 1,
        "the profile multiplies": profile.application == "multiply" and not profile.adds_first,
        "it fuses": profile.application == "fuse",
        "it then adds": profile.adds_first,
        "it divides": profile.application == "divide",
        "scale is amax": profile.stores_amax,
    }


# AFF-007 multiplies by 127 in the others, after its formula.
_WITHOUT_A_FACTOR = tuple(row.name for row in AFFINE_PROFILES.values() if row.factor == 1)
CHECKS = (
    Check(
        "AFF-007",
        "affine_steps",
        {"xs": "xs"},
        _of_integer,
        _of_profile,
        cases={"profile": _WITHOUT_A_FACTOR},
    ),
    Check("AFF-009", "affine_steps", {"y": "y"}, _of_integer, _of_profile),
)
