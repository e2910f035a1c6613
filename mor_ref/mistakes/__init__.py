"""Mistakes as data: where a program is wrong, and what it does instead.

A site is a place of the exact program: an operator of a formula, a rounding, an amax. An operator
says what a wrong program does there. Each pair of both is a mistake: its name, its sentence and
its bits follow from the two.
"""

from mor_ref.mistakes.block_formats import mistakes_of, mistakes_of_all
from mor_ref.mistakes.matrix import Shown, shown_by

__all__ = ["Shown", "mistakes_of", "mistakes_of_all", "shown_by"]
