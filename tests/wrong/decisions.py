"""Decisions from the sums of a unit, with a mistake."""

import numpy as np

from wrong.microscaling import Register, f32

KERNELS = Register()
MEAN, WORSE, FITS = "mean_relative_error", "not_worse_than", "fits_range"
decide = KERNELS.decide
LARGEST = {"e4m3": 448.0, "e5m2": 57344.0, "bf16": float.fromhex("0x1.fep127")}
NORMAL = {"e4m3": 2.0**-6, "e5m2": 2.0**-14, "bf16": 2.0**-126}
LEAST = {"e4m3": 2.0**-9, "e5m2": 2.0**-16, "bf16": 2.0**-133}


def magnitudes(given):
    """Return amax and amin."""
    return given["amax"].view(np.float32), given["amin"].view(np.float32)


@decide("products_in_binary64", "T * nonzero and the sum are compared in binary64.", MEAN)
def _products_in_binary64(given, _parameters):
    mean_is_small = given["sum"].astype(float) < given["limit"].astype(float) * given["nonzero"]
    return (mean_is_small | (given["nonzero"] == 0)) & (given["nonfinite"] == 0)


@decide("product_of_32_bits", "T * nonzero is a product of 32 bits.", MEAN)
def _product_of_32_bits(given, _parameters):
    product = given["limit"] * given["nonzero"].astype(np.uint32)
    good = (given["sum"] < product) | (given["nonzero"] == 0)
    return good & (given["nonfinite"] == 0)


@decide("counts_of_32_bits", "nonzero is cut to 32 bits, and its product with T is of 64.", MEAN)
def _counts_of_32_bits(given, _parameters):
    counts = given["nonzero"].astype(np.uint32).astype(np.uint64)
    good = (given["sum"] < given["limit"].astype(np.uint64) * counts) | (counts == 0)
    return good & (given["nonfinite"] == 0)


@decide("signed_sums", "All is in signed integers of 64 bits, in which 2^63 is negative.", MEAN)
def _signed_sums(given, _parameters):
    total, counts, limit = (given[n].astype(np.int64) for n in ("sum", "nonzero", "limit"))
    return ((total < limit * counts) | (counts == 0)) & (given["nonfinite"] == 0)


@decide("mean_in_binary64", "The mean is a quotient in binary64, and T a fraction.", MEAN)
def _mean_in_binary64(given, _parameters):
    mean = given["sum"].astype(float) / 2.0**23 / given["nonzero"]
    good = (mean < given["limit"] / 2.0**23) | (given["nonzero"] == 0)
    return good & (given["nonfinite"] == 0)


@decide("mean_in_binary32", "The mean is a quotient in binary32.", MEAN)
def _mean_in_binary32(given, _parameters):
    mean = given["sum"].astype(np.float32) / given["nonzero"].astype(np.float32)
    good = (mean < given["limit"].astype(np.float32)) | (given["nonzero"] == 0)
    return good & (given["nonfinite"] == 0)


@decide("sum_in_binary32", "The sum is an atomic float, and the product exact.", MEAN)
def _sum_in_binary32(given, _parameters):
    product = given["limit"].astype(float) * given["nonzero"].astype(float)
    good = (given["sum"].astype(np.float32) < product) | (given["nonzero"] == 0)
    return good & (given["nonfinite"] == 0)


@decide("mean_rounded_down", "The mean is a quotient of integers, and T too is accepted.", MEAN)
def _mean_rounded_down(given, _parameters):
    mean = given["sum"] // np.maximum(given["nonzero"], np.uint64(1))
    return ((given["nonzero"] == 0) | (mean <= given["limit"])) & (given["nonfinite"] == 0)


