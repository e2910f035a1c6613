"use strict";

// NVFP4: sixteen e2m1 elements with an e4m3 scale, a binary32 scale for all, and the profiles (NVF).
// Every product, quotient, sum and difference is an RN32 of its own.
Explorer.nvfp4 = (() => {
  const { catalogue, exact, formats } = Explorer;
  const {
    finite, powerOfTwo, whole, ZERO, ONE, FLT_MAX, isFinite, isNan, isZero, magnitude, product, quotient,
    total, difference, isSmaller, minimum, maximum,
  } = exact;
  const E2M1 = formats.formats.e2m1;
  const E4M3 = formats.formats.e4m3;
  const TILE = 16;
  const SIX = whole(6);
  const SIXTH = quotient(ONE, SIX);
  const ONE_AND_A_HALF = finite(false, 3n, -1);

  // The largest magnitude, infinities included and NaN ignored (NVF-002).
  const largestOf = (numbers) =>
    numbers.filter((x) => !isNan(x)).map(magnitude).reduce(maximum, ZERO);

  // The stored scale of a tile (NVF-002).
  const scaleCode = (s) => formats.encode(s, E4M3, "rne");
  const scaleValue = (code) => formats.value(E4M3, code);
  const clamped = (s, lowest, highest) => (isNan(s) ? s : minimum(maximum(s, lowest), highest));

  // NVF-003.
  function globalScaleOfTe(range, amax) {
    const ratio = minimum(quotient(range, amax), FLT_MAX);
    const encode = isZero(amax) || isZero(ratio) ? ONE : ratio;
    return { encode, decode: quotient(ONE, encode) };
  }

  // The global scale of NVF-007 and NVF-008.
  function globalDecodeScale(range, amax) {
    const g = quotient(amax, range);
    return { encode: quotient(ONE, g), decode: g };
  }

  // The global scale of NVF-009.
  function globalEncodeScale(range, amax) {
    const g = product(quotient(ONE, maximum(amax, powerOfTwo(-126))), range);
    const encode = isFinite(g) ? g : ONE;
    return { encode, decode: quotient(ONE, encode) };
  }

  function globalScale(profile, amax) {
    const of = { S_enc: globalScaleOfTe, g: globalDecodeScale, G: globalEncodeScale };
    return of[profile.globalScale](whole(profile.range), amax);
  }

  // The scale of a tile from the number that its code is made of, as Transformer Engine has it.
  function teScale(s, scale) {
    const code = scaleCode(s);
    const decode = product(scaleValue(code), scale.decode);
    return { s, code, encode: minimum(quotient(ONE, decode), FLT_MAX), decode };
  }

  // NVF-007.
  function torchaoScale(blockAmax, scale) {
    const s = clamped(quotient(quotient(blockAmax, SIX), scale.decode), powerOfTwo(-6), whole(448));
    const code = scaleCode(s);
    const v = scaleValue(code);
    return { s, code, encode: quotient(scale.encode, v), decode: product(scale.decode, v) };
  }

  // NVF-008.
  function modeloptScale(blockAmax, scale) {
    const t = quotient(blockAmax, product(SIX, scale.decode));
    const s = clamped(isZero(t) ? ONE : t, powerOfTwo(-9), whole(448));
    const code = scaleCode(s);
    return { s, code, encode: null, decode: product(scaleValue(code), scale.decode) };
  }

  // NVF-009.
  function compressedTensorsScale(blockAmax, scale) {
    const s = product(scale.encode, quotient(blockAmax, SIX));
    const code = scaleCode(s) || scaleCode(powerOfTwo(-3));
    return { s, code, encode: null, decode: quotient(scaleValue(code), scale.encode) };
  }

  // The error of a row under a candidate, in binary32, left to right (NVF-006).
  function candidateError(profile, row, candidate, amax) {
    const w = scaleValue(candidate.code);
    return row.reduce((sum, x) => {
      const v = formats.value(E2M1, quantizeElement(x, candidate, profile).code);
      const stored = quotient(product(product(v, w), amax), whole(profile.range));
      const e = difference(stored, x);
      return total(sum, profile.error === "mae" ? magnitude(e) : product(e, e));
    }, ZERO);
  }

  // Both candidates, and the one that errs less (NVF-006).
  function fourOverSix(profile, row, blockAmax, amax, scale) {
    const base = product(quotient(blockAmax, SIX), scale.encode);
    const candidate = (s) => {
      const made = teScale(s, scale);
      const codes = row.map((x) => quantizeElement(x, made, profile).code);
      return { ...made, codes, error: candidateError(profile, row, made, amax) };
    };
    const six = candidate(base);
    const four = candidate(product(ONE_AND_A_HALF, base));
    return { ...(isSmaller(four.error, six.error) ? four : six), candidates: { six, four } };
  }

  // The scale of a tile of one row, of a tensor (or row) of that amax (NVF-004 to NVF-009).
  function tileScale(profile, row, amax, scale) {
    const blockAmax = largestOf(row);
    if (profile.error) return fourOverSix(profile, row, blockAmax, amax, scale);
    switch (profile.rule) {
      case "te": return teScale(product(blockAmax, product(scale.encode, SIXTH)), scale);
      case "te_2_13": return teScale(product(quotient(blockAmax, SIX), scale.encode), scale);
      case "torchao": return torchaoScale(blockAmax, scale);
      case "modelopt": return modeloptScale(blockAmax, scale);
      case "compressed_tensors": return compressedTensorsScale(blockAmax, scale);
      default: throw new Error(`scale rule ${profile.rule} is not in the explorer`);
    }
  }

  // The element of a number (NVF-010).
  function quantizeElement(x, scale, profile) {
    const xs = scale.encode === null ? quotient(x, scale.decode) : product(x, scale.encode);
    const code = isZero(xs) && profile.dropsSignOfZero ? 0 : formats.encode(xs, E2M1, "rne");
    return { xs, code, y: product(formats.value(E2M1, code), scale.decode) };
  }

  // A row in tiles of sixteen, of a tensor with that amax or else the row's.
  function quantizeRow(numbers, profileName, amax = largestOf(numbers)) {
    const profile = catalogue.profiles[profileName];
    const global = globalScale(profile, amax);
    const tiles = [];
    for (let start = 0; start < numbers.length; start += TILE) {
      const members = numbers.slice(start, start + TILE);
      const scale = tileScale(profile, members, amax, global);
      const elements = members.map((x) => quantizeElement(x, scale, profile));
      tiles.push({ start, members, blockAmax: largestOf(members), scale, elements });
    }
    return { profile, amax, global, blocks: tiles, elements: tiles.flatMap((tile) => tile.elements) };
  }

  return { largestOf, globalScale, tileScale, quantizeElement, quantizeRow, scaleValue };
})();
