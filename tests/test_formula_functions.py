"""Functions of a user as words of formulas (BLF-010)."""

import json
import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import mor_ref
from mor_ref import BlockFormat, BlockFormatError, BlockScale, FormulaFunction, formula_functions
from mor_ref.exact.block_formats import quantize as exact_quantize

X = np.random.default_rng(7).standard_normal((24, 40)).astype(np.float32)
X[3, 5], X[4, :] = np.nan, 0


def rooted(amax, mean):
    return math.sqrt(amax * mean)


def third(t):
    return t / 3


def far(x, y):
    return abs(y - x) + np.float32(0.25) * abs(x)


@pytest.fixture
def functions():
    """Add the functions, and forget all of them after the test."""
    for function in (rooted, third, far):
        formula_functions[function.__name__] = FormulaFunction(function)
    yield formula_functions
    for name in [*formula_functions]:
        del formula_functions[name]


def own(number="rooted(amax, percentile(50)) / 6 or 1", **changes):
    scale = BlockScale("s", (2, 8), number, "e4m3")
    return BlockFormat("own", "e2m1", (scale,), **{"decode": "s", **changes})


def bits(numbers):
    numbers = np.asarray(numbers, np.float32)
    return np.where(np.isnan(numbers), np.uint32(0x7FFFFFFF), numbers.view(np.uint32))


@pytest.mark.parametrize(
    "record",
    [
        own,
        lambda: own(tries=("t", "third(t)"), error="far(x, y)"),
        lambda: own("amax / 6 or 1", decode=None, encode="1 / third(s)"),
        lambda: BlockFormat(
            "two",
            "e4m3",
            (
                BlockScale("S", "tensor", "third(amax)"),
                BlockScale("s", (1, 8), "amax / S or 1", "e8m0"),
            ),
            decode="s * S",
        ),
    ],
    ids=["scale", "tries and error", "factor", "outer scale"],
)
@pytest.mark.usefixtures("functions")
def test_the_engine_has_the_bits_of_the_exact_model(record):
    """BLF-010: both call the compiled function."""
    record = record()
    quantized = mor_ref.quantize(X, record)
    exact = exact_quantize(X.ravel().tolist(), X.shape, record)
    assert np.array_equal(quantized.codes.ravel(), exact.codes)
    assert np.array_equal(bits(quantized.dequantize()).ravel(), bits(exact.y))


@pytest.mark.usefixtures("functions")
def test_a_function_is_rounded_to_binary32_once():
    """Its author computes in binary64, and the third of 6 amaxes is no number of binary32."""
    x = np.array([[v, 0, 0, 0, 0, 0, 0, 0] for v in (1.0, 0.1, 7.0, 1e-40, 3e38)], np.float32)
    record = BlockFormat(
        "thirds", "e4m3", (BlockScale("s", (1, 8), "third(amax) or 1"),), decode="s"
    )
    expected = [np.float32(float(v) / 3) for v in x[:, 0]]
    assert (
        bits(mor_ref.quantize(x, record).scale_numbers["s"][:, 0]).tolist()
        == bits(expected).tolist()
    )


def test_a_text_has_the_digest(functions):
    """BLF-010."""
    record = own()
    digest = functions["rooted"].digest
    assert f'functions = {{ rooted = "{digest}" }}\n' in record.text
    assert mor_ref.quantize(X, record.text) == mor_ref.quantize(X, record)
    without = record.text.replace(f'functions = {{ rooted = "{digest}" }}\n', "")
    assert mor_ref.quantize(X, without) == mor_ref.quantize(X, record)
    with pytest.raises(BlockFormatError, match=f"and that of .* has {digest}; give the function"):
        mor_ref.quantize(X, record.text.replace(digest, "sha256:0123456789abcdef"))


def test_another_function_of_the_same_name(functions):
    record, before = own(), mor_ref.quantize(X, own())
    other = FormulaFunction(lambda amax, mean: amax + mean, "rooted")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(functions, "rooted", other)
        for call in (
            lambda: mor_ref.quantize(X, record),
            lambda: mor_ref.quantize(X[:1, :8], record),
            lambda: exact_quantize(X.ravel().tolist(), X.shape, record),
            lambda: replace(record, name="other"),
        ):
            with pytest.raises(ValueError, match="calls a function rooted with the digest sha256:"):
                call()
        assert own() != record
        assert mor_ref.quantize(X, own()) != before
    assert mor_ref.quantize(X, record) == before


@pytest.mark.parametrize("columns", [8, 4096])
def test_another_function_in_small_tensors_and_large_ones(functions, columns):
    record, x = own("third(amax) or 1"), np.ones((64, columns), np.float32)
    mor_ref.quantize(x, record)
    functions["third"] = FormulaFunction(lambda t: t / 5, "third")
    with pytest.raises(ValueError, match="calls a function third with the digest sha256:"):
        mor_ref.quantize(x, record)


def test_a_function_that_is_gone(functions):
    text = own().text
    del functions["rooted"]
    assert mor_ref.recipes.as_block_format(text).text == text
    with pytest.raises(ValueError, match="function rooted of its author, which is not here"):
        mor_ref.quantize(X, text)


