"""The whole wrong programs that are put aside, to judge the model of mistakes by in the end.

`random.Random(64).sample(sorted(names), 300)` has drawn them from the names of all 4,178 that were
registered when the model was begun. Nobody looks at what becomes of them before: none is deleted.
"""

import json
from pathlib import Path

FILE = Path(__file__).parent / "put_aside.json"


def put_aside():
    """Return the names of the programs that are put aside."""
    return frozenset(json.loads(FILE.read_text())["names"])
