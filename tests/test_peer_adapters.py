"""Adapters of other people's libraries: refused with a sentence, or run, each where it installs."""

import ast
import logging
import platform
import warnings
from pathlib import Path

import numpy as np
import pytest
from extras import imported, needs

import mor_ref
from mor_ref import golden
from mor_ref.definitions.dot import DOT_PROFILES
from mor_ref.golden import bundled_files
from mor_ref.operations import OPERATIONS
from mor_ref.recipes import own_recipe
from mor_ref.verify.candidates.by_name import candidate_named
from mor_ref.verify.candidates.candidate import CandidateError
from mor_ref.verify.candidates.peers import PEERS, candidate_of, peer_named
from mor_ref.verify.candidates.peers.mmasim_dots import fused
from mor_ref.verify.candidates.peers.peer import Peer
from mor_ref.verify.running.ask import ask_here
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in

MODULES = Path(mor_ref.__file__).parent / "verify" / "candidates" / "peers"
LIBRARIES = {
    "torchao": ("torch", "torchao"),
    "modelopt": ("torch", "modelopt"),
    "compressed-tensors": ("torch", "compressed_tensors"),
    "gguf": ("gguf",),
    "microxcaling": ("torch", "mx"),
    "quark": ("torch", "quark"),
    "mmasim": ("torch", "mmasim"),
}
# Rows of 50 numbers, so that the last block is not whole, all of them ordinary and positive.
X = np.abs(np.random.default_rng(0).standard_normal((3, 50), dtype=np.float32))


def of(peer, *others):
    return pytest.param(peer, *others, marks=needs(*LIBRARIES[peer]))


@pytest.mark.parametrize("name", PEERS)
def test_an_adapter_is_a_row_of_a_table_and_a_short_function(name):
    peer = peer_named(name)
    assert peer.name == name
    assert {*peer.functions} <= {*OPERATIONS}
    assert "pip install" in peer.install
    tree = ast.parse((MODULES / f"{PEERS[name]}.py").read_text())
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert all(node.end_lineno - node.lineno <= 30 for node in functions)


@pytest.mark.parametrize("name", PEERS)
def test_a_library_that_is_not_installed_is_refused(monkeypatch, name):
    monkeypatch.setattr("mor_ref.verify.candidates.peers.peer.find_spec", lambda _: None)
    with pytest.raises(CandidateError) as refused:
        candidate_of(name)
    said = str(refused.value)
    assert said.startswith(f"peer:{name} needs ")
    assert f"not installed here; {peer_named(name).install}" in said
    assert ("GPU" in said) == (name == "transformer-engine")


@needs("torch")
def test_a_library_of_a_gpu_is_refused_without_one(monkeypatch):
    monkeypatch.setattr(imported("torch").cuda, "is_available", lambda: False)
    monkeypatch.setattr("mor_ref.verify.candidates.peers.peer.find_spec", lambda _: True)
    with pytest.raises(CandidateError, match="needs a GPU, and torch finds none; run it on a"):
        candidate_of("transformer-engine")


def test_a_library_without_an_adapter_is_refused():
    with pytest.raises(ValueError, match="peer is 'torch_ao', which is not known; did you mean"):
        candidate_named("peer:torch_ao")


def test_warnings_of_a_library_are_left_out_and_its_errors_are_not(recwarn, monkeypatch):
    """Reports begin with their own lines."""
    log, handler, messages = logging.getLogger("somebody"), logging.Handler(), []
    handler.emit = lambda record: messages.append(record.getMessage())
    monkeypatch.setattr(log, "handlers", [handler])

    def warning(_, inputs):
        warnings.warn("deprecated", FutureWarning, stacklevel=1)
        log.warning("no file for this GPU")
        log.error("wrong bits ahead")
        return {"value": inputs["code"]}

    peer = Peer("somebody", (), "pip install somebody", "all", {"decode": warning})
    assert peer.answer("decode", {"format": "e4m3"}, {"code": np.uint8([1])})
    log.warning("afterwards")
    assert messages == ["wrong bits ahead", "afterwards"]
    assert not recwarn.list


