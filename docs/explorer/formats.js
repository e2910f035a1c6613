"use strict";

// Encoding and decoding, by the numbers of the catalogue (FMT, ENC and DEC).
Explorer.formats = (() => {
  const { catalogue, exact } = Explorer;
  const {
    finite, infinity, nan, magnitude, powerOfTwo, isInfinite, isNan, isZero, isSmaller, isEqual,
    exponentOf, inUnitsOf,
  } = exact;
  const formats = catalogue.formats;
  const CANONICAL_NAN = 0x7FFFFFFF; // of binary32

  const isNanCode = (fmt, code) =>
    fmt.nanCodes.some(([first, last]) => first <= code && code <= last);
  const isNegativeCode = (fmt, code) => fmt.signBit > 0 && code >= fmt.signBit;

  // The number that a code stands for (FMT-001 to FMT-008).
  function value(fmt, code) {
    const negative = isNegativeCode(fmt, code);
    const unit = fmt.smallestExponent - fmt.mantissaBits;
    if (fmt.sign === "twos-complement") { // FMT-008
      return finite(negative, BigInt(negative ? fmt.codeCount - code : code), unit);
    }
    const bits = negative ? code - fmt.signBit : code;
    if (isNanCode(fmt, code)) return nanOf(fmt, negative, bits);
    if (bits === fmt.infinityCode) return infinity(negative);
    if (fmt.isPowerOfTwo) return powerOfTwo(code - fmt.bias); // FMT-007
    const field = Math.floor(bits / 2 ** fmt.mantissaBits);
    const mantissa = bits % 2 ** fmt.mantissaBits;
    if (field === 0) return finite(negative, BigInt(mantissa), unit); // FMT-002
    return finite(negative, BigInt(mantissa + 2 ** fmt.mantissaBits), unit + field - 1); // FMT-001
  }

  // A NaN with its payload where a format of kind ieee has several, at the top of 52 bits.
  function nanOf(fmt, negative, bits) {
    if (fmt.specials !== "ieee") return nan(negative && fmt.specials !== "fnuz");
    return nan(negative, BigInt(bits - fmt.infinityCode) << BigInt(52 - fmt.mantissaBits));
  }

  // The binary32 pattern of a code's number (DEC-001 and DEC-002).
  const decode = (code, fmt) => bitsOf(value(fmt, code));

  // The pattern of a binary32 number, every NaN the canonical one.
  function bitsOf(x) {
    return isNan(x) ? CANONICAL_NAN : encode(x, formats.f32, "rne", { ...catalogue.ours, overflow: "ieee" });
  }

  // A binary64 number from its pattern.
  function ofBinary64(bits) {
    const negative = bits >> 63n === 1n;
    const field = Number((bits >> 52n) & 0x7FFn);
    const mantissa = bits & ((1n << 52n) - 1n);
    if (field === 0x7FF) return mantissa === 0n ? infinity(negative) : nan(negative, mantissa);
    const hidden = field === 0 ? 0n : 1n << 52n;
    return finite(negative, hidden + mantissa, Math.max(field, 1) - 1075);
  }

  // A number from its pattern as a source: f64, or a format of the catalogue.
  const numberOf = (bits, source) =>
    (source === "f64" ? ofBinary64(BigInt(bits)) : value(formats[source], Number(bits)));

  // The default rounding of a format (ENC-003, ENC-013 and ENC-016).
  function roundingFor(fmt, rounding, special) {
    if (rounding) return withoutTies(fmt, rounding);
    return fmt.isPowerOfTwo ? special.powerOfTwoRounding : "rne";
  }

  // In powers of two no neighbour is even, and rne is rna (ENC-013).
  const withoutTies = (fmt, rounding) => (fmt.isPowerOfTwo && rounding === "rne" ? "rna" : rounding);

  const admits = (fmt, rounding) =>
    !fmt.isPowerOfTwo || catalogue.powerOfTwoRoundings.includes(withoutTies(fmt, rounding));

  // Where a finite number lies: |x| = (below + rest / whole) * 2^unit (ENC-002, ENC-013).
  function placeOf(x, fmt) {
    let exponent = isZero(x) ? fmt.smallestExponent : exponentOf(x);
    if (!fmt.isPowerOfTwo) exponent = Math.max(exponent, fmt.smallestExponent);
    const unit = exponent - fmt.mantissaBits;
    return { exponent, unit, ...inUnitsOf(unit, x) };
  }

  // Stochastic rounding with the caller's bits: F + r >= 2^n (ENC-005).
  function goesUpAtRandom({ rest, whole }, { word, count }) {
    const fraction = (rest << BigInt(count)) / whole;
    return fraction + BigInt(word) >= 1n << BigInt(count);
  }

  // Whether a number becomes the code above the one below it (ENC-003, ENC-005, ENC-013, ENC-016).
  function roundsUp(place, negative, fmt, rounding, special, random) {
    if (rounding === "sr") return goesUpAtRandom(place, random);
    const isLowest = fmt.isPowerOfTwo && place.exponent === fmt.smallestExponent;
    const isTakenUp = isLowest && special.aboveSmallestGoesUp && rounding === "rna";
    return exact.goesUp(isTakenUp ? "rtp" : rounding, place, negative);
  }

  // The code of `below` units (ENC-004); in a format of powers of two there is one unit.
  const codeOfPlace = (place, fmt) =>
    (place.exponent - fmt.smallestExponent) * 2 ** fmt.mantissaBits
    + (fmt.isPowerOfTwo ? 0 : Number(place.below));

  const isNegative = (x, fmt) => x.negative && fmt.sign !== "none"; // ENC-012

  // The code of a number. `random` has the word and the count of bits for sr.
  function encode(x, fmt, rounding, special = catalogue.ours, random = null) {
    const unrounded = codeWithoutRounding(x, fmt, special);
    if (unrounded !== null) return unrounded;
    const negative = isNegative(x, fmt);
    const place = placeOf(x, fmt);
    const code = codeOfPlace(place, fmt) + (roundsUp(place, negative, fmt, rounding, special, random) ? 1 : 0);
    if (code > fmt.largestCode) return overflowCode(negative, fmt, rounding, special);
    return withSign(code, negative, fmt);
  }

  // The code of an input that no rounding has a say in, or null.
  function codeWithoutRounding(x, fmt, special) {
    if (isNan(x)) return nanCode(x, fmt, special);
    if (fmt.isPowerOfTwo) return codeOutsidePowers(x, fmt, special);
    return isInfinite(x) ? infiniteInput(isNegative(x, fmt), fmt, special) : null;
  }

  // What a format of powers of two makes of the numbers that it is not for (ENC-014, ENC-016).
  function codeOutsidePowers(x, fmt, special) {
    if (isZero(x) && special.zeroCode !== null) return special.zeroCode;
    if (!isZero(x) && x.negative && special.negativeCode !== null) return special.negativeCode;
    if (isInfinite(x)) return infiniteInput(false, fmt, special);
    return isSmaller(powerOfTwo(fmt.smallestExponent), x) ? null : 0;
  }

  // The sign of x on the code of a magnitude (ENC-011, ENC-015).
  function withSign(code, negative, fmt) {
    if (!negative || (code === 0 && fmt.specials === "fnuz")) return code;
    if (fmt.sign === "twos-complement") return code === 0 ? 0 : fmt.codeCount - code;
    return code >= fmt.signBit ? code : code + fmt.signBit;
  }

  const staysFinite = (rounding, negative) =>
    rounding === "rtz" || rounding === "rto" || rounding === (negative ? "rtp" : "rtn");

  // A finite number that rounds above the largest (ENC-006, ENC-007).
  function overflowCode(negative, fmt, rounding, special) {
    if (staysFinite(rounding, negative)) return withSign(fmt.largestCode, negative, fmt);
    return infiniteInput(negative, fmt, special);
  }

  // An infinity (ENC-008).
  function infiniteInput(negative, fmt, special) {
    const code = special.overflow === "ieee" ? fmt.infinityCode ?? fmt.canonicalNanCode : null;
    return withSign(code ?? fmt.largestCode, negative, fmt);
  }

  // A NaN (ENC-009, ENC-010, ENC-016).
  function nanCode(x, fmt, special) {
    if (Array.isArray(special.nan)) return special.nan[isNegative(x, fmt) ? 1 : 0];
    if (fmt.sign === "twos-complement") return 0;
    const code = fmt.canonicalNanCode ?? fmt.largestCode;
    return withSign(code, isNegative(x, fmt) && special.nan === "signed", fmt);
  }

  const largest = (fmt) => value(fmt, fmt.largestCode);
  const isIn = (x, fmt) => isEqual(magnitude(x), magnitude(value(fmt, encode(x, fmt, "rtz"))));

  return {
    formats, value, decode, bitsOf, ofBinary64, numberOf, roundingFor, admits, placeOf, roundsUp,
    codeOfPlace, encode, codeWithoutRounding, withSign, isNegative, isNegativeCode, isNanCode, largest, isIn,
  };
})();