@pytest.mark.usefixtures("functions")
@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("unknown(amax)", r"calls 'unknown'; give .*mor_ref.formula_functions\['unknown'\] = "),
        ("rooted(amax)", "gives rooted 1 arguments; give 2"),
        ("min(6, third(amax))", "loses a NaN"),
    ],
)
def test_formulas_that_cannot_be_right(formula, message):
    with pytest.raises(BlockFormatError, match=message):
        own(formula)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda t: (t, t), "function 'f' returns .*; return a number"),
        (lambda t: own(t + 1), "function 'f' cannot be compiled: .*; write it with numbers"),
        (lambda *t: t[0], "function 'f' has arguments that are not given by place"),
    ],
)
def test_functions_that_cannot_be_words(functions, function, message):
    functions["f"] = FormulaFunction(function, "f")
    with pytest.raises((TypeError, ValueError), match=message):
        mor_ref.quantize(X, own("f(amax)"))


@pytest.mark.parametrize("name", ["min", "percentile", "lambda", "a b", "", "MAX", "or"])
def test_names_that_formulas_have(name):
    with pytest.raises(ValueError, match="give a word of letters and digits"):
        FormulaFunction(lambda t: t, name) if name else FormulaFunction(lambda t: t)


def test_a_name_that_a_format_has(functions):
    with pytest.raises(ValueError, match="'e4m3' has the name of a format"):
        functions["e4m3"] = FormulaFunction(third, "e4m3")


@pytest.mark.usefixtures("functions")
def test_kernels_of_functions_are_kept_by_this_process_alone(tmp_path, monkeypatch):
    """They may call what no digest covers."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    record = own("third(amax) * 1.0625 or 1")
    mor_ref.quantize(X, record)
    kept = [path.name for path in tmp_path.rglob("*.nbi")]
    assert not any("scales_" in name for name in kept)


def test_vectors_are_made_with_the_function_and_verified_without_it(tmp_path):
    (tmp_path / "words.py").write_text(
        "import mor_ref\n"
        "def third(t):\n"
        "    return t / 3\n"
        "mor_ref.formula_functions['third'] = mor_ref.FormulaFunction(third)\n"
    )
    (tmp_path / "own.toml").write_text(
        'name = "own"\nelement = "e2m1"\ndecode = "s"\n'
        '[[scales]]\nname = "s"\nover = [1, 16]\nnumber = "third(percentile(100)) or 1"\n'
    )
    (tmp_path / "kernel.py").write_text(
        "import numpy as np\n"
        "def run(operation, parameters, inputs):\n"
        "    if parameters['source'] != 'f32':\n"
        "        return None\n"
        "    x = np.nan_to_num(abs(inputs['x'].view(np.float32)), nan=0, posinf=np.inf)\n"
        "    columns = range(0, x.shape[1], 16)\n"
        "    amax = np.stack([x[:, c:c + 16].max(axis=1) for c in columns], axis=1)\n"
        "    s = (amax.astype(np.float64) / 3).astype(np.float32)\n"
        "    return {'scale': np.where(s == 0, np.float32(1), s).view(np.uint32)}\n"
    )
    python = [sys.executable, "-m", "mor_ref"]

    def run(*arguments):
        return subprocess.run(
            [*python, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )

    made = run("--rows", "words", "golden", "make", "own.toml", "--out", "v")
    assert (made.returncode, made.stderr.count("mor-ref:")) == (0, 0), made.stderr
    page = (tmp_path / "v/own.txt").read_text()
    assert "third(...)" in page
    assert "come from one implementation" in " ".join(page.split())
    assert "percentile(p)" in page
    manifest = json.loads((tmp_path / "v/MANIFEST.json").read_text())["suites"]["own"]
    assert manifest["title"].endswith("whose functions have one implementation")
    verified = run("verify", "kernel:run", "--vectors", "v")
    assert "own: match" in verified.stdout, verified.stdout + verified.stderr
    text = (tmp_path / "kernel.py").read_text()
    (tmp_path / "kernel.py").write_text(text.replace("/ 3", "/ 3.5"))
    wrong = run("verify", "kernel:run", "--vectors", "v", "--json")
    assert wrong.returncode == 1, wrong.stderr
    (diagnosis,) = json.loads(wrong.stdout)["diagnosis"]["suites"]
    assert (diagnosis["lacks"], diagnosis["explanations"]) == ("third", [])
    told = run("verify", "kernel:run", "--vectors", "v").stdout
    assert "a function third of their author, which is not here, so no mistake was" in told
    checked = run("golden", "check", "v")
    assert "function third of its author, which is not here" in checked.stdout
    assert run("--rows", "words", "golden", "check", "v").returncode == 0


def test_a_function_that_is_not_there_is_to_be_added(tmp_path):
    own = tmp_path / "own.toml"
    own.write_text(
        'name = "own"\nelement = "e2m1"\ndecode = "s"\nfunctions = {smooth = "0"}\n\n'
        '[[scales]]\nname = "s"\nover = [1, 16]\nnumber = "smooth(amax) or 1"\nstored = "e8m0"\n'
    )
    command = [sys.executable, "-m", "mor_ref", "golden", "make", own, "--out", tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    said = "'smooth', which is not known; add it first, as --rows MODULE does for commands"
    assert said in " ".join(done.stderr.split())
