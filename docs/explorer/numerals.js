"use strict";

// Numbers as people type them, and as the page shows them.
Explorer.numerals = (() => {
  const { exact, formats } = Explorer;
  const { finite, infinity, nan, isInfinite, isNan, isZero, isEqual, magnitude, exponentOf, rn32 } = exact;
  const DECIMAL = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
  // With a point or a power: digits alone are bits, which have no sign.
  const HEXADECIMAL = /^([+-]?)0x(?=.*[.p])([0-9a-f]*)(?:\.([0-9a-f]*))?(?:p([+-]?\d{1,5}))?$/i;
  const PATTERN = /^0x([0-9a-f]+)$/i;
  const POWER = /^([+-]?)(?:(\d+\.?\d*|\.\d+)\s*[*·]\s*)?2(?:\^|\*\*)\(?([+-]?\d{1,4})\)?$/;
  const FRACTION = /^([+-]?)(\d{1,15})\s*\/\s*(\d{1,15})$/;
  const WORD = /^([+-]?)(?:(inf|infinity|∞)|nan)$/i;

  const notBinary64 = (text) => new Error(
    `${text} is not a binary64 number; give one from 5e-324 to 1.79e308 in magnitude, `
    + "of at most 53 bits if it is hexadecimal.");

  // A number from a decimal, which is the nearest binary64, a hexadecimal float or a bit pattern.
  function parseNumber(given) {
    const text = given.trim().replace(/\u2212/g, "-");
    const word = WORD.exec(text);
    if (word) return word[2] ? infinity(word[1] === "-") : nan(word[1] === "-");
    if (PATTERN.test(text)) return fromPattern(PATTERN.exec(text)[1]);
    if (DECIMAL.test(text)) return fromDecimal(text);
    if (HEXADECIMAL.test(text)) return fromHexadecimal(text);
    if (POWER.test(text)) return fromPower(text);
    if (FRACTION.test(text)) return fromFraction(text);
    throw new Error(
      `${text ? `"${text}"` : "Nothing"} is not a number; give a decimal such as 0.3, a power such as 2^-9, a fraction `
      + "such as 1/3, a hexadecimal float such as 0x1.8p-2, a bit pattern such as 0x3F800000, inf or nan.");
  }

  function fromDecimal(text) {
    const number = Number(text);
    const isLost = number === 0 && /[1-9]/.test(text.replace(/e.*/i, ""));
    if (isLost || !Number.isFinite(number)) throw notBinary64(text);
    return ofNumber(number);
  }

  // 2^-9 and 1.5 * 2^-3, which are binary64 numbers or refused.
  function fromPower(text) {
    const [, sign, factor = "1", power] = POWER.exec(text);
    const x = fromDecimal(factor);
    const scaled = { ...x, negative: sign === "-", exponent: x.exponent + Number(power) };
    if (!isBinary64(scaled)) throw notBinary64(text);
    return scaled;
  }

  // 1/3, which is the nearest binary64: both sides are whole, and one division of JavaScript rounds once.
  function fromFraction(text) {
    const [, sign, top, bottom] = FRACTION.exec(text);
    if (Number(bottom) === 0) throw new Error(`${text} divides by 0.`);
    return { ...ofNumber(Number(top) / Number(bottom)), negative: sign === "-" };
  }

  function fromHexadecimal(text) {
    const [, sign, before, after = "", power = "0"] = HEXADECIMAL.exec(text);
    if (!(before + after)) throw new Error(`${text} has no digits.`);
    const x = finite(sign === "-", BigInt(`0x${before}${after}`), Number(power) - 4 * after.length);
    if (!isBinary64(x)) throw notBinary64(text);
    return x;
  }

  function fromPattern(digits) {
    if (digits.length === 16) return formats.numberOf(BigInt(`0x${digits}`), "f64");
    if (digits.length === 8) return formats.numberOf(parseInt(digits, 16), "f32");
    throw new Error(
      `0x${digits} is a bit pattern of ${digits.length} digits; give 8 for binary32 or 16 for binary64.`);
  }

  // The same number with an odd numerator; its denominator is 1.
  function reduced(x) {
    if (isZero(x)) return { ...x, exponent: 0 };
    const zeros = /0*$/.exec(x.numerator.toString(2))[0].length;
    return { ...x, numerator: x.numerator >> BigInt(zeros), exponent: x.exponent + zeros };
  }

  function isBinary64(x) {
    if (isZero(x)) return true;
    const { numerator, exponent } = reduced(x);
    return numerator.toString(2).length <= 53 && exponent >= -1074 && exponentOf(x) <= 1023;
  }

  const isBinary32 = (x) => isNan(x) || isInfinite(x) || isEqual(magnitude(rn32(x)), magnitude(x));

  const words = new DataView(new ArrayBuffer(8));
  function ofNumber(number) {
    words.setFloat64(0, number);
    return formats.ofBinary64(words.getBigUint64(0));
  }

  // A binary64 number as one of JavaScript's; NaN loses its bits.
  function toNumber(x) {
    if (isNan(x)) return NaN;
    const sign = x.negative ? -1 : 1;
    if (isInfinite(x)) return sign * Infinity;
    const { numerator, exponent } = reduced(x);
    return sign * (Number(numerator) * 2 ** exponent);
  }

  function binary64Bits(x) {
    if (isNan(x)) return (x.negative ? 0xFFFn : 0x7FFn) << 52n | x.payload;
    words.setFloat64(0, toNumber(x));
    return words.getBigUint64(0);
  }

  // The binary32 pattern of RN32(x); a NaN keeps the bits that fit.
  function binary32Bits(x) {
    if (!isNan(x)) return formats.bitsOf(x);
    return (x.negative ? 0xFF800000 : 0x7F800000) + (Number(x.payload >> 29n) || 1);
  }

  const hex = (bits, width) => `0x${bits.toString(16).toUpperCase().padStart(Math.ceil(width / 4), "0")}`;
  const signed = (number) => (Object.is(number, -0) ? "-0" : String(number));
  const printed = (number) => signed(number).replace("-", (sign, at) => (at === 0 ? "\u2212" : sign));

  // The shortest decimal that is nearest to this number alone in binary32, or nine digits.
  function shown(x) {
    if (isNan(x)) return "NaN";
    if (isInfinite(x)) return x.negative ? "\u2212∞" : "∞";
    const number = toNumber(x);
    if (isZero(x)) return printed(number);
    if (!isBinary32(x)) return approximate(x, 9);
    const candidates = [1, 2, 3, 4, 5, 6, 7, 8, 9].map((digits) => Number(number.toPrecision(digits)));
    return printed(candidates.find((each) => Math.fround(each) === number));
  }

  // What can be typed to get exactly this number.
  function typed(x) {
    if (isInfinite(x)) return x.negative ? "-inf" : "inf";
    if (!isNan(x)) return signed(toNumber(x));
    const isShort = (x.payload & ((1n << 29n) - 1n)) === 0n;
    return isShort ? hex(binary32Bits(x), 32) : hex(binary64Bits(x), 64);
  }

  // All digits of a number whose denominator is 1.
  function exactDecimal(x) {
    const { negative, numerator, exponent } = reduced(x);
    const places = Math.max(-exponent, 0);
    const digits = String(exponent < 0 ? numerator * 5n ** BigInt(places) : numerator << BigInt(exponent))
      .padStart(places + 1, "0");
    const fraction = places ? `.${digits.slice(-places)}` : "";
    return (negative ? "\u2212" : "") + digits.slice(0, digits.length - places) + fraction;
  }

  // Any finite number, rounded to some digits.
  function approximate(x, digits = 6) {
    if (isZero(x)) return "0";
    const top = x.numerator << BigInt(Math.max(x.exponent, 0));
    const bottom = x.denominator << BigInt(Math.max(-x.exponent, 0));
    const tens = digits - 1 - Math.floor(exponentOf(x) * Math.log10(2));
    const scaled = top * 10n ** BigInt(Math.max(tens, 0));
    const unit = bottom * 10n ** BigInt(Math.max(-tens, 0));
    const [most, ...others] = String((2n * scaled + unit) / (2n * unit));
    const number = Number(`${most}.${others.join("")}e${others.length - tens}`);
    return printed(Number((x.negative ? -number : number).toPrecision(digits)));
  }

  return {
    parseNumber, ofNumber, isBinary32, printed, binary64Bits, binary32Bits, hex, shown, typed, exactDecimal, approximate,
  };
})();
