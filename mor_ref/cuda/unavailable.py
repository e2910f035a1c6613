"""Why kernels cannot be run."""


class CudaError(RuntimeError):
    """The kernels cannot be compiled or run here; the message names the next step."""
