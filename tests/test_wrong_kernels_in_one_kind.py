"""A mistake in one kind of call alone, such as one format with one scale rule, is found there."""

import functools
import itertools
import json

import numpy as np
import pytest
from test_wrong_kernels import SUITES, WRONG, cases_of, compared

from mor_ref.operations import OPERATIONS
from mor_ref.verify.comparing.names_given import fields_of

# What kernels are compiled for, one by one.
KINDS = {
    "mx": ("format", "scale_rule"),
    "mx_block": ("format", "scale_rule"),
    "quantize": ("format", "scaling"),
    "quantize_block": ("format", "scaling"),
    "nvfp4": ("profile", "tile"),
    "nvfp4_block": ("profile",),
    "mor": ("policy", "scaling"),
    "shared": ("kind", "profile"),
    "shared_block": ("kind", "profile"),
    "levels": ("kind", "arithmetic"),
    "affine": ("profile",),
    "affine_groups": ("profile", "symmetric"),
}


@functools.cache
def asked(operation):
    """Return the cases of all suites of an operation, with their fields and questions."""
    suites = [name for name, entry in SUITES.items() if entry["operation"] == operation]
    found = []
    for suite in suites:
        fields = fields_of(SUITES[suite])
        found += [(fields, case, asked.arrays) for case, asked in cases_of(suite)]
    return sorted(found, key=lambda one: one[2]["x"].size)


def kind_of(operation, parameters):
    return {name: parameters[name] for name in KINDS[operation]}


def kinds(operation):
    """Return the kinds of calls, from the manifest: a test reads the suites only when it runs."""
    entries = [entry for entry in SUITES.values() if entry["operation"] == operation]
    cases = [parameters for entry in entries for parameters in entry["cases"].values()]
    return dict.fromkeys(json.dumps(kind_of(operation, parameters)) for parameters in cases)


def differs(*asked):
    return any(one.count or one.problem for one in compared(*asked) or ())


def found_in_other_kinds(kernels, operation, kind):
    """Return the kernels that an input shows which the suites have for other kinds only."""
    left, seen = {kernel.name: kernel for kernel in kernels}, set()
    for _, case, arrays in asked(operation):
        parameters = {**case.parameters, **kind}
        key = (arrays["x"].tobytes(), json.dumps(parameters, sort_keys=True))
        if key in seen or arrays["x"].size > 1 << 14:
            continue
        seen.add(key)
        answers = {
            name: answer
            for name, kernel in left.items()
            if (answer := kernel.run(operation, parameters, arrays))
        }
        if not answers:
            continue
        try:
            expected = OPERATIONS[operation].engine(parameters, arrays)
        except ValueError:  # a group that only GAM takes
            continue
        for name, answer in answers.items():
            shared = [field for field in answer if field in expected]
            if any(not np.array_equal(answer[field], expected[field]) for field in shared):
                del left[name]
                yield name


@pytest.mark.tier("full", one_in=6, but=['[mx-{"format": "e4m3", "scale_rule": "floor"}]'])
@pytest.mark.parametrize(
    ("operation", "kind"),
    [(operation, kind) for operation in KINDS for kind in kinds(operation)],
)
def test_the_kind_has_the_input_that_shows_it(operation, kind):
    """If an input of the suites shows a mistake in a kind of call, a case of that kind does."""
    wanted = json.loads(kind)
    left = WRONG
    for fields, case, arrays in asked(operation):
        if kind_of(operation, case.parameters) == wanted:
            left = [one for one in left if not differs(one, operation, fields, case, arrays)]
    assert [*found_in_other_kinds(left, operation, wanted)] == []


def test_all_kinds_are_there():
    for operation, names in KINDS.items():
        present = [json.loads(kind) for kind in kinds(operation)]
        values = [dict.fromkeys(json.dumps(kind[name]) for kind in present) for name in names]
        if operation != "nvfp4":  # a profile has tiles of its own
            assert len(present) == len([*itertools.product(*values)])
