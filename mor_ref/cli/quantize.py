"""`mor-ref quantize`: the tensors of files with a recipe, with every field of the record."""

from mor_ref.analysis.listing import Selection
from mor_ref.analysis.tensor_files import files_read
from mor_ref.cli.outputs import arrays_named
from mor_ref.cli.statuses import comparison_status
from mor_ref.counts_in_words import counted
from mor_ref.golden.inputs.own_tensors import unread_cases
from mor_ref.golden.model.suite import Case
from mor_ref.golden.store.array_files import ArrayEntry, ArrayFile, array_file
from mor_ref.golden.store.suite_files import SEPARATOR
from mor_ref.recipes import own_recipe
from mor_ref.verify.own_inputs import from_files, lines_of_rounded, lines_of_skipped
from mor_ref.verify.quantize_by_rows import FieldOf, fields_of, quantized_rows
from mor_ref.verify.way_back import metadata_for


def run(files: list[str], recipe: str, out: str, wanted: Selection, *, complete: bool) -> int:
    """Write the fields of all tensors, print which they are, and return the exit status.

    The headers of the files are read first: the places of all fields follow from them.
    """
    own, path = own_recipe(recipe), arrays_named("out", out, files_read(files))
    inputs = from_files(files, wanted, with_words=own.is_random)
    fields, sources = {}, {}
    for case in unread_cases(own, inputs):
        fields[case.name] = dict(fields_of(own.asked.operation, case.parameters, case.shape))
        sources[case.name] = case.parameters["source"]
    entries = (
        ArrayEntry(f"{tensor}{SEPARATOR}{name}", field.dtype, field.shape)
        for tensor, known in fields.items()
        for name, field in known.items()
    )
    with array_file(path, entries, metadata_for(own, sources)) as file:
        for case in unread_cases(own, inputs):
            _write(own.asked.operation, case.read(), fields[case.name], file)
            rows, columns = case.shape
            shapes = (
                f"{name} {'x'.join(map(str, field.shape))}"
                for name, field in fields[case.name].items()
            )
            print(f"{case.name}: {rows}x{columns} {case.parameters['source']}: {', '.join(shapes)}")
    for line in (*lines_of_rounded(inputs.rounded), *lines_of_skipped(inputs.skipped)):
        print(line)
    print(f"{out}: {counted(len(fields), 'tensor')} with {own.title}")
    return comparison_status(differs=complete and bool(inputs.skipped))


def _write(operation: str, case: Case, fields: dict[str, FieldOf], file: ArrayFile) -> None:
    """Write the fields of a tensor, some rows at a time."""
    for first, arrays in quantized_rows(operation, case):
        for name, array in arrays.items():
            rows = fields[name].rows
            if first == 0 or rows < case.arrays["x"].shape[0]:  # else it is one of all rows
                file.put(f"{case.name}{SEPARATOR}{name}", array, first // rows)