RECIPES = [
    ("torchao", "mxfp8:rceil", {"scale", "code", "y"}),
    ("torchao", "mxfp4:floor", {"scale", "code", "y"}),
    ("torchao", "mxfp6_e2m3:even", {"scale", "code", "y"}),
    ("torchao", "nvfp4:torchao", {"global_decode_scale", "block_scale", "code", "y"}),
    (
        "torchao",
        "nvfp4:torchao:global_scale=0.0017",
        {"global_decode_scale", "block_scale", "code", "y"},
    ),
    (
        "modelopt",
        "nvfp4:modelopt:global_scale=0.0013",
        {"global_decode_scale", "block_scale", "code", "y"},
    ),
    (
        "compressed-tensors",
        "nvfp4:compressed_tensors:global_scale=901.5",
        {"global_encode_scale", "block_scale", "code", "y"},
    ),
    ("modelopt", "mxfp8:rceil", {"scale", "code", "y"}),
    ("modelopt", "nvfp4:modelopt", {"global_decode_scale", "block_scale", "code", "y"}),
    ("compressed-tensors", "mxfp4:even", {"scale", "y"}),
    (
        "compressed-tensors",
        "nvfp4:compressed_tensors",
        {"global_encode_scale", "block_scale", "code", "y"},
    ),
    ("gguf", "mxfp4:floor", {"scale", "code", "y"}),
    ("microxcaling", "mxfp8:floor", {"y"}),
    ("microxcaling", "mxfp4:floor", {"y"}),
    ("quark", "mxfp4:even", {"scale"}),
]


@pytest.mark.tier("full", but_one_in=6)
@pytest.mark.parametrize(("peer", "recipe", "fields"), [of(*row) for row in RECIPES])
def test_ordinary_numbers_match(peer, recipe, fields):
    """In every field of the library, with a block that is not whole."""
    found = mor_ref.verify(f"peer:{peer}", inputs={"x": X}, recipe=recipe)
    assert found.verdict == "match"
    (result,) = found.results
    assert {field.name for field in result.fields} == fields


SIGNED = [
    ("torchao", "nvfp4:torchao", 0),
    ("modelopt", "nvfp4:modelopt", 1),
    ("modelopt", "nvfp4:modelopt:global_scale=0.0013", 1),
    ("compressed-tensors", "nvfp4:compressed_tensors", 0),
    ("gguf", "mxfp4:floor", 2),
]


@pytest.mark.tier("full", but=["[compressed-tensors-nvfp4:compressed_tensors-0]"])
@pytest.mark.parametrize(("peer", "recipe", "fields"), [of(*row) for row in SIGNED])
def test_signed_numbers_match_but_for_the_sign_of_zero(peer, recipe, fields):
    """`fields` differ in that sign; the page on libraries names those that have any."""
    x = np.random.default_rng(0).standard_normal((3, 50), dtype=np.float32)
    asked = {"candidate": f"peer:{peer}", "inputs": {"x": x}, "recipe": recipe}
    (exact,) = mor_ref.verify(**asked).results
    assert sum(field.differing > 0 for field in exact.fields) == fields
    assert mor_ref.verify(**asked, zero_sign="any").verdict == "match"
    page = (Path(__file__).parents[1] / "docs" / "guide" / "libraries.md").read_text()
    assert fields == 0 or "negative numbers that round to zero differ in the sign" in page


@pytest.mark.tier("full")
@needs("torch", "modelopt")
def test_a_sign_that_the_way_back_loses_is_not_one_of_codes():
    """All codes match: ENC-011/negative-zero-lost, which explains y alone, would change them."""
    x = np.random.default_rng(0).standard_normal((3, 50), dtype=np.float32)
    found = mor_ref.verify("peer:modelopt", inputs={"x": x}, recipe="nvfp4:modelopt")
    (diagnosis,) = found.diagnosis.suites
    (best,) = diagnosis.explanations
    assert (best.deviations, best.is_whole) == (
        ("DEC-001+QNT-002+NVF-010+MXS-008/negative-zero-lost",),
        True,
    )


OTHERS = [
    ("torchao", "mxfp8:rceil:16", "answers MX under all scale rules in blocks of 32"),
    ("modelopt", "mxfp8:floor", "answers mxfp8:rceil:32 and nvfp4:modelopt:1x16"),
    ("compressed-tensors", "mxfp8:rceil", "answers mxfp4:even:32"),
    ("gguf", "mxfp8:floor", "answers mxfp4:floor:32"),
    ("microxcaling", "mxfp4:rceil", "answers MX under floor"),
    ("quark", "mxfp4:floor", "answers mxfp4, mxfp6_e2m3, mxfp6_e3m2 and mxfp8 under even"),
    ("torchao", "nvfp4:te", "answers MX under all scale rules in blocks of 32"),
    ("torchao", "nvfp4:torchao:amax=3", "does not take the parameter amax; it takes global_scale"),
    (
        "modelopt",
        "nvfp4:modelopt:amax=3",
        "does not take the parameter amax; it takes global_scale",
    ),
    ("modelopt", "nvfp4:te", "answers mxfp8:rceil:32 and nvfp4:modelopt:1x16"),
    ("compressed-tensors", "nvfp4:te", "answers mxfp4:even:32"),
    ("mmasim", "mxfp8", ""),
]


