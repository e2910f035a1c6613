"""Kernels are kept on disk, and never those of another source."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import forking
import numpy as np
import pytest

import mor_ref
from mor_ref.engine import block_steps, kernel, policies, strips

PACKAGE = Path(mor_ref.__file__).parent

ENCODE = """
import mor_ref
from mor_ref.engine import encoding
print(mor_ref.encode([1.0625], "e4m3")[0])
print(sum(encoding.encode_array.stats.cache_hits.values()))
"""


def environment_of(where):
    return os.environ | {
        "PYTHONPATH": str(where),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": str(where / "cache"),
    }


@pytest.fixture
def copy(tmp_path):
    """Return a copy of the package that can be edited, and an environment that uses it."""
    shutil.copytree(PACKAGE, tmp_path / "mor_ref", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path, environment_of(tmp_path)


@pytest.fixture(scope="module")
def kept_kernel(tmp_path_factory):
    """Return the cache after a first process, which had to compile the kernel."""
    where = tmp_path_factory.mktemp("first")
    shutil.copytree(PACKAGE, where / "mor_ref", ignore=shutil.ignore_patterns("__pycache__"))
    assert run(ENCODE, where, environment_of(where)) == ["56", "0"]
    return where / "cache"


@pytest.fixture
def used(copy, kept_kernel):
    """Return a copy of the package in which a first process has made the kernel."""
    shutil.copytree(kept_kernel, copy[0] / "cache")
    return copy


def python(program, **options):
    """Run a process that has imported Numba, and nothing of this package."""
    return forking.python(program, package="numba", **options)


def fresh_python(program, **options):
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def run(program, where, environment, start=python):
    done = start(program, cwd=where, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def edit(path, old, new):
    source = path.read_text()
    assert source.count(old) == 1
    path.write_text(source.replace(old, new))


@pytest.mark.tier("full")
def test_a_second_process_finds_the_kernel(used):
    """Whichever other kernels either has called."""
    other = "import mor_ref; mor_ref.decode([1], 'e4m3'); import mor_ref.schemes.levels.engine"
    assert run(f"{other}\n{ENCODE}", *used) == ["56", "1"]


@pytest.mark.tier("full")
def test_an_edit_in_a_file_that_a_kernel_calls_is_noticed(used):
    where, _ = used
    # Makes every shift to the right one too short; encoding.py and its times stay as they are.
    edit(where / "mor_ref/engine/intrinsics.py", "builder.lshr(*args)", "builder.shl(*args)")
    code, hits = run(ENCODE, *used)
    assert hits == "0"
    assert code != "56"


SCALES = """
import mor_ref
import numpy as np
x = np.array([[1.0], [3.0]], np.float32)
print(*mor_ref.quantize_mx(x, "e4m3", scale_rule="ceil").scale[:, 0])
"""


@pytest.mark.tier("full")
def test_another_constant_is_other_code(copy):
    """Also one that is a number of NumPy's."""
    assert run(SCALES, *copy) == ["119", "121"]
    edit(
        copy[0] / "mor_ref/engine/block_steps.py",
        "_FRACTION = _U(0x3F800000), _U(0x00800000)",
        "_FRACTION = _U(0x3F000000), _U(0x00800000)",
    )
    assert run(SCALES, *copy) == ["119", "120"]


def test_the_digest_is_of_constants_and_of_functions(monkeypatch):
    digests = {kernel.code_digest()}
    monkeypatch.setattr(block_steps, "_UP", np.float32(2.0**9))
    digests.add(kernel.code_digest())
    monkeypatch.setattr(policies, "keep_row", policies.render_row)
    digests.add(kernel.code_digest())
    assert len(digests) == 3
    monkeypatch.setattr(policies, "nothing_of_a_kernel", object(), raising=False)
    assert kernel.code_digest() in digests


def test_arrays_and_numbers_of_numpy_are_code():
    digests = {
        tuple(kernel._parts_of_value(value))
        for value in (np.float32(1), np.float32(2), np.uint32(1), np.ones(2), np.ones(2, np.int8))
    }
    assert len(digests) == 5
    assert () not in digests


def test_a_step_that_a_loop_is_made_of_is_code():
    """Loops over units are of one source, and differ by the step that they call."""
    loops = (strips.over_units(row_step) for row_step in (policies.keep_row, policies.render_row))
    one, other = (list(kernel._parts_of_value(loop)) for loop in loops)
    assert one != other


def test_a_kernel_that_cannot_be_kept_is_refused():
    """It would be compiled in every process: a large array has an address."""
    large = np.ones(1 << 18)

    @kernel.kernel
    def of_an_array(i):
        return large[i]

    with pytest.raises(RuntimeError, match="of_an_array has an address of this process"):
        of_an_array(1)


@pytest.mark.tier("full")
def test_going_back_to_a_source_finds_its_kernels_again(used):
    where, _ = used
    path = where / "mor_ref/engine/intrinsics.py"
    source = path.read_text()
    edit(path, "builder.lshr(*args)", "builder.shl(*args)")
    run(ENCODE, *used)
    path.write_text(source)
    assert run(ENCODE, *used) == ["56", "1"]


