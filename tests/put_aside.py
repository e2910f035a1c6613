"""The whole wrong programs that are put aside, to judge the model of mistakes by in the end.

A seed has drawn their names from all that were registered when the model was begun. Nobody looks at
what becomes of them before.
"""

import json
import random
from pathlib import Path

FILE = Path(__file__).parent / "put_aside.json"
SEED, COUNT = 64, 300


def drawn(names):
    """Return the names that the seed draws from those of all wrong programs."""
    drawer = random.Random(SEED)  # noqa: S311  # whoever draws again has to draw the same
    return sorted(drawer.sample(sorted(names), COUNT))


def put_aside():
    """Return the names of the programs that are put aside."""
    return frozenset(json.loads(FILE.read_text())["names"])
