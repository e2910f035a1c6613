"""A launch as the library in C++ takes it."""

import ctypes

import numpy as np

from mor_ref.ptx.errors import LaunchError

_MOST_SIDES = {"grid": ((1 << 31) - 1, 65535, 65535), "block": (1024, 1024, 64)}


class Job(ctypes.Structure):
    """The record of this name in run.cpp."""

    _fields_ = (
        ("kernel", ctypes.c_void_p),
        ("globals", ctypes.c_uint64),
        ("parameters", ctypes.c_void_p),
        ("parameters_size", ctypes.c_uint64),
        ("regions", ctypes.c_void_p),
        ("region_count", ctypes.c_uint64),
        ("shared", ctypes.c_void_p),
        ("shared_count", ctypes.c_uint64),
        ("shared_size", ctypes.c_uint64),
        ("dynamic_shared", ctypes.c_uint64),
        ("ends", ctypes.c_void_p),
        ("noted", ctypes.c_void_p),
        ("options", ctypes.c_void_p),
        ("seed", ctypes.c_uint64),
        ("products", ctypes.c_uint64),
        ("filling", ctypes.c_uint32),
        ("refuses", ctypes.c_uint32),
        ("executed", ctypes.c_uint64),
        ("patience", ctypes.c_uint64),
    )


def sides_of(name: str, given: int | tuple[int, ...]) -> tuple[int, int, int]:
    """Return the three sides of a grid or a block."""
    sides = tuple(given) if isinstance(given, tuple | list) else (given,)
    are_numbers = all(isinstance(side, int | np.integer) and side > 0 for side in sides)
    if not 1 <= len(sides) <= 3 or not are_numbers:
        raise LaunchError(f"{name} is {given!r}; give one to three whole numbers above 0")
    x, y, z = (*(int(side) for side in sides), 1, 1)[:3]
    most = _MOST_SIDES[name]
    if x > most[0] or y > most[1] or z > most[2]:
        raise LaunchError(f"{name} is {given!r}; a GPU takes at most {most}")
    return x, y, z