@pytest.mark.tier("full")
@pytest.mark.parametrize("imported", ["intrinsics", "encoding"])
def test_a_source_that_changes_under_the_process_changes_nothing_for_others(copy, imported):
    """The process keeps the kernel of the code that it loaded, not of the file that it read."""
    where, environment = copy
    path = where / "mor_ref/engine/intrinsics.py"
    program = f"""
import mor_ref.engine.{imported}
source = open({str(path)!r}).read()
open({str(path)!r}, "w").write(source.replace("builder.lshr(*args)", "builder.shl(*args)"))
{ENCODE}"""
    run(program, where, environment)
    assert "builder.shl(*args)" in path.read_text()
    assert run(ENCODE, *copy)[0] == truth_of(where, environment)


def truth_of(where, environment):
    """Return the code that the present sources compute without any cache."""
    return run(ENCODE, where, environment | {"NUMBA_CACHE_DIR": str(where / "none")})[0]


# A tie goes down, and no other number up: 1.0625 becomes 57.
OTHER_STEP = (
    "word(fraction >= threshold))\n\n\n@step\ndef rounded_at",
    "word(fraction <= threshold))\n\n\n@step\ndef rounded_at",
)


@pytest.mark.tier("full")
def test_stale_bytecode_is_not_mistaken_for_its_source(copy):
    """Python runs old bytecode if size and time of a source stay; the kernels are then old too."""
    where, environment = copy
    del environment["PYTHONDONTWRITEBYTECODE"]
    path = where / "mor_ref/engine/encoding.py"
    before = path.stat()
    assert run(ENCODE, where, environment) == ["56", "0"]
    edit(path, *OTHER_STEP)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert run(ENCODE, where, environment) == ["56", "1"]
    os.utime(path)
    assert run(ENCODE, where, environment) == ["57", "0"]


@pytest.mark.tier("full")
def test_a_reloaded_module_has_kernels_of_its_own(copy):
    where, environment = copy
    path = where / "mor_ref/engine/encoding.py"
    program = f"""
import importlib, mor_ref
from mor_ref.engine import encoding
mor_ref.encode([1.0625], "e4m3")
source = open({str(path)!r}).read()
open({str(path)!r}, "w").write(source.replace(*{OTHER_STEP!r}))
importlib.reload(encoding)
{ENCODE}"""
    assert run(program, where, environment) == ["57", "0"]


@pytest.mark.tier("full")
def test_another_order_of_fields_is_other_code(used):
    """A kernel has the places of the fields of its row compiled in."""
    where, _ = used
    edit(
        where / "mor_ref/engine/formats.py",
        "    infinity_bits: Any  # of the source, as are the next four\n    hidden_bit: Any\n",
        "    hidden_bit: Any\n    infinity_bits: Any  # of the source, as are the next four\n",
    )
    assert run(ENCODE, *used) == ["56", "0"]


@pytest.mark.tier("full")
def test_packages_in_archives_do_not_share_kernels(copy):
    where, environment = copy
    for archive in ("old", "new"):
        shutil.make_archive(str(where / archive), "zip", where, "mor_ref")
        edit(where / "mor_ref/engine/encoding.py", *OTHER_STEP[:: 1 if archive == "old" else -1])
    shutil.rmtree(where / "mor_ref")
    for archive, code in (("old", "56"), ("new", "57")):
        zipped = environment | {"PYTHONPATH": str(where / f"{archive}.zip")}
        assert run(ENCODE, where, zipped) == [code, "0"]


def test_two_processes_that_keep_kernels_at_once_never_mix_them(tmp_path, monkeypatch):
    """Both find an empty index, and the first writes its code last: an entry may be lost."""
    one, other = (kernel._CheckedFiles(str(tmp_path), "x", "stamp") for _ in range(2))
    late = []
    with monkeypatch.context() as patched:
        for files in (one, other):
            patched.setattr(files, "_load_index", dict)
        patched.setattr(one, "_save_data", lambda *written: late.append(written))
        one.save("bfloat16", b"of bfloat16")
        other.save("float16", b"of float16")
    for written in late:
        one._save_data(*written)
    later = kernel._CheckedFiles(str(tmp_path), "x", "stamp")
    assert later.load("bfloat16") in (None, b"of bfloat16")
    assert later.load("float16") == b"of float16"
    later.save("bfloat16", b"of bfloat16")
    assert later.load("bfloat16") == b"of bfloat16"
    assert later.load("float16") == b"of float16"


def test_a_kernel_of_another_directory_is_no_kernel(tmp_path):
    """A directory is that of a digest of the code."""
    for code in ("old", "new"):
        (tmp_path / code).mkdir()
        kernel._CheckedFiles(str(tmp_path / code), "x", "stamp").save("key", code.encode())
    for path in (tmp_path / "old").iterdir():
        shutil.copy(path, tmp_path / "new" / path.name)
    with pytest.raises(ValueError, match="is damaged"):
        kernel._CheckedFiles(str(tmp_path / "new"), "x", "stamp").load("key")


