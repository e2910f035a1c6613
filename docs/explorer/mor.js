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

  // The errors of a unit's numbers, each against its element (ERR-002 to ERR-004).
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

  // The metrics: what each compares for a unit that loses nothing, as `left` and `right`; a side of
  // counts is a BigInt. `isWithin` is the decision, `asks` says it in words, and `means` are the
  // error sums whose means matter (MOR-002 to MOR-004).
  const METRICS = {
    mean_relative_error(rung, { own }) {
      const right = BigInt(rung.limit) * own.nonzero;
      return {
        rule: "MOR-002", asks: "sum < T · nonzero, or nonzero = 0", limit: rung.limit, means: [own],
        left: own.sum, right, signs: ["<", "≥"],
        isOfNothing: own.nonzero === 0n, isWithin: own.nonzero === 0n || own.sum < right,
      };
    },
    not_worse_than(rung, { own, errors }) {
      const yardstick = errors[rung.yardstick];
      return {
        rule: "MOR-003", asks: `sum ≤ sum_${rung.yardstick}`, means: [own, yardstick],
        left: own.sum, right: yardstick.sum, signs: ["≤", ">"], isWithin: own.sum <= yardstick.sum,
      };
    },
    fits_range(rung, { own, amax, amin }) {
      const right = rangeFrom(amin, formats.formats[rung.format]);
      return {
        rule: "MOR-004", asks: `amax ≤ amin · largest / smallest normal of ${rung.format}`, means: [],
        left: amax, right, signs: ["≤", ">"], isWithin: own.nonzero === 0n || !isSmaller(right, amax),
      };
    },
  };
  const compared = (rung, unit) => METRICS[rung.metric](rung, unit);

  // MOR-001.
  const accepts = (rung, own, errors, amax, amin) =>
    own.nonfinite === 0n && compared(rung, { own, errors, amax, amin }).isWithin;

  // A threshold as it was written, a decimal or a fraction such as 1/22: its digits over a power of
  // ten, or over a denominator. Underscores may part digits, as in Python.
  function written(text) {
    const fraction = /^\s*\+?(\d+(?:_\d+)*)\/(\d+(?:_\d+)*)\s*$/.exec(text);
    if (fraction) {
      const [digits, over] = fraction.slice(1).map((part) => BigInt(part.replaceAll("_", "")));
      return { digits, over, tens: 0 };
    }
    const decimal = /^\s*\+?(\d*)(?:\.(\d*))?(?:e([+-]?\d+))?\s*$/i.exec(text.replaceAll("_", ""));
    const [whole, part, exponent] = decimal ? decimal.slice(1).map((each) => each ?? "") : ["", "", ""];
    return { digits: BigInt(whole + part), over: 1n, tens: Number(exponent) - part.length };
  }

  // t, and of a decimal below 10^-30, whose digits could fill the memory, 10^-30: T is 0 for both.
  function thresholdOf(text) {
    const { digits, over, tens } = written(text);
    const leading = String(digits).length - 1 + tens;
    if (digits === 0n || over === 0n || (over === 1n && leading > 0)) return null;
    if (over === 1n && leading < -30) return exact.finite(false, 1n, 0, 10n ** 30n);
    const ten = (power) => 10n ** BigInt(Math.max(power, 0));
    const t = exact.finite(false, digits * ten(tens), 0, over * ten(-tens));
    return isSmaller(ONE, t) ? null : t;
  }

  // T = t * 2^23 to the nearest integer, ties to even, t as it is written (MOR-002).
  function limitOf(text) {
    const t = thresholdOf(text);
    if (t === null) {
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

  return { errorTerm, errorSum, aminOf, compared, accepts, limitOf, decide, policies: catalogue.policies };
})();
