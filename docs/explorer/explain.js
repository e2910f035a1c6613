"use strict";

// Why a number becomes the code that it becomes: the neighbours, the midpoint and the rule.
Explorer.explain = (() => {
  const { exact, formats } = Explorer;
  const {
    finite, powerOfTwo, isFinite, isInfinite, isNan, isZero, isSmaller, negated, magnitude, inUnitsOf,
    exactProduct, exactQuotient, exactSum, exponentOf,
  } = exact;
  const HALF = powerOfTwo(-1);

  // How x is encoded, with all that its code follows from; what makes no sense for it is absent.
  function explain(x, fmt, rounding, special, random) {
    const code = formats.encode(x, fmt, rounding, special, random);
    const value = formats.value(fmt, code);
    const unrounded = withoutRounding(x, fmt, special);
    const result = { x, fmt, rounding, code, value, ...(isFinite(x) ? errorsOf(x, fmt, value) : {}) };
    if (unrounded) return { ...result, ...unrounded };
    const place = placeOf(x, fmt);
    const negative = formats.isNegative(x, fmt);
    const isUp = formats.roundsUp(place, negative, fmt, rounding, special, random);
    const neighbour = (units) => neighbourOf(finite(negative, units, place.unit), fmt);
    const isExact = place.rest === 0n;
    const near = neighbour(isExact && place.below > 0n && !fmt.isPowerOfTwo ? place.below - 1n : place.below);
    const far = neighbour(place.below + 1n);
    return {
      ...result, place, isUp, isExact, near, far,
      fraction: finite(false, place.rest, 0, place.whole),
      midpoint: finite(negative, 2n * place.below + 1n, place.unit - 1),
      ...outcomeOf({ x, fmt, rounding, special, random, value, place, isUp, negative }),
    };
  }

  // As the encoder has it; but the unit of integers is the same everywhere.
  function placeOf(x, fmt) {
    if (fmt.sign !== "twos-complement") return formats.placeOf(x, fmt);
    const unit = fmt.smallestExponent - fmt.mantissaBits;
    return { exponent: fmt.smallestExponent, unit, ...inUnitsOf(unit, x) };
  }

  // A number of the format's grid; without a code if it lies beyond the largest.
  function neighbourOf(value, fmt) {
    if (isSmaller(formats.largest(fmt), value)) return { value, code: null };
    return { value, code: formats.encode(value, fmt, "rtz") };
  }

  // value - x, in units and relative to x.
  function errorsOf(x, fmt, value) {
    if (!isFinite(value)) return {};
    const seen = fmt.sign === "none" ? magnitude(x) : x;
    const error = exactSum(value, negated(seen));
    const place = isZero(x) ? { unit: fmt.smallestExponent - fmt.mantissaBits } : placeOf(x, fmt);
    return {
      errorInUlp: exactProduct(error, powerOfTwo(-place.unit)),
      relativeError: isZero(x) ? null : exactQuotient(error, magnitude(x)),
    };
  }

  // What happens to an input that is not rounded, and the rule; null for one that is.
  function withoutRounding(x, fmt, special) {
    if (isNan(x)) return outcomeOfNan(x, special);
    if (x.negative && !isZero(x) && special.negativeCode !== null) {
      return { outcome: "a negative number, as the profile stores it", rule: "ENC-016" };
    }
    if (isInfinite(x)) return { outcome: "an infinite input, which is not rounded", rule: "ENC-008" };
    if (isZero(x)) return outcomeOfZero(fmt, special);
    if (fmt.isPowerOfTwo && isSmaller(x, powerOfTwo(fmt.smallestExponent))) {
      return { outcome: `the smallest value: ${fmt.name} has nothing below it, and no zero`, rule: "ENC-014" };
    }
    return null;
  }

  function outcomeOfNan(x, special) {
    if (Array.isArray(special.nan)) return { outcome: "NaN, as the profile stores it", rule: "ENC-016" };
    return { outcome: "NaN", rule: special.nan === "signed" && x.negative ? "ENC-010" : "ENC-009" };
  }

  function outcomeOfZero(fmt, special) {
    if (special.zeroCode !== null) return { outcome: "zero, as the profile stores it", rule: "ENC-016" };
    return { outcome: "zero", rule: fmt.isPowerOfTwo ? "ENC-014" : "ENC-011" };
  }

  // Which way it went, why, and the rule that says so.
  function outcomeOf({ x, fmt, rounding, special, random, value, place, isUp, negative }) {
    const isLowest = fmt.isPowerOfTwo && exponentOf(x) === fmt.smallestExponent;
    if (place.rest && isLowest && special.aboveSmallestGoesUp && rounding === "rna") {
      return { outcome: "up: the profile rounds up a magnitude above the smallest value", rule: "ENC-016" };
    }
    const rounded = finite(negative, place.below + (isUp ? 1n : 0n), place.unit);
    if (isSmaller(formats.largest(fmt), rounded)) {
      const where = isFinite(value) ? "saturates" : "leaves the finite numbers";
      return {
        outcome: `overflow: it rounds above the largest number, and ${where}`,
        rule: special.overflow === "satfinite" ? "ENC-006" : "ENC-007",
      };
    }
    if (!place.rest) return { outcome: "exact: the format has this number", rule: "ENC-002" };
    return {
      outcome: `${isUp ? "up" : "down"} in magnitude: ${reasonOf(place, rounding, random)}`,
      rule: fmt.isPowerOfTwo ? "ENC-013" : rounding === "sr" ? "ENC-005" : "ENC-003",
    };
  }

  function reasonOf(place, rounding, random) {
    if (rounding === "sr") {
      const first = (place.rest << BigInt(random.count)) / place.whole;
      const isReached = first + BigInt(random.word) >= 1n << BigInt(random.count);
      return `F + r = ${first} + ${random.word} ${isReached ? "≥" : "<"} 2^${random.count}`;
    }
    const directions = {
      rtz: "rtz goes toward zero", rtp: "rtp goes toward +∞", rtn: "rtn goes toward \u2212∞",
      rto: "rto goes to the odd code",
    };
    if (directions[rounding]) return directions[rounding];
    const fraction = finite(false, place.rest, 0, place.whole);
    if (isSmaller(fraction, HALF)) return "f is below one half";
    if (isSmaller(HALF, fraction)) return "f is above one half";
    return `f is a tie, and ${rounding} goes ${rounding === "rne" ? "to the even code" : "away from zero"}`;
  }

  return { explain };
})();
