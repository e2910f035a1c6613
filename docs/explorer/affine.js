"use strict";

// Integers with zero points: blocks of a row with a scale and the code of zero, under the profiles (AFF).
Explorer.affine = (() => {
  const { catalogue, exact, formats } = Explorer;
  const {
    finite, nan, powerOfTwo, whole, ZERO, ONE, isFinite, isNan, isZero, negated, rn32, rint, isBelow,
    exactProduct, exactSum, product, quotient, total, difference, maximum,
  } = exact;
  const number = (bits) => formats.numberOf(bits, "f32");
  const TWO_TO_31 = powerOfTwo(31);
  const TWO_TO_63 = powerOfTwo(63);
  const ONE_127TH = quotient(ONE, whole(127));

  // A whole number as a Number, which has to be within a grid.
  const signed = (x) => Number(x.negative ? -exact.nearestUnits(0, x) : exact.nearestUnits(0, x));

  // A number within a grid; the ends of a grid for infinities (AFF-008).
  function clamped(x, { lowest, highest }) {
    if (isBelow(x, whole(lowest))) return lowest;
    return isBelow(whole(highest), x) ? highest : signed(x);
  }

  // The minimum and the maximum, NaN if one is; a zero is +0 (AFF-003).
  function extremes(numbers) {
    if (numbers.some(isNan)) return { minimum: nan(), maximum: nan() };
    const plain = (x) => (isZero(x) ? ZERO : x);
    return {
      minimum: plain(numbers.reduce((a, b) => (isBelow(b, a) ? b : a))),
      maximum: plain(numbers.reduce((a, b) => (isBelow(a, b) ? b : a))),
    };
  }

  // How far a block reaches below zero and above (AFF-003).
  function sides(ends, profile) {
    if (isNan(ends.minimum)) return { low: nan(), high: nan() };
    const above = (x, least) => (isBelow(least, x) ? x : least);
    return { low: above(negated(ends.minimum), ZERO), high: above(ends.maximum, number(profile.smallestHigh)) };
  }

  // The scale of a block before its limit (AFF-004).
  function scaleBeforeLimit({ low, high }, how) {
    const { profile, grid, symmetric } = how;
    if (isNan(low)) return nan();
    const width = symmetric ? maximum(low, high) : total(high, low);
    const half = finite(false, BigInt(grid.highest - grid.lowest), -1);
    const steps = !symmetric ? whole(grid.highest - grid.lowest) : profile.divisor === "highest" ? whole(grid.highest) : half;
    if (isZero(width) && profile.zeroScale !== "limit") {
      return profile.zeroScale === "one" ? ONE : quotient(ONE, steps);
    }
    return profile.storesAmax ? width : quotient(width, steps);
  }

  // The code of zero (AFF-005).
  function zeroPoint(zeroFloat, { profile, grid, symmetric }) {
    if (symmetric) {
      if (grid.lowest < 0 || profile.signByNumbers) return 0;
      return 2 ** (grid.bits - 1) - (profile.lowMiddle.includes(grid.bits) ? 1 : 0);
    }
    return isNan(zeroFloat) ? grid.highest : clamped(total(whole(grid.lowest), rint(zeroFloat)), grid);
  }

  // The factor of numbers (AFF-007).
  function inverseOf(scale, profile) {
    const reciprocal = quotient(ONE, scale);
    return profile.inverseFactor > 1 ? product(whole(profile.inverseFactor), reciprocal) : reciprocal;
  }

  // The fields of a block (AFF-003 to AFF-007).
  function blockOf(ends, how) {
    const { profile, symmetric } = how;
    const reach = sides(ends, profile);
    const delta = scaleBeforeLimit(reach, how);
    const scale = isNan(delta) ? delta : maximum(delta, number(profile.smallest));
    const zeroFloat = symmetric ? ZERO : quotient(reach.low, profile.earlyZero ? delta : scale);
    const inverse = inverseOf(scale, profile);
    return { ...ends, ...reach, delta, scale, zeroFloat, zeroPoint: zeroPoint(zeroFloat, how), inverse };
  }

  // RN32(a * b + c).
  function fused(a, b, c) {
    const isPlain = isFinite(a) && isFinite(b) && !isZero(a) && !isZero(b);
    return isPlain ? rn32(exactSum(exactProduct(a, b), c)) : total(product(a, b), c);
  }

  // xs (AFF-007).
  function scaled(x, block, profile) {
    if (profile.application === "fuse") return fused(x, block.inverse, whole(block.zeroPoint));
    const xs = profile.application === "divide" ? quotient(x, block.scale) : product(x, block.inverse);
    if (profile.addsFirst) return total(xs, whole(block.zeroPoint));
    return profile.factor > 1 ? product(whole(profile.factor), xs) : xs;
  }

  const fitsInt32 = (x) => !isNan(x) && !isBelow(x, negated(TWO_TO_31)) && isBelow(x, TWO_TO_31);

  // The code of xs (AFF-008).
  function integer(xs, zero, { profile, grid }) {
    const v = rint(xs);
    if (profile.conversion === "cast") {
      const count = 2 ** grid.bits;
      return fitsInt32(v) ? (((signed(v) - grid.lowest) % count) + count) % count + grid.lowest : 0;
    }
    if (profile.conversion === "int32") {
      return clamped(whole(((fitsInt32(v) ? signed(v) : -(2 ** 31)) + zero) | 0), grid);
    }
    if (isNan(v)) return { lowest: grid.lowest, highest: grid.highest, zero: 0 }[profile.nanCode];
    const w = profile.application === "fuse" || profile.addsFirst ? v : total(v, whole(zero));
    return profile.conversion === "int64" && !isBelow(w, TWO_TO_63) ? grid.lowest : clamped(w, grid);
  }

  // y (AFF-009).
  const restored = (code, { scale, zeroPoint: zero }, profile) => (profile.storesAmax
    ? product(product(scale, whole(code)), ONE_127TH)
    : product(difference(whole(code), whole(zero)), scale));

  function quantizeElement(x, block, how) {
    const xs = scaled(x, block, how.profile);
    const code = integer(xs, block.zeroPoint, how);
    return { xs, code, y: restored(code, block, how.profile) };
  }

  // Why a profile does not have a grid or a zero point; nothing if it does (AFF-002).
  function refusal(profile, gridName, symmetric) {
    if (!profile.storesAmax) return "";
    if (gridName !== "int8") return `${profile.name} has the grid int8 alone.`;
    return symmetric ? "" : `${profile.name} has no zero points: it is symmetric.`;
  }

  // A row in blocks of `length` (AFF-001); under peg a symmetric grid has the sign of the numbers (AFF-005).
  function quantizeRow(numbers, gridName, profileName, symmetric, length) {
    const profile = catalogue.integerProfiles[profileName];
    const starts = Array.from({ length: Math.ceil(numbers.length / length) }, (_, i) => i * length);
    const members = starts.map((start) => numbers.slice(start, start + length));
    const ends = members.map(extremes);
    const asked = catalogue.integerGrids[gridName];
    const isSigned = ends.some(({ minimum }) => isBelow(minimum, ZERO));
    const picked = profile.signByNumbers && symmetric ? `${isSigned ? "" : "u"}int${asked.bits}` : gridName;
    const how = { profile, symmetric, grid: catalogue.integerGrids[picked] };
    const blocks = starts.map((start, i) => {
      const block = blockOf(ends[i], how);
      return { ...block, start, members: members[i], elements: members[i].map((x) => quantizeElement(x, block, how)) };
    });
    return { ...how, blocks, elements: blocks.flatMap((block) => block.elements) };
  }

  return { quantizeRow, quantizeElement, inverseOf, refusal };
})();