def test_a_wrong_bit_in_a_kept_kernel_is_noticed(tmp_path):
    """Machine code with a wrong bit may crash, or compute something else."""
    files = kernel._CheckedFiles(str(tmp_path), "x", "stamp")
    files.save("key", b"machine code")
    assert files.load("key") == b"machine code"
    assert files.load("other") is None
    kept = sorted(tmp_path.iterdir())
    assert [path.suffix for path in kept] == [".nbc", ".nbi"]
    for path in kept:
        right = path.read_bytes()
        for place in range(len(right)):
            wrong = bytearray(right)
            wrong[place] ^= 1 << place % 8
            path.write_bytes(wrong)
            with pytest.raises(ValueError, match="is damaged"):
                files.load("key")
        path.write_bytes(right[:-1])
        with pytest.raises(ValueError, match="is damaged"):
            files.load("key")
        path.write_bytes(right)
    assert files.load("key") == b"machine code"


def test_the_directory_is_made_when_it_is_needed(tmp_path):
    locator = kernel._Locator(tmp_path / "mor_ref-kernels" / ("0" * 32))
    for _ in range(2):
        locator.ensure_cache_path()
        assert Path(locator.get_cache_path()).is_dir()


def test_other_compilers_make_other_kernels(monkeypatch):
    before = kernel.code_digest()
    assert kernel.code_digest() == before
    for compiler in (kernel.numba, kernel.llvmlite):
        with monkeypatch.context() as patched:
            patched.setattr(compiler, "__version__", "0")
            assert kernel.code_digest() != before


def kernels_in(where):
    return where / "cache" / "mor_ref-kernels"


@pytest.mark.tier("full")
def test_only_kernels_of_old_code_are_forgotten(copy):
    where, _ = copy
    kept = kernels_in(where)
    for number in range(40):
        (kept / f"{number:032x}").mkdir(parents=True)
    foreign = [kept / name for name in ("engine", "0123", "x" * 32)]
    for folder in foreign:
        folder.mkdir()
    run(ENCODE, *copy)
    assert all(folder.exists() for folder in foreign)
    assert len(list(kept.iterdir())) == 16 + len(foreign)


@pytest.mark.tier("full")
@pytest.mark.parametrize(("suffix", "damage"), [(".nbi", b""), (".nbc", b"\x80\x05garbage")])
def test_a_damaged_cache_is_made_anew(used, suffix, damage):
    where, _ = used
    for path in kernels_in(where).rglob(f"*{suffix}"):
        path.write_bytes(damage)
    assert run(ENCODE, *used) == ["56", "0"]
    assert run(ENCODE, *used) == ["56", "1"]


@pytest.mark.tier("full")
def test_a_full_disk_is_no_obstacle(copy):
    where, environment = copy
    full = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))
"""
    assert run(full + ENCODE, where, environment) == ["56", "0"]
    assert run(ENCODE, where, environment) == ["56", "0"]


@pytest.mark.tier("full")
def test_a_home_that_cannot_be_written_still_works(copy):
    where, environment = copy
    home = where / "home"
    home.mkdir()
    home.chmod(stat.S_IRUSR | stat.S_IXUSR)
    del environment["NUMBA_CACHE_DIR"]
    environment.pop("XDG_CACHE_HOME", None)
    if os.geteuid() == 0:  # root writes everywhere: a file in the place of a directory stops it too
        home.chmod(stat.S_IRWXU)
        (home / ".cache").write_text("")
    assert run(ENCODE, where, environment | {"HOME": str(home)}) == ["56", "0"]


def test_importing_compiles_nothing_and_imports_no_numba(copy):
    program = """
import sys, mor_ref
print("numba" in sys.modules, "numpy" in sys.modules)
mor_ref.encode
print("numba" in sys.modules)
"""
    assert run(program, *copy, fresh_python) == ["False", "False", "False"]
    where, _ = copy
    assert not (where / "cache").exists()


def test_without_the_compiler_there_is_no_engine_and_it_says_so(copy):
    where, environment = copy
    program = """
import mor_ref
try:
    mor_ref.encode([1.0], "e4m3")
except RuntimeError as error:
    print(error)
"""
    said = " ".join(run(program, where, environment | {"NUMBA_DISABLE_JIT": "1"}, fresh_python))
    assert said.startswith("NUMBA_DISABLE_JIT is set")
    assert "mor_ref.exact" in said


BOTH = f"""{ENCODE}
print(mor_ref.decode([56], "e4m3")[0])
"""


def test_a_file_at_the_place_of_another_is_no_kernel(used):
    """Each is as it was written, and would be another function."""
    where, environment = used
    assert run(BOTH, where, environment) == ["56", "1", "1.0"]
    first, second = sorted((where / "cache").rglob("*.nbc"))
    contents = first.read_bytes(), second.read_bytes()
    second.write_bytes(contents[0])
    first.write_bytes(contents[1])
    assert run(BOTH, where, environment) == ["56", "0", "1.0"]
