"use strict";

// MoFQ: the candidate of a unit that has the least squared error, which is an integer (MFQ).
Explorer.mixed = (() => {
  const { catalogue, exact, formats, scaling } = Explorer;
  const { isFinite, isZero, magnitude, exponentOf, nearestUnits, difference } = exact;
  const FRACTION_BITS = 20;
  const LARGEST_ERROR = 1n << 22n;
  const formatOf = (name) => catalogue.integerFormats[name] ?? formats.formats[name];

  // The error of a number, in units of its unit's binade (MFQ-002).
  function errorInUnits(x, y, amax) {
    if (!isFinite(x) || isZero(amax)) return 0n;
    const d = magnitude(difference(x, y));
    if (!isFinite(d)) return LARGEST_ERROR;
    const u = isZero(d) ? 0n : nearestUnits(exponentOf(amax) - FRACTION_BITS, d);
    return u < LARGEST_ERROR ? u : LARGEST_ERROR;
  }

  // The squared error of a unit under each candidate, and the first of the least (MFQ-003, MFQ-004).
  function unitOf(numbers, ys) {
    const amax = scaling.amaxOf(numbers);
    const errors = ys.map((y) => numbers.map((x, i) => errorInUnits(x, y[i], amax)));
    const squares = errors.map((terms) => terms.reduce((sum, u) => sum + u * u, 0n));
    const choice = squares.reduce((best, each, i) => (each < squares[best] ? i : best), 0);
    return { amax, errors, squares, choice };
  }

  // A row in units of `length` (MFQ-001, MFQ-006).
  function quantizeRow(numbers, mixtureName, length) {
    const { candidates } = catalogue.mixtures[mixtureName];
    const made = candidates.map((name) => scaling.quantizeRow(numbers, formatOf(name), "fp32", length));
    const blocks = made[0].blocks.map(({ start, members }, k) => {
      const tried = made.map((each) => each.blocks[k]);
      const unit = unitOf(members, tried.map((block) => block.elements.map((e) => e.y)));
      const name = candidates[unit.choice];
      const elements = tried[unit.choice].elements.map((e) => ({ ...e, fmt: formatOf(name) }));
      return { ...unit, start, members, tried, name, elements };
    });
    return { candidates, made, blocks, elements: blocks.flatMap((block) => block.elements) };
  }

  return { formatOf, unitOf, quantizeRow };
})();
