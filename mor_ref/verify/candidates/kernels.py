"""The CUDA kernels as candidates: each operation of the suites, on a GPU or on a CPU.

For tensors and blocks they return the stored fields, and y. The intermediates of every element (xs,
d, r, u, the candidates of 4over6) stay in registers. A kernel that wrote them would be compiled to
other code, and would not be evidence on the kernel that is used. The same functions of the device
return xs, d, r and u of single numbers, in `quantize_element` and `error_term`. If a candidate of
4over6 is wrong, the scale or the codes of a case that depends on it are wrong.
"""

from dataclasses import dataclass

import numpy as np

from mor_ref.cuda.device import Gpu
from mor_ref.cuda.host import Host
from mor_ref.cuda.launching import Device
from mor_ref.cuda.unavailable import CudaError
from mor_ref.golden.model.suite import Case
from mor_ref.operations import OPERATIONS
from mor_ref.verify.candidates.candidate import Answer, Candidate, CandidateError


@dataclass(frozen=True)
class Kernels(Candidate):
    """The kernels on a device."""

    name: str
    device: Device

    def answer(self, suite: str, operation: str, case: Case) -> Answer | None:
        """Return the fields that the kernels compute; None for an operation without kernels."""
        del suite
        declared = OPERATIONS[operation]
        if declared.kernels is None:
            return None
        try:
            arrays = {
                name: self.device.upload(np.ascontiguousarray(array))
                for name, array in case.arrays.items()
            }
            results = declared.cuda(self.device, case.parameters, arrays)
            return {name: self.device.download(array) for name, array in results.items()}
        except CudaError as error:
            raise CandidateError(str(error)) from error


def kernels_named(name: str) -> Kernels:
    """Return the kernels on the GPU (`cuda`) or on the CPU (`cuda-host`, `cuda-ptx:sm_90`)."""
    kind, colon, architecture = name.partition(":")
    if colon and not architecture:
        raise CandidateError(
            f"candidate is {name!r}; name an architecture, such as cuda-ptx:sm_90, or give cuda-ptx"
        )
    try:
        if kind == "cuda-ptx":
            from mor_ref.ptx.device import DEFAULT, device_for

            return Kernels(name, device_for(architecture or DEFAULT))
        return Kernels(name, Gpu() if name == "cuda" else Host())
    except CudaError as error:
        raise CandidateError(str(error)) from error
