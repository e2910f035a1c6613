"""Functions as representations, and digests of own code in recipes (MOR-017)."""

import linecache
import re
import sys
from types import ModuleType

import ml_dtypes
import numba
import numpy as np
import pytest
from extras import imported, is_there, needs
from records import differing, engine_mor, exact_mor

import mor_ref
from mor_ref import MeanRelativeError, Policy, RelativeFrobenius, Rung
from mor_ref.analysis.compare_tensor import compare
from mor_ref.definitions.code_digest import code_digest
from mor_ref.policies import POLICIES
from mor_ref.recipes import Mor, Row, as_tensor_recipe
from mor_ref.recipes.training import Operand, Recipe
from mor_ref.representations import (
    REPRESENTATIONS,
    FunctionRepresentation,
    MxBlocks,
    as_representation,
)

torch = imported("torch") if is_there("torch") else None
STEP = 0.25


def quarters(x):
    """Round to multiples of a quarter."""
    return np.rint(x / np.float32(STEP)) * np.float32(STEP)


@numba.njit
def quarters_in_numba(x):
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = np.float32(np.rint(x[i, j] / np.float32(0.25))) * np.float32(0.25)
    return y


@pytest.fixture
def row(monkeypatch):
    found = FunctionRepresentation(quarters, bits=6)
    monkeypatch.setitem(REPRESENTATIONS, "quarters", found)
    return found


@pytest.mark.parametrize("function", [quarters, quarters_in_numba])
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.float16, np.float64])
def test_a_function_is_a_representation(function, dtype):
    """MOR-017: its y is that of NumPy, also next to other rungs."""
    x = (4 * np.random.default_rng(0).standard_normal((2, 8, 32))).astype(dtype)
    policy = Policy(
        "own",
        (Rung(function, MeanRelativeError(0.1)), Rung("e4m3", RelativeFrobenius(1))),
        "block",
        (4, 8),
    )
    result = mor_ref.mor(x, policy)
    y = np.rint(x.astype(np.float32) * 4) / 4
    name = function.__name__
    assert np.array_equal(np.asarray(result.quantized[name]), y)
    assert {*result.choice.ravel().tolist()} == {0, 1}
    differ = differing(engine_mor(x, policy), exact_mor(x, policy))
    assert differ.keys() <= {"codes"}  # which a function has not


def test_a_function_is_compared_and_is_a_recipe(row):
    x = (4 * np.random.default_rng(0).standard_normal((16, 32))).astype(np.float32)
    (found,) = compare(x, ["quarters"]).values()
    d = (x - quarters(x)).astype(np.float64)
    assert found.measures.mse == pytest.approx((d**2).mean())
    assert (found.bits_per_number, found.bits_by_author) == (6, True)
    del REPRESENTATIONS["quarters"]
    REPRESENTATIONS["quarters"] = FunctionRepresentation(quarters)
    (unsaid,) = compare(x, ["quarters"]).values()
    assert unsaid.bits is None
    REPRESENTATIONS["quarters"] = row
    each = Operand(row, row)
    assert each == Operand(Row("quarters"), Row("quarters"))
    recipe = Recipe("r", each, each, each)
    assert Recipe.from_text(str(recipe)) == recipe


@needs("torch")
@pytest.mark.usefixtures("row")
def test_a_model_trains_with_a_function():
    from mor_ref.torch import convert

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 4, bias=False))
    x = torch.randn(3, 8)
    weight = model[0].weight.detach()
    expected = (
        torch.from_numpy(quarters(x.bfloat16().float().numpy()))
        @ torch.from_numpy(quarters(weight.bfloat16().float().numpy())).T
    )
    assert convert(model, "quarters") == ("0",)
    assert torch.equal(model(x), expected.bfloat16().float())
    model(x).sum().backward()


def test_an_operand_is_of_a_row():
    with pytest.raises(ValueError, match=r"row is Func.*no row yet; add it first: mor_ref\.repres"):
        Operand(FunctionRepresentation(quarters))


