"use strict";

// Levels of ParetoQ: a row with a step size alpha, and few levels (LVL).
Explorer.levels = (() => {
  const { catalogue, exact, formats, scaling } = Explorer;
  const {
    finite, infinity, nan, whole, ZERO, isFinite, isInfinite, isNan, isZero, magnitude, negated, rn32, rint, isBelow,
    exactQuotient, exactSum, product, quotient, total, difference, maximum,
  } = exact;
  const BF16 = formats.formats.bf16;

  // A number of a few bits, such as -0.75.
  const small = (number) => finite(number < 0, BigInt(Math.abs(4 * number)), -2);

  // A binary32 number as the arithmetic has it (LVL-001).
  const rounded = (x, arithmetic) => (arithmetic === "f32" || isNan(x) ? x : formats.value(BF16, scaling.toBf16(x)));
  const limit = (name, arithmetic) => rounded(formats.numberOf(catalogue.levels[name], "f32"), arithmetic);

  // alpha of a row for which none is given (LVL-002).
  function firstAlpha(row, kind, arithmetic) {
    const sizes = row.map(magnitude);
    if (sizes.some(isNan)) return nan();
    if (kind.divisor) return rounded(quotient(sizes.reduce(maximum), whole(kind.divisor)), arithmetic);
    if (sizes.some(isInfinite)) return infinity();
    return rounded(rn32(exactQuotient(sizes.reduce(exactSum), whole(row.length))), arithmetic);
  }

  // alpha, or the smallest one if alpha is not above it (LVL-003).
  function lowerLimit(alpha, arithmetic) {
    const smallest = limit("smallestAlpha", arithmetic);
    return isBelow(smallest, alpha) ? alpha : smallest;
  }

  // The limits of a ratio (LVL-004 to LVL-006).
  function clip(kind, arithmetic) {
    if (["integers", "signs"].includes(kind.grid)) return [small(kind.lowest), small(kind.highest)];
    const end = limit("clip", arithmetic);
    return [negated(end), end];
  }

  // LVL-004 to LVL-006.
  function levelOf(w, clipped, kind, arithmetic) {
    if (kind.grid === "signs") return isNan(w) || isZero(w) ? ZERO : whole(isBelow(w, ZERO) ? -1 : 1);
    if (kind.grid === "integers") return rint(clipped);
    const wide = rounded(product(clipped, small(kind.steps)), arithmetic);
    const steps = rint(rounded(difference(wide, small(kind.shift)), arithmetic));
    return rounded(quotient(rounded(total(steps, small(kind.shift)), arithmetic), small(kind.steps)), arithmetic);
  }

  // The factor of a weight in the gradient of alpha (LVL-007).
  function termOf(ratio, level, kind, arithmetic) {
    if (kind.grid === "signs") return level;
    if (!isFinite(ratio)) return nan();
    const [lowest, highest] = clip(kind, arithmetic);
    if (isBelow(ratio, lowest)) return small(kind.lowest);
    return isBelow(highest, ratio) ? small(kind.highest) : rounded(difference(level, ratio), arithmetic);
  }

  // The code of a level (LVL-008).
  function codeOf(level, kind) {
    const toNumber = (x) => (isNan(x) ? 0 : Number(exact.nearestUnits(-2, x)) / 4 * (x.negative ? -1 : 1));
    if (kind.grid === "quarters") return isNan(level) ? 2 : Math.trunc(2 * toNumber(level) + 1.5);
    const sign = isNan(level) || isZero(level) ? 0 : level.negative ? -1 : 1;
    if (kind.grid !== "integers") return sign + 1;
    return toNumber(level) & (2 ** kind.bits - 1);
  }

  // A weight (LVL-004 to LVL-008).
  function quantizeElement(w, alpha, kind, arithmetic) {
    const ratio = rounded(quotient(w, alpha), arithmetic);
    const [lowest, highest] = clip(kind, arithmetic);
    const clipped = isBelow(ratio, lowest) ? lowest : isBelow(highest, ratio) ? highest : ratio;
    const level = levelOf(w, clipped, kind, arithmetic);
    return {
      ratio, clipped, level, code: codeOf(level, kind), y: rounded(product(level, alpha), arithmetic),
      term: termOf(ratio, level, kind, arithmetic),
      inside: Number(!isBelow(ratio, lowest) && !isBelow(highest, ratio)),
    };
  }

  // A row with that alpha, or else its own (LVL-001).
  function quantizeRow(numbers, kindName, arithmetic, given) {
    const kind = catalogue.levelKinds[kindName];
    const row = numbers.map((x) => rounded(x, arithmetic));
    const first = given === undefined ? firstAlpha(row, kind, arithmetic) : rounded(given, arithmetic);
    const alpha = lowerLimit(first, arithmetic);
    const elements = row.map((w) => quantizeElement(w, alpha, kind, arithmetic));
    return { kind, first, alpha, blocks: [{ start: 0, members: row, elements }], elements };
  }

  return { quantizeRow };
})();
