"use strict";

// Shared exponents: blocks of 16 with one exponent, and pairs with a shift (SHX).
Explorer.shared = (() => {
  const { catalogue, exact, formats } = Explorer;
  const { finite, nan, ZERO, isFinite, isInfinite, isNan, isZero, nearestUnits, isBelow } = exact;
  const BLOCK = 16;
  const PAIR = 2;
  const BIAS = 127;
  const NAN_BLOCK = 255;
  const LARGEST_EXPONENT = 254;

  // The exponent field of a binary32 number (SHX-002).
  const fieldOf = (x) => (formats.bitsOf(x) >>> 23) & 0xFF;
  const unitOf = (exponent, tau, kind) => exponent - BIAS - tau + 1 - kind.magnitudeBits;

  // |x| in units of its pair, 0 if x is subnormal (SHX-005).
  const nearest = (x, exponent, tau, kind) =>
    (fieldOf(x) === 0 ? 0 : Number(nearestUnits(unitOf(exponent, tau, kind), x)));

  // The exponent of a block (SHX-002, SHX-004).
  function exponentOfBlock(members, kind, profile) {
    const fields = members.map(fieldOf);
    if (profile.nanBlocks && fields.includes(NAN_BLOCK)) return NAN_BLOCK;
    const exponent = Math.max(0, ...fields.filter((field) => field !== NAN_BLOCK));
    const carries = (x) => isFinite(x) && isBelow(ZERO, x) && nearest(x, exponent, 0, kind) === 2 ** kind.magnitudeBits;
    return exponent + (kind.carries && exponent < LARGEST_EXPONENT && members.some(carries) ? 1 : 0);
  }

  // The shift of a pair (SHX-003).
  const shiftOf = (exponent, pair, kind) => (!kind.shifts || exponent === NAN_BLOCK ? 0
    : Math.min(exponent - Math.max(...pair.map((x) => fieldOf(x) % NAN_BLOCK)), 1));

  // SHX-005.
  function magnitudeOf(x, exponent, tau, kind) {
    if (isNan(x) || exponent === NAN_BLOCK) return 0;
    const most = 2 ** kind.magnitudeBits - 1;
    if (isInfinite(x)) return most;
    const isWider = kind.carries && isBelow(x, ZERO) && exponent < LARGEST_EXPONENT;
    return Math.min(nearest(x, exponent, tau, kind), isWider ? most + 1 : most);
  }

  // SHX-005.
  const signOf = (x, exponent, profile) => (isNan(x) || exponent === NAN_BLOCK
    || (fieldOf(x) === 0 && !profile.keepsSigns) ? 0 : Number(x.negative));

  // The bits of a sign and a magnitude (SHX-007).
  const codeOf = (sign, size, kind) => (kind.carries
    ? (sign ? -size : size) & (2 ** kind.codeBits - 1) : sign << kind.magnitudeBits | size);

  // A number under the exponent of its pair (SHX-005, SHX-006).
  function quantizeElement(x, exponent, tau, kind, profile) {
    const sign = signOf(x, exponent, profile);
    const size = magnitudeOf(x, exponent, tau, kind);
    const value = exact.rn32(finite(sign === 1, BigInt(size), unitOf(exponent, tau, kind)));
    const y = exponent === NAN_BLOCK ? nan() : isFinite(x) ? value : x;
    return { tau, sign, magnitude: size, code: codeOf(sign, size, kind), y };
  }

  // A row in blocks of sixteen (SHX-001).
  function quantizeRow(numbers, kindName, profileName) {
    const kind = catalogue.sharedKinds[kindName];
    const profile = catalogue.sharedProfiles[profileName];
    const blocks = [];
    for (let start = 0; start < numbers.length; start += BLOCK) {
      const members = numbers.slice(start, start + BLOCK);
      const exponent = exponentOfBlock(members, kind, profile);
      const pairs = Array.from({ length: Math.ceil(members.length / PAIR) }, (_, i) => members.slice(PAIR * i, PAIR * i + PAIR));
      const tau = pairs.map((pair) => shiftOf(exponent, pair, kind));
      const elements = members.map((x, i) => quantizeElement(x, exponent, tau[Math.floor(i / PAIR)], kind, profile));
      blocks.push({ start, members, exponent, tau, elements });
    }
    return { kind, profile, blocks, elements: blocks.flatMap((block) => block.elements) };
  }

  return { quantizeRow };
})();
