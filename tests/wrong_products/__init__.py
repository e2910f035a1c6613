"""Wrong kernels of products of matrices, each for the kinds of operands that it is for."""

from wrong_products import chunks, operands, others, pieces, sums
from wrong_products.kernel import KERNELS, kinds_of

__all__ = ["KERNELS", "chunks", "kinds_of", "operands", "others", "pieces", "sums"]
