"""Golden suites through the kernels."""

from dataclasses import dataclass, field
from functools import cache

import numpy as np

from mor_ref.cuda.host import Host
from mor_ref.golden import bundled_files
from mor_ref.golden.model.suite import question
from mor_ref.golden.store.manifest import read_manifest
from mor_ref.golden.store.suite_files import read_suite
from mor_ref.operations import OPERATIONS
from mor_ref.verify.comparing.compare import comparisons
from mor_ref.verify.comparing.names_given import fields_of, given_as


@dataclass(frozen=True)
class Schedule(Host):
    """A CPU that runs kernels on another number of blocks than they are asked for with."""

    blocks: int = 0  # 0 leaves it

    def launch(self, program, kernel, blocks, threads, arguments):
        super().launch(program, kernel, self.blocks or blocks, threads, arguments)


@dataclass(frozen=True)
class Names(Host):
    """A device that runs nothing, and notes the kernels that it is asked for."""

    seen: set = field(default_factory=set)

    def launch(self, program, kernel, *_):
        self.seen.add((program, kernel))


@cache
def manifest():
    """Return the suites whose operation has kernels."""
    suites = read_manifest(bundled_files())["suites"]
    return {name: of for name, of in suites.items() if OPERATIONS[of["operation"]].kernels}


@cache
def cases(suite):
    return read_suite(bundled_files(), suite, manifest()[suite])


def copied(array):
    """Copy an array, so that its end is the end of its memory."""
    return np.array(array)


def unaligned(array):
    """Return a copy that no load of 16 bytes may be used for."""
    copy = np.empty(array.size + 1, array.dtype)[1:].reshape(array.shape)
    copy[...] = array
    return copy


def sample(suite, every):
    """Return one case of `every`, and all that the manifest names for a deviation."""
    exposing = {entry["case"] for entry in manifest()[suite]["kills"].values()}
    return [case for k, case in enumerate(cases(suite)) if not k % every or case.name in exposing]


def answers(device, suite, place=copied, every=1, only=None):
    """Yield cases of a suite, and the kernels' results for them."""
    entry = manifest()[suite]
    fields = fields_of(entry)
    for case in cases(suite)[::every] if only is None else only:
        given = question(fields, case).arrays
        arrays = {name: place(device.upload(array)) for name, array in given.items()}
        found = OPERATIONS[entry["operation"]].cuda(device, case.parameters, arrays)
        yield case, {name: device.download(array) for name, array in found.items()}


def wrong(device, suite, place=copied, every=1, only=None):
    """Return the differences from the expected fields of a suite, and how many were compared."""
    entry, found, compared = manifest()[suite], [], 0
    fields, operation = fields_of(entry), entry["operation"]
    for case, answer in answers(device, suite, place, every, only):
        chosen = given_as(fields, answer)
        asked, given = question(fields, case), [f for f in fields if f.name in chosen]
        found += (
            str(compared_field.difference(operation, asked))
            for compared_field in comparisons(operation, case, given, answer, chosen)
            if compared_field.count or compared_field.problem
        )
        compared += len(chosen)
    return found, compared
