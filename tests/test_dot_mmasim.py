"""Dot products of the exact model are those of MMA-Sim 2.1.1, bit for bit."""

import itertools

import numpy as np
import pytest
from extras import needs
from mmasim_operations import dot_of_mmasim, is_simulated
from records import bits32

from mor_ref.definitions.dot import DOT_PROFILES
from mor_ref.definitions.formats import formats
from mor_ref.exact.dot import Scales, dot

SIMULATED = [name for name in DOT_PROFILES.specified if is_simulated(DOT_PROFILES[name])]
