"""The plugin of pytest: cases of golden vectors as parameters of tests.

A test with the argument `mor_ref_case` runs once for each case that its marker names, or else the
ini option `mor_ref_cases`:

    @pytest.mark.mor_ref("mx_blocks/e4m3.*", scale_rule="floor")
    def test_my_kernel(mor_ref_case):
        found = run(mor_ref_case.operation, mor_ref_case.parameters, mor_ref_case.inputs)
        assert_bit_exact(found, mor_ref_case)

Loading this module imports neither NumPy nor Numba: pytest starts as fast as without it.
"""

import fnmatch
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from mor_ref.verify.asserting.suite_case import SuiteCase

_FIXTURE, _MARKER = "mor_ref_case", "mor_ref"
_CASES, _VECTORS = "mor_ref_cases", "mor_ref_vectors"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of pytest.ini."""
    parser.addini(
        _CASES, "cases of mor_ref_case, as SUITE or SUITE/PATTERN", type="args", default=[]
    )
    parser.addini(
        _VECTORS, "directory of golden vectors; the bundled one if it is not given", "string", ""
    )


def pytest_configure(config: pytest.Config) -> None:
    """Explain the marker."""
    config.addinivalue_line(
        "markers",
        f"{_MARKER}(*cases, **parameters): run once for each case of golden vectors; a case is "
        "SUITE or SUITE/PATTERN, and a parameter a value or a list of values",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a parameter of each case that a test asks for."""
    if _FIXTURE not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker(_MARKER)
    wanted = list(marker.args) if marker and marker.args else metafunc.config.getini(_CASES)
    parameters = dict(marker.kwargs) if marker else {}
    where = metafunc.definition.nodeid
    try:
        chosen = list(_chosen(_directory(metafunc.config), wanted, parameters))
    except ValueError as error:
        pytest.fail(f"{where}: {error}", pytrace=False)
    names = [f"{suite}-{case}" for suite, case in chosen]
    metafunc.parametrize(_FIXTURE, chosen, ids=names, indirect=True)


@pytest.fixture
def mor_ref_case(request: pytest.FixtureRequest) -> "SuiteCase":
    """Return a case of golden vectors: its operation, parameters, inputs and expected bits."""
    from mor_ref.verify.asserting.suite_case import suite_case

    return suite_case(_directory(request.config), *request.param)


def _directory(config: pytest.Config) -> Path:
    given = config.getini(_VECTORS)
    if given:
        return Path(config.rootpath, given)
    from mor_ref.golden import bundled_files

    return bundled_files()


def _chosen(
    directory: Path, wanted: list[str], parameters: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield the suite and the name of each case that is asked for, each once."""
    from mor_ref.argument_checks import known_name
    from mor_ref.golden.store.manifest import GoldenError, read_manifest

    if not wanted:
        raise ValueError(
            f"{_FIXTURE} has no cases; name them in a marker, such as "
            f"@pytest.mark.{_MARKER}('mx_blocks/e4m3.*'), or in the option {_CASES}"
        )
    try:
        suites = read_manifest(directory)["suites"]
    except GoldenError as error:
        raise ValueError(str(error)) from error
    found: dict[tuple[str, str], None] = {}
    for text in wanted:
        if not isinstance(text, str):
            raise ValueError(  # noqa: TRY004 (of the marker)
                f"a case of {_FIXTURE} is {text!r}; give text, such as 'mx_blocks/e4m3.*'"
            )
        suite, _, pattern = text.partition("/")
        cases = suites[known_name("suite", suite, suites)]["cases"]
        named = fnmatch.filter(cases, pattern or "*")
        taken = [name for name in named if _has(cases[name], parameters)]
        if not taken:
            said = f" with {parameters}" if parameters else ""
            raise ValueError(
                f"{text!r} names no case of {suite}{said}; take some that "
                f"mor-ref golden list {suite} --cases lists"
            )
        found |= dict.fromkeys((suite, name) for name in taken)
    yield from found


def _has(of_case: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return whether a case has parameters, each one of the values that are asked for."""
    return all(
        name in of_case and of_case[name] in (value if isinstance(value, list | set) else [value])
        for name, value in wanted.items()
    )
