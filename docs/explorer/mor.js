"use strict";

// Error sums, acceptance and policies: which representation a unit takes (ERR and MOR).
Explorer.mor = (() => {
  const { catalogue, exact, formats, scaling, nvfp4 } = Explorer;
  const {
    powerOfTwo, ZERO, ONE, isFinite, isNan, isZero, magnitude, difference, quotient, total, minimum,
    isSmaller, exactProduct, exactQuotient,
  } = exact;
  const BITS_OF_ONE = 0x3F800000;
  const LEAST_LOST = formats.value(formats.formats.f32, 0x7F7F8000); // bf16 rounds it to infinity

  // The error of a finite x that is not zero (ERR-001).
  function errorTerm(x, y) {
    const d = magnitude(difference(x, y));
    const r = isNan(d) ? ONE : minimum(quotient(d, magnitude(x)), ONE);
    return { d, r, u: formats.bitsOf(total(ONE, r)) - BITS_OF_ONE };
  }

  const counts = (x) => isFinite(x) && !isZero(x); // ERR-002
  const isLost = (x, y) => !isFinite(x) || !isSmaller(y, LEAST_LOST); // ERR-003

  // The errors of a unit's numbers and of what became of them (ERR-002 to ERR-004).
  function errorSum(numbers, elements) {
    const terms = numbers.map((x, i) => (counts(x) ? errorTerm(x, elements[i].y) : null));
    return {
      terms,
      sum: terms.reduce((sum, term) => sum + BigInt(term?.u ?? 0), 0n),
      nonzero: BigInt(numbers.filter(counts).length),
      nonfinite: BigInt(numbers.filter((x, i) => isLost(x, elements[i].y)).length),
    };
  }

  // The smallest magnitude among the finite numbers that are not zero, 0 if there is none (MOR-004).
  const aminOf = (numbers) => numbers.filter(counts).map(magnitude)
    .reduce((least, x) => (least && isSmaller(least, x) ? least : x), null) ?? ZERO;

  // amin * (largest / smallest normal number), which is exact.
  const rangeFrom = (amin, fmt) => exactProduct(
    amin, exactQuotient(formats.largest(fmt), powerOfTwo(fmt.smallestExponent)));

  // Whether a metric accepts a unit that loses nothing (MOR-002 to MOR-004).
  function isWithin(rung, own, errors, amax, amin) {
    switch (rung.metric) {
      case "mean_relative_error":
        return own.nonzero === 0n || own.sum < BigInt(rung.limit) * own.nonzero;
      case "not_worse_than":
        return own.sum <= errors[rung.yardstick].sum;
      case "fits_range":
        return own.nonzero === 0n || !isSmaller(rangeFrom(amin, formats.formats[rung.format]), amax);
      default:
        throw new Error(`${rung.metric} is no metric.`);
    }
  }

  // MOR-001.
  const accepts = (rung, own, errors, amax, amin) =>
    own.nonfinite === 0n && isWithin(rung, own, errors, amax, amin);

  // T = t * 2^23 to the nearest integer, ties to even, t as the decimal that is written (MOR-002).
  function limitOf(text) {
    const written = /^\s*(\d*)\.?(\d*)(?:e([+-]?\d{1,2}))?\s*$/i.exec(text);
    const digits = written ? written[1] + written[2] : "";
    const tens = written ? Number(written[3] ?? 0) - written[2].length : 0;
    const t = exact.finite(
      false, BigInt(digits || 0) * 10n ** BigInt(Math.max(tens, 0)), 0, 10n ** BigInt(Math.max(-tens, 0)));
    if (!digits || isZero(t) || isSmaller(ONE, t)) {
      throw new Error(`threshold is "${text}"; give a number above 0 and up to 1, such as 0.045.`);
    }
    return Number(exact.nearestUnits(-23, t));
  }

  const withLimit = (policy, limit) => ({
    ...policy,
    ladder: policy.ladder.map((rung) => (rung.takesThreshold && limit !== null ? { ...rung, limit } : rung)),
  });

  // A row under one representation: nvfp4, or a scaled format.
  function represented(numbers, name, kind) {
    return name === "nvfp4"
      ? nvfp4.quantizeRow(numbers, "te")
      : scaling.quantizeRow(numbers, formats.formats[name], kind, numbers.length);
  }

  // The decision for a row that is a tensor of one block, and all that it comes from (MOR-005).
  function decide(numbers, policy, kind, limit = null) {
    const { ladder, tried } = withLimit(policy, limit);
    const made = Object.fromEntries(tried.map((name) => [name, represented(numbers, name, kind)]));
    const errors = Object.fromEntries(
      tried.map((name) => [name, errorSum(numbers, made[name].elements)]));
    const amax = scaling.amaxOf(numbers);
    const amin = aminOf(numbers);
    const rungs = ladder.map((rung) => {
      const own = errors[rung.representation];
      return { ...rung, own, isAccepted: accepts(rung, own, errors, amax, amin) };
    });
    const first = rungs.findIndex((rung) => rung.isAccepted);
    const choice = first < 0 ? ladder.length : first;
    const name = ladder[choice]?.representation ?? "bf16";
    const output = numbers.map((x, i) => scaling.toBf16(made[name] ? made[name].elements[i].y : x)); // MOR-006
    return { rungs, made, errors, amax, amin, choice, name, output };
  }

  return { errorTerm, errorSum, aminOf, rangeFrom, accepts, limitOf, decide, policies: catalogue.policies };
})();