@pytest.mark.parametrize(("peer", "recipe", "reason"), [of(*row) for row in OTHERS])
def test_what_a_library_does_not_have_is_not_run(peer, recipe, reason):
    found = mor_ref.verify(f"peer:{peer}", inputs={"x": X}, recipe=recipe)
    assert found.verdict == "not run"
    assert f"  peer:{peer} {reason}" in str(found) or not reason


@needs("gguf")
def test_reasons_are_given_only_where_nothing_is_answered():
    assert "peer:gguf answers" not in str(verify(candidate_of("gguf"), mx_suites()))


def mx_suites():
    return suites_in(bundled_files(), ["mx_blocks"])


# A library, the element and rule of MX, the first numbers of a row; and a field at its first entry:
# of theirs and of ours.
KNOWN = [
    # A code 8 is never chosen; of two that are as near, the smaller one is.
    ("gguf", "e2m1 floor", [-0.01, 1], "code", 0x0, 0x8),
    ("gguf", "e2m1 floor", [3.5, 4], "code", 0x5, 0x6),
    # The exponent wraps in eight bits, comes from a logarithm, and is 0 for a NaN.
    ("gguf", "e2m1 floor", [2.0**-126], "scale", 0xFF, 0x00),
    ("gguf", "e2m1 floor", [np.nextafter(np.float32(32), np.float32(0))], "scale", 0x82, 0x81),
    ("gguf", "e2m1 floor", [np.nan, 1], "scale", 0x00, 0xFF),
    # The exponent comes from a logarithm, and a block with an infinity is NaN.
    (
        "microxcaling",
        "e4m3 floor",
        [np.nextafter(np.float32(32), np.float32(0))],
        "y",
        0x42000000,
        0x41E00000,
    ),
    ("microxcaling", "e4m3 floor", [1, np.inf], "y", 0x7FC00000, 0x00000000),
    ("gguf", "e2m1 floor", [np.inf, 1], "scale", 0x00, 0xFD),
    ("gguf", "e2m1 floor", [np.inf, 1], "code", 0x0, 0x7),
    # An amax that rounds to infinity has the largest scale.
    ("quark", "e2m1 even", [1.9375 * 2.0**127], "scale", 0xFE, 0xFD),
]


@pytest.mark.parametrize(
    ("peer", "recipe", "numbers", "field", "theirs", "ours"), [of(*row) for row in KNOWN]
)
def test_known_difference(peer, recipe, numbers, field, theirs, ours):
    """Those of the libraries that test_block_peers.py does not compare with."""
    x = np.zeros((1, 32), np.float32)
    x[0, : len(numbers)] = numbers
    fmt, rule = recipe.split()
    parameters = {"format": fmt, "scale_rule": rule, "block": 32, "source": "f32"}
    inputs = {"x": x.view(np.uint32)}
    found = peer_named(peer).answer("mx", parameters, inputs)
    exact = OPERATIONS["mx"].exact(parameters, inputs)
    assert (int(found[field][0, 0]), int(exact[field][0, 0])) == (theirs, ours)


# A library, the first numbers of a row, and the first block scale and code: theirs and ours.
NAN_SCALES = [
    ("torchao", [0], (0xFF, 0xC), (0x7F, 7)),
    ("torchao", [2.0**-149], (0xFF, 0xC), (0x7F, 7)),
    ("torchao", [-np.inf, 1], (0xFF, 0xC), (0x7F, 7)),
    ("modelopt", [0], (0xFF, 7), (0x7F, 7)),
    ("modelopt", [np.inf, 1], (0xFF, 7), (0x7F, 7)),
    ("compressed-tensors", [0], (0x20, 0), (0x20, 0)),
    ("compressed-tensors", [np.inf, 1], (0xFF, 0), (0x7F, 7)),
]


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="another NaN of 0 / 0")
@pytest.mark.parametrize(("peer", "numbers", "theirs", "ours"), [of(*row) for row in NAN_SCALES])
def test_block_scales_of_nan(peer, numbers, theirs, ours):
    """NVF-007, NVF-008, NVF-009: the NaN of x86 has a sign, and codes follow from it."""
    x = np.zeros((1, 16), np.float32)
    x[0, : len(numbers)] = numbers
    asked = own_recipe(f"nvfp4:{peer.replace('-', '_')}").asked
    parameters, inputs = {**asked.parameters, "source": "f32"}, {"x": x.view(np.uint32)}
    found = peer_named(peer).answer("nvfp4", parameters, inputs)
    exact = OPERATIONS["nvfp4"].exact(parameters, inputs)
    for answer, right in ((found, theirs), (exact, ours)):
        assert tuple(int(answer[name][0, 0]) for name in ("block_scale", "code")) == right


