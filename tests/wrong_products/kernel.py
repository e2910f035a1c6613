"""Wrong kernels of products of matrices: changed steps of the exact model, or changed arrays."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from mor_ref import formats
from mor_ref.definitions.dot import DOT_PROFILES, DotProfile
from mor_ref.definitions.matmul import RECORD_KINDS, RecordKind
from mor_ref.exact.step import replaced
from mor_ref.operations import OPERATIONS
from mor_ref.operations.random_products import CHOICES

F32, BF16 = formats["f32"], formats["bf16"]
ONE = 0x3F800000
NEW = (".elements", ".pieces", ".chunks", ".scales")
MATMUL = OPERATIONS["matmul"]


@dataclass(frozen=True)
class Kind:
    """All cases of a profile and a kind of records."""

    profile: DotProfile
    record: RecordKind
    cases: tuple

    @property
    def name(self):
        """The names of both."""
        return f"{self.profile.name}.{self.record.name}"

    @property
    def is_exact(self):
        """Whether all products are one sum."""
        return self.profile.family == "exact"

    @property
    def in_pieces(self):
        """Whether scaled pieces are added up."""
        return not self.is_exact and not self.profile.needs_scales

    def formats_of(self, side):
        """Return the formats of blocks of an operand, in any case."""
        choices = {int(n) for case in self.cases for n in np.unique(case.arrays[f"choice_{side}"])}
        return {CHOICES[n] for n in choices}

    @property
    def takes(self):
        """The formats of blocks that are multiplied as they are."""
        known = set(self.profile.formats or CHOICES)
        return known & self.formats_of("a") & self.formats_of("b")

    @property
    def has_factors(self):
        """Whether factors are multiplied with sums."""
        return self.in_pieces and bool(self.takes - {"bf16"})

    @property
    def upcasts(self):
        """Whether some blocks are upcast."""
        return self.in_pieces and not (self.formats_of("a") <= set(self.profile.formats))

    @property
    def adds_bf16(self):
        """Whether sums of bfloat16 are added."""
        return self.in_pieces and "bf16" in self.formats_of("a")

    @property
    def widest(self):
        """The profile of blocks in bfloat16."""
        return DOT_PROFILES[self.profile.wide] if self.adds_bf16 or self.upcasts else None


def always(_):
    return True


def same(x, *_):
    return x


@dataclass(frozen=True)
class Wrong:
    """A wrong kernel: the kinds that it is for, and its changes."""

    name: str
    applies: Callable = always
    steps: tuple = ()
    arrays: Callable = same
    result: Callable = same
    patches: tuple = ()

    def run(self, case):
        """Return its entries."""
        with ExitStack() as stack:
            stack.enter_context(replaced(self.steps))
            for patch in self.patches:
                stack.enter_context(patch())
            given = {name: array.copy() for name, array in case.arrays.items()}
            return self.result(MATMUL.exact(case.parameters, self.arrays(given))["result"])

    def shows(self, kind):
        """Return whether a case of a kind has other entries."""
        order = sorted(kind.cases, key=lambda case: not case.name.endswith(NEW))
        return any((self.run(case) != case.arrays["result"]).any() for case in order)


KERNELS = []


def wrong(name, applies, *steps, **options):
    """List a wrong kernel."""
    KERNELS.append(Wrong(name, applies, steps, **options))


def has_scales(kind):
    return not (kind.in_pieces and not kind.has_factors)


def divides(kind):
    return has_scales(kind) and kind.record.divides


def has_overall(kind):
    return has_scales(kind) and kind.record.has_overall


def by_nvfp4(kind):
    return kind.profile.needs_scales and kind.record.has_overall


def has_chunks(kind):
    return kind.profile.needs_scales or (kind.in_pieces and kind.record.divides)


def kinds_of(cases):
    """Return the cases of each profile and kind of records."""
    found = {}
    for case in cases:
        key = case.parameters["dot_profile"], case.parameters["record"]
        found.setdefault(key, []).append(case)
    return {
        ".".join(key): Kind(DOT_PROFILES[key[0]], RECORD_KINDS[key[1]], tuple(cases))
        for key, cases in found.items()
    }