@pytest.mark.parametrize(
    ("function", "returned"),
    [
        (lambda x: x.astype(np.float64), "(2, 2) float64"),
        (lambda x: x[:1], "(1, 2) float32"),
        (lambda x: x.tolist(), "list"),
        (lambda _: None, "NoneType"),
    ],
)
def test_what_a_function_may_not_return(function, returned):
    """MOR-017."""
    representation = FunctionRepresentation(function, "own")
    message = f"representation 'own' returned {returned} for x of (2, 2) float32; return an array"
    with pytest.raises(TypeError, match=re.escape(message)):
        mor_ref.mor(np.ones((2, 2)), Policy("p", (Rung(representation, MeanRelativeError(1)),)))


def test_what_is_missing_is_named():
    class Half:
        name, bits = "half", 8

        def engine(self, *_):
            return None

    with pytest.raises(
        TypeError, match="which has name, bits and engine but no exact and cuda; give"
    ):
        as_representation(Half())
    with pytest.raises(TypeError, match="representation is 3; give a name"):
        as_representation(3)
    with pytest.raises(TypeError, match="which has name, bits and engine but no exact and cuda; g"):
        Operand(Half())
    with pytest.raises(
        TypeError, match="which has name, bits and engine but no exact and cuda, so it"
    ):
        REPRESENTATIONS["half"] = Half()
    with pytest.raises(ValueError, match="is a function whose name is '<lambda>'; give it another"):
        as_representation(lambda x: x)


@pytest.mark.usefixtures("row")
def test_an_operand_takes_a_block_format_and_the_function_of_a_row():
    own = mor_ref.BlockFormat(
        "own", "e4m3", (mor_ref.BlockScale("s", (1, 32), "amax / 448 or 1"),), decode="s"
    )
    assert Operand(own).row == as_tensor_recipe(own)
    function = REPRESENTATIONS["quarters"].function
    assert Operand(function) == Operand(REPRESENTATIONS["quarters"])

    def eighths(x):
        return x

    made = re.escape("REPRESENTATIONS['eighths'] = mor_ref.representations.FunctionRepresentation(")
    with pytest.raises(ValueError, match=f"which is no row yet; add it first: .*{made}eighths"):
        Operand(eighths)
    with pytest.raises(TypeError, match="a function; give a Format, or its values as a TableForm"):
        mor_ref.BlockFormat("own", eighths, own.scales, decode="s")


def test_a_metric_of_numba_is_called_as_it_is_written():
    """MOR-014: Numba knows no units."""
    metric = numba.njit(lambda unit: unit.sqnr > 20)
    assert mor_ref.mor(np.ones((2, 2)), Policy("p", (Rung("e4m3", metric),))).choice == 0


def test_a_state_that_could_be_left_out_is_given():
    """MOR-016."""

    def metric(_, state=None):
        return state == {}

    policy = Policy("p", (Rung("e4m3", metric),))
    assert policy.has_state
    assert mor_ref.mor(np.ones((2, 2)), policy).choice == 0
    with pytest.raises(TypeError, match="give a function of .unit., or of .unit, state."):
        Rung("e4m3", lambda _, *, state=None: state is None)


# ---------------------------------------------------------------------- digests


def test_a_text_has_the_digest_of_the_code_that_it_names(row, monkeypatch):
    """MOR-017: a text that was written with other code is refused."""
    text = str(as_tensor_recipe("quarters"))
    assert re.fullmatch(
        r'\{ representation = "row", of = "quarters", code = "sha256:[0-9a-f]{16}" \}', text
    )
    assert as_tensor_recipe(text) == Row("quarters")
    assert as_tensor_recipe('{ representation = "row", of = "quarters" }') == Row("quarters")
    monkeypatch.setitem(REPRESENTATIONS, "quarters", FunctionRepresentation(np.rint, "quarters"))
    with pytest.raises(
        ValueError, match="code is sha256:.*, but here 'quarters' has sha256:.*chan"
    ):
        as_tensor_recipe(text)
    monkeypatch.setitem(REPRESENTATIONS, "quarters", row)
    assert as_tensor_recipe(text) == Row("quarters")
    with pytest.raises(ValueError, match="but here 'nvfp4' is no row of a user"):
        Row("nvfp4", "sha256:0123456789abcdef")
    assert "code" not in str(Row("nvfp4"))


