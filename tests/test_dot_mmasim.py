"""Dot products are those of MMA-Sim 2.1.1, bit for bit, for all profiles that it has."""

import itertools

import numpy as np
import pytest
from extras import needs
from mmasim_operations import dot_of_mmasim, is_simulated

from mor_ref.definitions.dot import DOT_PROFILES
from mor_ref.definitions.formats import formats
from mor_ref.operations import OPERATIONS
from mor_ref.operations.random_numbers import Draws
from mor_ref.verify.running.stream import arrays_of  # noqa
