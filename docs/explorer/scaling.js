"use strict";

// amax, the ideal scale, the three kinds of scales, and numbers under them (SCL, GAM and QNT).
Explorer.scaling = (() => {
  const { catalogue, exact, formats } = Explorer;
  const {
    finite, powerOfTwo, ZERO, ONE, FLT_MAX, isFinite, isZero, magnitude, exponentOf, nearestUnits,
    exactQuotient, product, quotient, minimum, maximum,
  } = exact;
  const LARGEST_EXPONENT = 127;
  const BIAS = 127;
  const HIDDEN_BIT = 1 << 23;

  // The largest magnitude among the finite numbers, 0 if there is none (SCL-001).
  const amaxOf = (numbers) => numbers.filter(isFinite).map(magnitude).reduce(maximum, ZERO);

  // q_amax / amax, rounded to 24 significant bits, the exponent unbounded (SCL-002); null for 0.
  function idealScale(fmt, amax) {
    if (isZero(amax)) return null;
    const ratio = exactQuotient(formats.largest(fmt), amax);
    const exponent = exponentOf(ratio);
    return { mantissa: Number(nearestUnits(exponent - 23, ratio)) - HIDDEN_BIT, exponent };
  }

  // (1 + mantissa / 2^23) * 2^exponent.
  const scaleValue = (mantissa, exponent) => finite(false, BigInt(HIDDEN_BIT + mantissa), exponent - 23);

  // The mantissa that the blocks of a group share (GAM-001).
  const groupMantissa = (fmt, groupAmax) => idealScale(fmt, groupAmax)?.mantissa ?? 0;

  // SCL-004.
  const fp32Scale = (ideal) =>
    ({ value: ideal ? minimum(scaleValue(ideal.mantissa, ideal.exponent), FLT_MAX) : ONE });

  // SCL-005.
  function e8m0Scale(ideal) {
    const exponent = ideal ? Math.min(ideal.exponent, LARGEST_EXPONENT) : 0;
    return { value: powerOfTwo(exponent), exponent, exponentCode: exponent + BIAS };
  }

  // GAM-002 to GAM-005.
  function gamScale(ideal, sharedMantissa) {
    const isDecremented = ideal !== null && sharedMantissa > ideal.mantissa; // GAM-003
    const before = ideal ? ideal.exponent - (isDecremented ? 1 : 0) : 0;
    const exponent = Math.min(before, LARGEST_EXPONENT); // GAM-004
    const value = scaleValue(sharedMantissa, exponent); // GAM-005
    return { value, exponent, exponentCode: exponent + BIAS, isDecremented };
  }

  // The scale of a block of that amax, and the steps that lead to it.
  function scaleOfBlock(kind, fmt, amax, groupAmax) {
    const ideal = idealScale(fmt, amax);
    const mantissa = kind === "gam" ? groupMantissa(fmt, groupAmax) : 0;
    const scales = {
      fp32: () => fp32Scale(ideal),
      e8m0: () => e8m0Scale(ideal),
      gam: () => gamScale(ideal, mantissa),
    };
    return { ideal, mantissa, ...scales[kind]() };
  }

  // A number under the scale of its block (QNT-001, QNT-002).
  function quantizeElement(x, scale, fmt) {
    const xs = product(x, scale);
    const code = formats.encode(xs, fmt, "rne");
    return { xs, code, y: quotient(formats.value(fmt, code), scale) };
  }

  // A row in blocks of `length`, one group with that amax or else its own.
  function quantizeRow(numbers, fmt, kind, length, groupAmax = amaxOf(numbers)) {
    const blocks = [];
    for (let start = 0; start < numbers.length; start += length) {
      const members = numbers.slice(start, start + length);
      const amax = amaxOf(members);
      const scale = scaleOfBlock(kind, fmt, amax, groupAmax);
      const elements = members.map((x) => quantizeElement(x, scale.value, fmt));
      blocks.push({ start, members, amax, scale, elements });
    }
    return { groupAmax, blocks, elements: blocks.flatMap((block) => block.elements) };
  }

  // The bfloat16 code of a number, as fake quantization stores it (QNT-003).
  const toBf16 = (y) =>
    formats.encode(y, formats.formats.bf16, "rne", { ...catalogue.ours, overflow: "ieee" });

  return {
    amaxOf, idealScale, scaleValue, groupMantissa, scaleOfBlock, quantizeElement, quantizeRow, toBf16,
  };
})();
