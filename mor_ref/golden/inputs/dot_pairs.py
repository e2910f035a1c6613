"""Pairs of operand formats of dot products: some for each profile, and others."""

from mor_ref.definitions.dot import DotProfile

Pair = tuple[str, str]
OF_ANY = (("e4m3", "e4m3"), ("e5m2", "e2m1"), ("bf16", "bf16"), ("f16", "e3m2"), ("f32", "f32"))
_OF_FP8 = (("e4m3", "e4m3"), ("e5m2", "e4m3"))
_OF_F8F6F4 = (*_OF_FP8, ("e2m3", "e3m2"), ("e2m1", "e2m1"))
_OF_FNUZ = (("e4m3fnuz", "e4m3fnuz"), ("e5m2fnuz", "e5m2fnuz"))
_OTHERS: dict[tuple[Pair, ...], tuple[Pair, ...]] = {
    OF_ANY: (("e2m3", "e5m2"), ("e3m2", "e2m3"), ("e2m1", "f16")),
    _OF_FP8: (("e4m3", "e5m2"),),
    _OF_F8F6F4: (("e4m3", "e5m2"), ("e3m2", "e2m3")),
    _OF_FNUZ: (("e4m3fnuz", "e5m2fnuz"), ("e5m2fnuz", "e4m3fnuz")),
}


def pairs_of(profile: DotProfile) -> tuple[Pair, ...]:
    """Return pairs of formats that a profile admits."""
    if not profile.formats:
        return OF_ANY
    if len(profile.formats) == 1:
        return ((profile.formats[0], profile.formats[0]),)
    if profile.formats[0] in _OF_FNUZ[0]:
        return _OF_FNUZ
    return _OF_F8F6F4 if "e2m1" in profile.formats else _OF_FP8


def other_pairs(profile: DotProfile) -> tuple[Pair, ...]:
    """Return more pairs than `pairs_of`, so that each operand has every format."""
    return _OTHERS.get(pairs_of(profile), ())
