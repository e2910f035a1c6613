"""Records on a GPU that have y."""

import numpy as np

from mor_ref.cuda import encoding
from mor_ref.cuda.arrays import on_gpu_after, target_of
from mor_ref.cuda.launching import Array, Bits
from mor_ref.cuda.records import GpuNumbers
from mor_ref.cuda.streams import Moment
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.definitions.formats import formats


class WithY(GpuNumbers):
    """A record that has y."""

    y: Array
    _ready: Moment

    def dequantize(self, dtype: "np.typing.DTypeLike" = np.float32) -> Array:
        """Return y, as float32 or rounded from it to bfloat16, on CuPy's current stream."""
        wanted, target = target_of(dtype)
        with on_gpu_after(self._ready, self.y) as gpu:
            if target == "f32":
                return self.y.copy()
            y, special = Bits(self.y.view(np.uint32), "f32"), SpecialCases(overflow="ieee")
            return encoding.encode(gpu, y, formats["bf16"], "rne", special).view(wanted)
