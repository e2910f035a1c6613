"use strict";

// MX: blocks along a row that share a power of two, under four rules (MXS).
Explorer.mx = (() => {
  const { exact, formats } = Explorer;
  const {
    nan, powerOfTwo, ZERO, isInfinite, isNan, isZero, magnitude, isEqual, exponentOf, inUnitsOf,
    product, quotient, maximum,
  } = exact;
  const E8M0 = formats.formats.e8m0;
  const BIAS = 127;
  const NAN_CODE = 0xFF;
  const LARGEST_CODE = 254;
  const EXPONENT_OF_INFINITY = 128;

  // The largest magnitude of a block, infinities included (MXS-002).
  const largestOf = (numbers) =>
    numbers.filter((x) => !isNan(x)).map(magnitude).reduce(maximum, ZERO);

  // The exponent of blockAmax rounded, half up, to the bits of the element (MXS-005).
  function exponentRounded(blockAmax, fmt) {
    const exponent = exponentOf(blockAmax);
    const width = fmt.mantissaBits - (fmt.sign === "twos-complement" ? 1 : 0);
    const { below, rest, whole } = inUnitsOf(exponent - width, blockAmax);
    const rounded = below + (2n * rest >= whole ? 1n : 0n);
    return rounded === 2n << BigInt(width) ? exponent + 1 : exponent;
  }

  // The scale rules: the exponent that a finite blockAmax counts as (MXS-003 to MXS-005), and none for
  // the rule that divides (MXS-006).
  const RULES = {
    floor: { id: "MXS-003", exponent: exponentOf },
    ceil: { id: "MXS-004", exponent: (blockAmax) => exponentOf(blockAmax) + (isEqual(blockAmax, powerOfTwo(exponentOf(blockAmax))) ? 0 : 1) },
    even: { id: "MXS-005", exponent: exponentRounded },
    rceil: { id: "MXS-006" },
  };

  // The e8m0 code of a block, and the steps that lead to it (MXS-002, MXS-006).
  function blockScale(numbers, fmt, rule) {
    const blockAmax = largestOf(numbers);
    const largestExponent = exponentOf(formats.largest(fmt));
    if (numbers.some(isNan)) return { blockAmax, code: NAN_CODE };
    if (isZero(blockAmax)) return { blockAmax, code: 0 };
    const { id, exponent } = RULES[rule];
    if (!exponent) {
      const ratio = quotient(blockAmax, formats.largest(fmt));
      return { blockAmax, ratio, code: formats.encode(ratio, E8M0, "rtp") };
    }
    const p = isInfinite(blockAmax) ? EXPONENT_OF_INFINITY : exponent(blockAmax, fmt);
    const code = Math.min(Math.max(p - largestExponent + BIAS, 0), LARGEST_CODE);
    return { blockAmax, p, rule: id, largestExponent, code };
  }

  // The element of a number under the scale of that code (MXS-007, MXS-008).
  function quantizeElement(x, code, fmt) {
    if (code === NAN_CODE) return { xs: nan(), code: formats.encode(nan(), fmt, "rne"), y: nan() };
    const xs = product(x, powerOfTwo(BIAS - code));
    const element = formats.encode(xs, fmt, "rne");
    return { xs, code: element, y: product(formats.value(fmt, element), powerOfTwo(code - BIAS)) };
  }

  // A row as one block.
  function quantizeRow(numbers, fmt, rule) {
    const scale = blockScale(numbers, fmt, rule);
    const elements = numbers.map((x) => quantizeElement(x, scale.code, fmt));
    return { blocks: [{ start: 0, members: numbers, blockAmax: scale.blockAmax, scale, elements }], elements };
  }

  return { blockScale, quantizeElement, quantizeRow };
})();
