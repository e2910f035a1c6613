"use strict";

// Exact numbers, and binary32 arithmetic: every operation exactly, then rounded once (RN32 in the
// specification). A finite number has a sign, zero too, and the magnitude
// numerator / denominator * 2^exponent, with whole numbers of any size. A NaN has the sign and the
// 52 bits of payload of its pattern.
Explorer.exact = (() => {
  const QUIET = 1n << 51n;
  const finite = (negative, numerator, exponent = 0, denominator = 1n) =>
    ({ kind: "finite", negative, numerator, denominator, exponent });
  const infinity = (negative = false) => ({ kind: "infinite", negative });
  const nan = (negative = false, payload = QUIET) => ({ kind: "nan", negative, payload });
  const powerOfTwo = (exponent) => finite(false, 1n, exponent);
  const whole = (number) => finite(number < 0, BigInt(Math.abs(number)));

  const ZERO = finite(false, 0n);
  const ONE = finite(false, 1n);
  const FLT_MAX = finite(false, (1n << 24n) - 1n, 104);
  const SMALLEST_NORMAL_EXPONENT = -126;
  const LARGEST_EXPONENT = 127;

  const isFinite = (x) => x.kind === "finite";
  const isInfinite = (x) => x.kind === "infinite";
  const isNan = (x) => x.kind === "nan";
  const isZero = (x) => isFinite(x) && x.numerator === 0n;
  const negated = (x) => ({ ...x, negative: !x.negative });
  const magnitude = (x) => ({ ...x, negative: false });

  function bitLength(n) {
    const digits = n.toString(16);
    return 4 * (digits.length - 1) + 32 - Math.clz32(parseInt(digits[0], 16));
  }

  // The exponent e with 2^e <= |x| < 2^(e + 1); x is finite and not zero.
  function exponentOf(x) {
    const e = bitLength(x.numerator) - bitLength(x.denominator);
    const isReached = x.numerator << BigInt(Math.max(-e, 0)) >= x.denominator << BigInt(Math.max(e, 0));
    return x.exponent + (isReached ? e : e - 1);
  }

  // |x| as below + rest / whole units of 2^unit, with rest < whole.
  function inUnitsOf(unit, x) {
    const shift = x.exponent - unit;
    const whole = x.denominator << BigInt(Math.max(-shift, 0));
    const numerator = x.numerator << BigInt(Math.max(shift, 0));
    return { below: numerator / whole, rest: numerator % whole, whole };
  }

  // Whether below + rest / whole becomes below + 1 (ENC-003).
  function goesUp(rounding, { below, rest, whole }, negative) {
    const isOdd = (below & 1n) === 1n;
    switch (rounding) {
      case "rne": return 2n * rest > whole || (2n * rest === whole && isOdd);
      case "rna": return 2n * rest >= whole;
      case "rtz": return false;
      case "rtp": return rest > 0n && !negative;
      case "rtn": return rest > 0n && negative;
      case "rto": return rest > 0n && !isOdd;
      default: throw new Error(`${rounding} is not a rounding without random bits.`);
    }
  }

  // |x| to the nearest number of units of 2^unit, an even number of them in a tie.
  function nearestUnits(unit, x) {
    const place = inUnitsOf(unit, x);
    return place.below + (goesUp("rne", place) ? 1n : 0n);
  }

  function rn32(x) {
    if (!isFinite(x) || isZero(x)) return x;
    const unit = Math.max(exponentOf(x), SMALLEST_NORMAL_EXPONENT) - 23;
    const nearest = finite(x.negative, nearestUnits(unit, x), unit);
    const isAbove = !isZero(nearest) && exponentOf(nearest) > LARGEST_EXPONENT;
    return isAbove ? infinity(x.negative) : nearest;
  }

  // The exact product, quotient or sum of two finite numbers, the divisor not zero.
  const exactProduct = (a, b) => finite(
    a.negative !== b.negative, a.numerator * b.numerator,
    a.exponent + b.exponent, a.denominator * b.denominator);
  const exactQuotient = (a, b) => finite(
    a.negative !== b.negative, a.numerator * b.denominator,
    a.exponent - b.exponent, a.denominator * b.numerator);

  function exactSum(a, b) {
    const exponent = Math.min(a.exponent, b.exponent);
    const signed = (x, other) => {
      const count = (x.numerator << BigInt(x.exponent - exponent)) * other.denominator;
      return x.negative ? -count : count;
    };
    const count = signed(a, b) + signed(b, a);
    const isBothNegative = a.negative && b.negative;
    const negative = count < 0n || (count === 0n && isBothNegative);
    return finite(negative, count < 0n ? -count : count, exponent, a.denominator * b.denominator);
  }

  // RN32(a * b).
  function product(a, b) {
    if (isNan(a) || isNan(b)) return nan();
    if (isFinite(a) && isFinite(b)) return rn32(exactProduct(a, b));
    return isZero(a) || isZero(b) ? nan() : infinity(a.negative !== b.negative);
  }

  // RN32(a / b).
  function quotient(a, b) {
    const negative = a.negative !== b.negative;
    if (isNan(a) || isNan(b)) return nan();
    if (isInfinite(a)) return isInfinite(b) ? nan() : infinity(negative);
    if (isInfinite(b)) return finite(negative, 0n);
    if (isZero(b)) return isZero(a) ? nan() : infinity(negative);
    return rn32(exactQuotient(a, b));
  }

  // RN32(a + b); the sum of opposite numbers is +0.
  function total(a, b) {
    if (isNan(a) || isNan(b)) return nan();
    if (isFinite(a) && isFinite(b)) return rn32(exactSum(a, b));
    if (isFinite(b)) return a;
    if (isFinite(a)) return b;
    return a.negative === b.negative ? a : nan();
  }

  // RN32(a - b).
  const difference = (a, b) => total(a, negated(b));

  // Whether |a| < |b|; one that is NaN is neither less nor greater.
  function isSmaller(a, b) {
    if (isNan(a) || isNan(b) || isInfinite(a)) return false;
    if (isInfinite(b)) return true;
    const exponent = Math.min(a.exponent, b.exponent);
    return a.numerator * b.denominator << BigInt(a.exponent - exponent)
      < b.numerator * a.denominator << BigInt(b.exponent - exponent);
  }

  // Of numbers that are not negative: the smaller, the larger, and whether they are equal.
  const minimum = (a, b) => (isSmaller(b, a) ? b : a);
  const maximum = (a, b) => (isSmaller(a, b) ? b : a);
  const isEqual = (a, b) => !isNan(a) && !isNan(b) && !isSmaller(a, b) && !isSmaller(b, a);

  // Whether a < b, with their signs; of NaN neither.
  function isBelow(a, b) {
    const isLeft = a.negative && !isZero(a);
    if (isNan(a) || isNan(b) || isLeft !== (b.negative && !isZero(b))) return isLeft && !isNan(a) && !isNan(b);
    return isLeft ? isSmaller(b, a) : isSmaller(a, b);
  }

  // The nearest integer, ties to even; infinities, NaN and the sign of a zero stay.
  const rint = (x) => (isFinite(x) ? finite(x.negative, nearestUnits(0, x)) : x);

  return {
    isBelow, rint, finite, infinity, nan, powerOfTwo, whole, ZERO, ONE, FLT_MAX, isFinite, isInfinite, isNan, isZero,
    negated, magnitude, exponentOf, inUnitsOf, goesUp, nearestUnits, rn32, exactProduct,
    exactQuotient, exactSum, product, quotient, total, difference, isSmaller, minimum, maximum, isEqual,
  };
})();
