"""Block formats: MX, NVFP4 and scaled formats in formulas."""

from mor_docs.shown.markup import table
from mor_ref.recipes import as_block_format

_SHOWN = (
    "mxfp8", "mxfp4:ceil", "mxfp8:rceil", "nvfp4", "nvfp4:te_2_13", "nvfp4:te_4over6_mse",
    "nvfp4:torchao", "nvfp4:modelopt", "nvfp4:compressed_tensors", "e4m3:fp32:128x128",
    "e4m3:e8m0:1x32", "e4m3:gam:128x128",
)  # fmt: skip


def built_in() -> str:
    """Return a table of formulas (BLF-002)."""
    rows = []
    for text in _SHOWN:
        record = as_block_format(text)
        scales = [f"{scale.name} = {scale.number}" for scale in record.scales]
        factors = [
            f"{name} = {formula}"
            for name, formula in (("decode", record.decode), ("encode", record.encode))
            if formula
        ]
        tries = [f"error = {record.error}"] if len(record.tries) > 1 else []
        lines = (f"`{line}`" for line in (*scales, *factors, *tries))
        rows.append([f"`{text}`", "<br/>".join(lines)])
    return table(["recipe", "formulas"], rows)