@needs("torch", "compressed_tensors")
def test_a_nan_makes_the_global_scale_of_compressed_tensors_1():
    asked = own_recipe("nvfp4:compressed_tensors").asked
    inputs = {"x": np.float32([[np.nan, *[3.0] * 15]]).view(np.uint32)}
    found = peer_named("compressed-tensors").answer(
        "nvfp4", {**asked.parameters, "source": "f32"}, inputs
    )
    assert found["global_encode_scale"].view(np.float32).item() == 1


@needs("torch", "mmasim")
def test_tensor_cores_lose_the_sign_of_zero():
    """In sums of products, as IEEE 754 has it; all other codes have their numbers."""
    found = verify(candidate_of("mmasim"), suites_in(bundled_files(), ["decode"]))
    (result,) = found.results
    assert result.answered == 2
    assert [(d.count, d.entries[0].index) for d in result.differences] == [(1, (128,))] * 2
    (diagnosis,) = found.diagnosis.suites
    assert diagnosis.explanations[0].deviations == (
        "DEC-001+QNT-002+NVF-010+MXS-008/negative-zero-lost",
    )


@pytest.mark.tier("full")
@needs("torch", "mmasim")
def test_the_dot_products_of_the_suites_are_those_of_mmasim():
    """DOT-008: but for an infinite or NaN c under cdna3_fp8, which has a name."""
    names = ["dot_chunks", "dot", "dot_scaled"]
    found = verify(candidate_of("mmasim"), suites_in(bundled_files(), names))
    compiled = 13 if fused() else 0
    assert [result.answered for result in found.results] == [226, 307 + compiled, 49]
    cases = {d.case for result in found.results for d in result.differences}
    assert cases == {"cdna3_fp8.e5m2fnuz.e5m2fnuz"}
    explanations = [one.explanations for one in found.diagnosis.suites]
    infinite = "dot_cdna3_loses_an_infinite_c"
    assert [[one.deviations for one in found] for found in explanations] == [[(infinite,)]] * 2


@needs("torch", "mmasim")
@pytest.mark.parametrize("profile", ["cdna1_bf16", "cdna3_bf16"])
def test_zeros_that_fill_an_instruction_of_mmasim_lose_no_sign(profile):
    """DOT-003, DOT-015, DOT-017: they fill a chunk, as a -0 in a chunk of zeros becomes +0."""
    columns = DOT_PROFILES[profile].chunk
    one, other = np.zeros((2, 1, columns), np.uint16)
    one[0, -1], other[0, -1] = 0x8001, 0x0001  # -2^-266
    parameters = {"dot_profile": profile, "format_a": "bf16", "format_b": "bf16"}
    given = {"a": one, "b": other, "c": np.zeros(1, np.uint32)}
    found = peer_named("mmasim").functions["dot"](parameters, given)
    assert found["result"].tolist() == [0x80000000]


@pytest.mark.tier("full")
@pytest.mark.parametrize(
    ("peer", "suite", "field", "answered"),
    [
        of("torchao", "mx", "code", 422),
        of("modelopt", "nvfp4_modelopt", "y", 51),
        of("compressed-tensors", "nvfp4_compressed_tensors", "code", 47),
    ],
)
def test_on_the_suites(peer, suite, field, answered):
    """Every case that the library has is answered, and none ends the run."""
    cases = {case.name for case in golden.load(suite)}
    candidate = candidate_of(peer)
    (evidence,) = ask_here(candidate, suites_in(bundled_files(), [suite]))
    assert (evidence.answered, evidence.failures) == (answered, ())
    assert {*evidence.answers} <= cases
    assert field in {one.suite_field for one in evidence.differences() if one.problem is None}


@pytest.mark.tier("full")
@pytest.mark.parametrize(
    ("peer", "names"),
    [of("torchao", ("mx_as_torchao", "ART-003/nan-7fc00000")), of("gguf", ("mx_as_gguf",))],
)
def test_every_difference_on_the_suite_of_mx_has_a_name(peer, names):
    """MXS-002, MXS-006, MXS-007. The report explains all of them."""
    found = verify(candidate_of(peer), suites_in(bundled_files(), ["mx"]))
    (diagnosis,) = found.diagnosis.suites
    best = diagnosis.explanations[0]
    assert (best.deviations, best.is_whole) == (names, True)
