// The chapter on acceptance and policies.
#pragma once
#include "errors.cuh"

enum Metric : u32 { MEAN_RELATIVE_ERROR, NOT_WORSE_THAN, FITS_RANGE };

// The metric of a rung; the numbers that it does not need are 0.
struct Rung {
  u32 metric;
  u32 limit;                // T
  float largest, smallest;  // of the format whose range is asked for, `smallest` being normal
};

struct Extremes {
  u32 amax, amin;  // bits
};

// MOR-002, MOR-003 and MOR-004; the products of MOR-004 are exact in binary64.
MOR_DEVICE bool accepts(const Rung& rung, const ErrorSum& own, u64 yardstick_sum, const Extremes& unit) {
  switch (rung.metric) {
    case MEAN_RELATIVE_ERROR: return own.nonzero == 0 || own.sum < rung.limit * own.nonzero;
    case NOT_WORSE_THAN: return own.sum <= yardstick_sum;
    default:
      return own.nonzero == 0 || __dmul_rn(double(number(unit.amax)), double(rung.smallest)) <=
                                     __dmul_rn(double(number(unit.amin)), double(rung.largest));
  }
}
