"""The machine, as the results name it: its processor and the versions, but not its name."""

import importlib.metadata
import os

VERSIONS = (
    "mor-ref",
    "numpy",
    "numba",
    "llvmlite",
    "ml_dtypes",
    "torch",
    "gfloat",
    "torchao",
    "nvidia-modelopt",
    "compressed-tensors",
    "qtorch",
    "pychop",
    "jax",
    "apytypes",
    "mmasim",
)


def pytest_benchmark_update_machine_info(machine_info):
    machine_info["node"] = ""
    machine_info["cores"] = len(os.sched_getaffinity(0))
    machine_info["load"] = os.getloadavg()[1]
    machine_info["versions"] = {name: version_of(name) for name in VERSIONS}


def pytest_benchmark_update_json(output_json):
    output_json["machine_info"]["load_after"] = os.getloadavg()[0]
    output_json.pop("commit_info", None)


def version_of(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