@decide("mean_rounded_up", "The mean is a quotient of integers that is rounded to nearest.", MEAN)
def _mean_rounded_up(given, _parameters):
    counts = np.maximum(given["nonzero"], np.uint64(1))
    mean = (given["sum"] + counts // np.uint64(2)) // counts
    return ((given["nonzero"] == 0) | (mean < given["limit"])) & (given["nonfinite"] == 0)


@decide("equality_accepts", "A mean at the threshold is accepted.", MEAN)
def _equality_accepts(given, _parameters):
    product = given["limit"].astype(np.uint64) * given["nonzero"]
    return (given["sum"] <= product) & (given["nonfinite"] == 0)


@decide("nothing_has_no_mean", "A mean over no element is NaN, and not accepted.", MEAN)
def _nothing_has_no_mean(given, _parameters):
    product = given["limit"].astype(np.uint64) * given["nonzero"]
    return (given["sum"] < product) & (given["nonfinite"] == 0)


@decide("lost_ones_accepted", "nonfinite is not looked at.", MEAN)
def _lost_ones_accepted(given, _parameters):
    product = given["limit"].astype(np.uint64) * given["nonzero"]
    return (given["sum"] < product) | (given["nonzero"] == 0)


@decide("zeros_accepted_first", "A unit without a number is accepted, infinities or not.", MEAN)
def _zeros_accepted_first(given, _parameters):
    product = given["limit"].astype(np.uint64) * given["nonzero"]
    good = (given["sum"] < product) & (given["nonfinite"] == 0)
    return np.where(given["nonzero"] == 0, True, good)


@decide("lost_ones_of_8_bits", "nonfinite is kept in a byte.")
def _lost_ones_of_8_bits(given, parameters):
    none_lost = given["nonfinite"].astype(np.uint8) == 0
    metric, none = parameters["metric"], given["nonzero"] == 0
    if metric == MEAN:
        return ((given["sum"] < given["limit"] * given["nonzero"]) | none) & none_lost
    if metric == WORSE:
        return (given["sum"] <= given["yardstick_sum"]) & none_lost
    amax, amin = (a.astype(float) for a in magnitudes(given))
    ratio = LARGEST[parameters["format"]] / NORMAL[parameters["format"]]
    return ((amax <= amin * ratio) | none) & none_lost


@decide("lost_ones_of_16_bits", "nonfinite is kept in 16 bits.", WORSE)
def _lost_ones_of_16_bits(given, _parameters):
    lost = given["nonfinite"].astype(np.uint16)
    return (given["sum"] <= given["yardstick_sum"]) & (lost == 0)


@decide("lost_ones_of_32_bits", "nonfinite is kept in 32 bits.", MEAN)
def _lost_ones_of_32_bits(given, _parameters):
    lost = given["nonfinite"].astype(np.uint32)
    product = given["limit"].astype(np.uint64) * given["nonzero"]
    return ((given["sum"] < product) | (given["nonzero"] == 0)) & (lost == 0)


@decide("ties_lose", "A sum equal to the yardstick's is worse.", WORSE)
def _ties_lose(given, _parameters):
    return (given["sum"] < given["yardstick_sum"]) & (given["nonfinite"] == 0)


@decide("sums_in_binary32", "The sums are compared as binary32 numbers.", WORSE)
def _sums_in_binary32(given, _parameters):
    total, other = (given[n].astype(np.float32) for n in ("sum", "yardstick_sum"))
    return (total <= other) & (given["nonfinite"] == 0)


@decide("sums_in_binary64", "The sums are compared as binary64 numbers.", WORSE)
def _sums_in_binary64(given, _parameters):
    total, other = (given[n].astype(float) for n in ("sum", "yardstick_sum"))
    return (total <= other) & (given["nonfinite"] == 0)


@decide("sums_of_32_bits", "The sums are cut to 32 bits.", WORSE)
def _sums_of_32_bits(given, _parameters):
    total, other = (given[n].astype(np.uint32) for n in ("sum", "yardstick_sum"))
    return (total <= other) & (given["nonfinite"] == 0)


@decide("difference_of_sums", "The difference of the sums is a signed integer of 32 bits.", WORSE)
def _difference_of_sums(given, _parameters):
    difference = (given["sum"] - given["yardstick_sum"]).astype(np.uint32).view(np.int32)
    return (difference <= 0) & (given["nonfinite"] == 0)


@decide(
    "difference_of_64_bits", "The difference of the sums is a signed integer of 64 bits.", WORSE
)
def _difference_of_64_bits(given, _parameters):
    difference = given["sum"].view(np.int64) - given["yardstick_sum"].view(np.int64)
    return (difference <= 0) & (given["nonfinite"] == 0)


@decide("range_in_binary32", "amin times the range is a product in binary32.", FITS)
def _range_in_binary32(given, parameters):
    amax, amin = magnitudes(given)
    ratio = f32(LARGEST[parameters["format"]]) / f32(NORMAL[parameters["format"]])
    return ((amax <= amin * ratio) | (given["nonzero"] == 0)) & (given["nonfinite"] == 0)


@decide("range_by_division", "The quotient of amax and amin is compared, in binary32.", FITS)
def _range_by_division(given, parameters):
    amax, amin = magnitudes(given)
    ratio = f32(LARGEST[parameters["format"]]) / f32(NORMAL[parameters["format"]])
    return ((amax / amin <= ratio) | (given["nonzero"] == 0)) & (given["nonfinite"] == 0)


@decide("range_from_above", "amax over the range is compared with amin, in binary32.", FITS)
def _range_from_above(given, parameters):
    amax, amin = magnitudes(given)
    ratio = f32(LARGEST[parameters["format"]]) / f32(NORMAL[parameters["format"]])
    return ((amax / ratio <= amin) | (given["nonzero"] == 0)) & (given["nonfinite"] == 0)


@decide("range_by_reciprocals", "amax is multiplied by RN32(1 / amin).", FITS)
def _range_by_reciprocals(given, parameters):
    amax, amin = magnitudes(given)
    ratio = LARGEST[parameters["format"]] / NORMAL[parameters["format"]]
    good = (amax * (f32(1) / amin)).astype(float) <= ratio
    return (good | (given["nonzero"] == 0)) & (given["nonfinite"] == 0)


@decide("range_by_logarithms", "Logarithms of amax and amin are subtracted.", FITS)
def _range_by_logarithms(given, parameters):
    amax, amin = (np.log2(a.astype(float)) for a in magnitudes(given))
    ratio = np.log2(LARGEST[parameters["format"]]) - np.log2(NORMAL[parameters["format"]])
    return ((amax - amin <= ratio) | (given["nonzero"] == 0)) & (given["nonfinite"] == 0)


@decide("range_of_subnormals", "The range reaches down to the subnormal numbers.", FITS)
def _range_of_subnormals(given, parameters):
    amax, amin = (a.astype(float) for a in magnitudes(given))
    ratio = LARGEST[parameters["format"]] / LEAST[parameters["format"]]
    return ((amax <= amin * ratio) | (given["nonzero"] == 0)) & (given["nonfinite"] == 0)


@decide("range_of_exponents", "Only the exponents of amax and amin are compared.", FITS)
def _range_of_exponents(given, parameters):
    high, low = (np.frexp(a)[1] for a in magnitudes(given))
    span = np.frexp(LARGEST[parameters["format"]])[1] - np.frexp(NORMAL[parameters["format"]])[1]
    return ((high - low <= span) | (given["nonzero"] == 0)) & (given["nonfinite"] == 0)


@decide("range_of_flushed_numbers", "A subnormal amin is flushed to zero.", FITS)
def _range_of_flushed_numbers(given, parameters):
    amax, amin = (np.where(a < 2.0**-126, 0, a.astype(float)) for a in magnitudes(given))
    ratio = LARGEST[parameters["format"]] / NORMAL[parameters["format"]]
    return ((amax <= amin * ratio) | (given["nonzero"] == 0)) & (given["nonfinite"] == 0)


@decide("range_strictly", "A unit that fits exactly does not fit.", FITS)
def _range_strictly(given, parameters):
    amax, amin = (a.astype(float) for a in magnitudes(given))
    ratio = LARGEST[parameters["format"]] / NORMAL[parameters["format"]]
    return ((amax < amin * ratio) | (given["nonzero"] == 0)) & (given["nonfinite"] == 0)


@decide("range_of_bits", "The bits of amax and amin are subtracted, as a logarithm.", FITS)
def _range_of_bits(given, parameters):
    span = [np.array(a[parameters["format"]], np.float32).view(np.int32) for a in (LARGEST, NORMAL)]
    good = given["amax"].view(np.int32) - given["amin"].view(np.int32) <= span[0] - span[1]
    return (good | (given["nonzero"] == 0)) & (given["nonfinite"] == 0)
