"""The EPUB of Sphinx with the marks that EPUB 3 asks for: `python -m mor_docs.epub MADE TARGET`.

A page with formulas or drawings has to say so in the list of files, which Sphinx does not do.
"""

import re
import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

_LIST = "content.opf"
_PAGE = re.compile(r'(<item id="[^"]+" href="([^"]+)" media-type="application/xhtml\+xml") ?/>')
_MARKS = {"mathml": b"<math", "svg": b"<svg"}


def mark(made: Path, target: Path) -> None:
    """Copy an EPUB, and name the MathML and SVG of its pages; the type stays first and plain."""
    with ZipFile(made) as source, ZipFile(target, "w", ZIP_DEFLATED) as copy:
        contents = {name: source.read(name) for name in source.namelist()}
        pages = contents[_LIST].decode("utf-8")
        contents[_LIST] = _PAGE.sub(lambda found: _marked(found, contents), pages).encode("utf-8")
        for name, content in contents.items():
            copy.writestr(name, content, ZIP_STORED if name == "mimetype" else ZIP_DEFLATED)


def _marked(found: re.Match[str], contents: dict[str, bytes]) -> str:
    has = [name for name, tag in _MARKS.items() if tag in contents[found[2]]]
    return f'{found[1]} properties="{" ".join(has)}"/>' if has else found[0]


if __name__ == "__main__":
    mark(Path(sys.argv[1]), Path(sys.argv[2]))