def test_a_policy_of_a_user_has_a_digest(monkeypatch):
    """MOR-017."""

    def policy(metric):
        monkeypatch.setitem(POLICIES, "mine", Policy("mine", (Rung("e4m3", metric),)))
        return str(Mor("mine"))

    text = policy(MeanRelativeError(0.1))
    assert ', code = "sha256:' in text
    assert policy(MeanRelativeError(0.1)) == text
    assert as_tensor_recipe(text) == Mor("mine")
    assert policy(MeanRelativeError(0.2)) != text
    with pytest.raises(ValueError, match="but here 'mine' has sha256:"):
        as_tensor_recipe(text)
    assert "code" not in str(Mor("tensor"))
    assert Mor("mine").asked.parameters["policy"] == "mine"


SOURCE = """
import functools
import numpy as np
LIMITS = {"weight": 0.1}
UNUSED = 1
STEP, TABLE = np.float32(0.25), np.array([1, 2])

class Grid:
    step = 0.5

class Limit:
    def __init__(self, most):
        self.most = most

    def allows(self, x):
        return x < self.most

OWN, ALLOWS = Limit(3.0), Limit(4.0).allows
SCALED = functools.partial(pow, 5)

@np.vectorize
def single(x):
    return x * 7

sixfold = np.frompyfunc(lambda x: x * 6, 1, 1)

def inner(x):
    return x + 1

def metric(unit, limit=2):
    # a comment
    values = STEP, TABLE, np.float32, Grid.step, OWN.most, ALLOWS(1), SCALED(2)
    of_numpy = single(1), sixfold(1)
    return inner(unit.x).sum() < LIMITS["weight"]
"""


def function_of(source, tmp_path, name="metric"):
    import importlib.util

    path = tmp_path / f"m{abs(hash(source))}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location("m", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


@pytest.mark.parametrize(
    ("before", "after", "is_same"),
    [
        ("# a comment", "# another", True),
        ("UNUSED = 1", "UNUSED = 2", True),
        ("limit=2", "limit = 2", True),
        ("limit=2", "limit=3", False),
        ("0.1", "0.2", False),
        ("x + 1", "x + 2", False),
        ("sum()", "max()", False),
        ("np.float32(0.25)", "np.float32(0.5)", False),
        ("[1, 2]", "[1, 3]", False),
        ("step = 0.5", "step = 1.5", False),
        ("Limit(3.0)", "Limit(2.0)", False),
        ("Limit(4.0)", "Limit(5.0)", False),
        ("x < self.most", "x <= self.most", False),
        ("(pow, 5)", "(pow, 6)", False),
        ("(pow, 5)", "(max, 5)", False),
        ("x * 7", "x * 8", False),
        ("x * 6", "x * 5", False),
    ],
)
def test_the_digest_is_of_what_decides(before, after, is_same, tmp_path):
    first = code_digest(function_of(SOURCE, tmp_path))
    assert first == code_digest(function_of(SOURCE, tmp_path))
    changed = code_digest(function_of(SOURCE.replace(before, after), tmp_path))
    assert (changed == first) is is_same


ELSEWHERE = """
import functools
from decimal import Decimal
from functools import partial
from types import SimpleNamespace

first, metric_of_line = (lambda u: u.x + 1), (lambda u: u.x + 2)
names = SimpleNamespace(limit=3)
ratio = Decimal("0.25")

class Own:
    limits = (0.5, 4)

    @functools.cached_property
    def most(self):
        return 6

@functools.lru_cache
def cached(x):
    return x * 7

def made(step):
    def metric(unit, *, step=step):
        return unit.x < step
    return metric

by_key_word = made(8)

def metric(unit):
    return unit.x < cached(names.limit) * Own.limits[0] * ratio, Own().most

bound = [partial(max, 10), partial(max, 11)]

def with_bound(unit):
    return bound
"""


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("metric", "limit=3", "limit=4"),
        ("metric", "0.25", "0.5"),
        ("metric", "(0.5, 4)", "(0.5, 5)"),
        ("metric", "return 6", "return 7"),
        ("metric", "x * 7", "x * 8"),
        ("by_key_word", "made(8)", "made(9)"),
        ("with_bound", "(max, 11)", "(max, 12)"),
    ],
)
def test_the_digest_is_of_what_decides_elsewhere(name, before, after, tmp_path):
    first = code_digest(function_of(ELSEWHERE, tmp_path, name))
    assert first == code_digest(function_of(ELSEWHERE, tmp_path, name))
    assert first != code_digest(function_of(ELSEWHERE.replace(before, after), tmp_path, name))


THAT_WRITE = """
log, counts, calls = [], {}, 0

def near(unit):
    global calls
    calls += 1
    log.append(unit)
    counts[unit] = counts.get(unit, 0) + 1
    return unit > 2

class Near:
    def __init__(self, limit):
        self.limit, self.calls, self.log = limit, 0, [[]]

    def __call__(self, unit):
        self.calls += 1
        self.log[0].append(unit)
        return unit > self.limit

own = Near(2)

def made():
    last, seen = None, set()
    def metric(unit):
        nonlocal last
        last = unit
        seen.add(unit)
        return unit > 2
    return metric

enclosed = made()
"""


@pytest.mark.parametrize("name", ["near", "own", "enclosed"])
def test_what_a_function_writes_to_is_not_in_its_digest(name, tmp_path):
    """A metric may keep a list of its calls."""
    function = function_of(THAT_WRITE, tmp_path, name)
    first = code_digest(function)
    assert (function(1), function(3)) == (False, True)
    assert code_digest(function) == first
    assert code_digest(function_of(THAT_WRITE, tmp_path, name)) == first
    changed = THAT_WRITE.replace("unit > 2", "unit > 4").replace("Near(2)", "Near(4)")
    assert code_digest(function_of(changed, tmp_path, name)) != first


@pytest.mark.parametrize(
    "naming",
    [
        "import mine\ndef metric(unit): return mine.close(unit)",
        "import mine as m\ndef metric(unit): return m.close(unit)",
        "from mine import close\ndef metric(unit): return close(unit)",
        "from mine import Close\nclose = Close()\ndef metric(unit): return close.is_met(unit)",
    ],
    ids=["module", "alias", "function", "class"],
)
@pytest.mark.parametrize(("before", "after"), [("LIMIT = 3", "LIMIT = 9"), ("u > ", "u >= ")])
def test_other_files_of_a_user_are_in_the_digest(naming, before, after, tmp_path, monkeypatch):
    mine = (
        "LIMIT = 3\nUNUSED = 1\ndef close(u): return u > LIMIT\n"
        "class Close:\n    def is_met(self, u): return u > LIMIT\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    found = []
    for source in (mine, mine.replace("UNUSED = 1", "UNUSED = 2"), mine.replace(before, after)):
        monkeypatch.delitem(sys.modules, "mine", raising=False)
        module = ModuleType("mine")
        (tmp_path / "mine.py").write_text(source)
        module.__file__ = str(tmp_path / "mine.py")
        linecache.checkcache()
        exec(compile(source, module.__file__, "exec"), vars(module))  # noqa: S102
        monkeypatch.setitem(sys.modules, "mine", module)
        found.append(code_digest(function_of(naming, tmp_path)))
    first, same, changed = found
    assert first == same != changed


def test_two_functions_on_a_line_have_two_digests(tmp_path):
    both = [function_of(ELSEWHERE, tmp_path, name) for name in ("first", "metric_of_line")]
    assert len(set(map(code_digest, both))) == 2


def test_the_digest_of_what_has_no_source():
    def made(text):
        names = {}
        exec(text, names)  # noqa: S102  # as a notebook does
        return code_digest(names["f"])

    assert made("def f(x):\n    return x + 1") == made("def f(x):\n    return x + 1")
    assert made("def f(x):\n    return x + 1") != made("def f(x):\n    return x + 2")
    assert made("f = lambda u: u.sqnr") != made("f = lambda u: u.cosine")

    def of_closure(limit):
        return code_digest(lambda unit: unit.sqnr > limit)

    assert of_closure(1) == of_closure(1) != of_closure(2)
    assert code_digest(MxBlocks("e4m3")) == code_digest(MxBlocks("e4m3"))
    assert code_digest(MxBlocks("e4m3")) != code_digest(MxBlocks("e5m2"))
    assert code_digest(quarters_in_numba) == code_digest(quarters_in_numba.py_func)
