"use strict";

// Asks the arithmetic of docs/explorer what the operations of golden vectors give. An array comes
// and goes as base64 of its little-endian words: 1, 2, 4 or 8 bytes each in, 8 bytes each out.
const adapter = (() => {
  const { catalogue, formats, scaling, nvfp4, mx, mor, affine, shared, levels, mixed } = Explorer;
  const WORDS = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array, 8: BigUint64Array };
  const formatOf = (parameters) => formats.formats[parameters.format];

  function unpacked({ width, words }) {
    const bytes = Uint8Array.from(atob(words), (letter) => letter.charCodeAt(0));
    return [...new WORDS[width](bytes.buffer)];
  }

  function packed(numbers) {
    const bytes = new Uint8Array(BigUint64Array.from(numbers, BigInt).buffer);
    let letters = "";
    for (let start = 0; start < bytes.length; start += 8192) {
      letters += String.fromCharCode(...bytes.subarray(start, start + 8192));
    }
    return btoa(letters);
  }

  const numbersOf = (bits, source) => bits.map((word) => formats.numberOf(word, source));
  const bitsOf = (numbers) => numbers.map(formats.bitsOf);
  const rowsOf = (items, count) => Array.from({ length: count }, (_, i) =>
    items.slice(i * items.length / count, (i + 1) * items.length / count));

  const elementFields = (elements) => ({
    xs: bitsOf(elements.map((e) => e.xs)),
    code: elements.map((e) => e.code),
    y: bitsOf(elements.map((e) => e.y)),
  });

  const integerFields = (elements) => {
    const fields = elementFields(elements);
    return { ...fields, code: fields.code.map((each) => each >>> 0) };
  };

  function errorFields(x, elements) {
    const { terms, ...sums } = mor.errorSum(x, elements);
    const of = (read) => terms.map((term) => (term ? read(term) : 0));
    return {
      d: of((term) => formats.bitsOf(term.d)),
      r: of((term) => formats.bitsOf(term.r)),
      u: of((term) => term.u),
      ...Object.fromEntries(Object.entries(sums).map(([name, count]) => [name, [count]])),
    };
  }

  // One record of lists from a record for each row.
  const joined = (records) => Object.fromEntries(
    Object.keys(records[0]).map((name) => [name, records.flatMap((record) => record[name])]));

  const operations = {
    encode(parameters, { x }) {
      const fmt = formatOf(parameters);
      const special = { ...catalogue.ours, overflow: parameters.overflow, nan: parameters.nan };
      return { code: numbersOf(x, parameters.source)
        .map((number) => formats.encode(number, fmt, parameters.rounding, special)) };
    },

    encode_preset(parameters, { x }) {
      const fmt = formatOf(parameters);
      const special = catalogue.presets[parameters.preset][fmt.name];
      const rounding = formats.roundingFor(fmt, null, special);
      return { code: numbersOf(x, parameters.source)
        .map((number) => formats.encode(number, fmt, rounding, special)) };
    },

    encode_stochastic(parameters, { x, random_word: words }) {
      const special = { ...catalogue.ours, overflow: parameters.overflow };
      const count = parameters.n_random_bits;
      return { code: numbersOf(x, parameters.source).map((number, i) =>
        formats.encode(number, formatOf(parameters), "sr", special, { word: words[i], count })) };
    },

    decode(parameters, { code }) {
      return { value: code.map((each) => formats.decode(each, formatOf(parameters))) };
    },

    scale(parameters, inputs) {
      const [groups, blocks] = ["group_amax", "block_amax"].map((name) => numbersOf(inputs[name], "f32"));
      const found = blocks.map((amax, i) =>
        scaling.scaleOfBlock(parameters.scaling, formatOf(parameters), amax, groups[i]));
      return {
        mantissa: found.map((scale) => scale.mantissa),
        exponent: found.map((scale) => scale.exponentCode ?? 0),
        scale: bitsOf(found.map((scale) => scale.value)),
      };
    },

    quantize_element(parameters, inputs) {
      const [x, scale] = ["x", "scale"].map((name) => numbersOf(inputs[name], "f32"));
      return elementFields(x.map((number, i) =>
        scaling.quantizeElement(number, scale[i], formatOf(parameters))));
    },

    quantize_block(parameters, { x, group_amax: groups }) {
      return joined(rowsOf(numbersOf(x, "f32"), groups.length).map((row, i) => {
        const groupAmax = formats.numberOf(groups[i], "f32");
        const { blocks: [{ amax, scale, elements }] } = scaling.quantizeRow(
          row, formatOf(parameters), parameters.scaling, row.length, groupAmax);
        return {
          amax: bitsOf([amax]), mantissa: [scale.mantissa], exponent: [scale.exponentCode ?? 0],
          scale: bitsOf([scale.value]), ...elementFields(elements), ...errorFields(row, elements),
        };
      }));
    },

    nvfp4_block(parameters, { x, amax }) {
      return joined(rowsOf(numbersOf(x, "f32"), amax.length).map((row, i) => {
        const found = nvfp4.quantizeRow(row, parameters.profile, formats.numberOf(amax[i], "f32"));
        const [tile] = found.blocks;
        const candidates = Object.entries(tile.scale.candidates ?? {}).flatMap(([name, one]) => [
          [`${name}.block_scale`, [one.code]],
          [`${name}.code`, one.codes],
          [`${name}.error`, bitsOf([one.error])],
        ]);
        return {
          block_amax: bitsOf([tile.blockAmax]),
          global_encode_scale: bitsOf([found.global.encode]),
          global_decode_scale: bitsOf([found.global.decode]),
          ...Object.fromEntries(candidates),
          block_scale: [tile.scale.code],
          ...(tile.scale.encode ? { encode_scale: bitsOf([tile.scale.encode]) } : {}),
          decode_scale: bitsOf([tile.scale.decode]),
          ...elementFields(tile.elements),
        };
      }));
    },

    mx_block(parameters, { x }) {
      return joined(rowsOf(numbersOf(x, "f32"), parameters.rows).map((row) => {
        const { blocks: [block] } = mx.quantizeRow(row, formatOf(parameters), parameters.scale_rule);
        return { scale: [block.scale.code], ...elementFields(block.elements) };
      }));
    },

    error_term(_, inputs) {
      const [x, y] = ["x", "y"].map((name) => numbersOf(inputs[name], "f32"));
      const terms = x.map((number, i) => mor.errorTerm(number, y[i]));
      return {
        d: bitsOf(terms.map((term) => term.d)),
        r: bitsOf(terms.map((term) => term.r)),
        u: terms.map((term) => term.u),
      };
    },

    decide(parameters, inputs) {
      const [amax, amin] = ["amax", "amin"].map((name) => numbersOf(inputs[name], "f32"));
      return { accepted: inputs.sum.map((sum, i) => {
        const own = { sum, nonzero: inputs.nonzero[i], nonfinite: inputs.nonfinite[i] };
        const errors = { yardstick: { sum: inputs.yardstick_sum[i] } };
        const rung = { ...parameters, limit: inputs.limit[i], yardstick: "yardstick" };
        return mor.accepts(rung, own, errors, amax[i], amin[i]);
      }) };
    },

    affine_element(parameters, inputs) {
      const profile = catalogue.integerProfiles[parameters.profile];
      const how = { profile, grid: catalogue.integerGrids[parameters.grid] };
      const [x, scales] = ["x", "scale"].map((name) => numbersOf(inputs[name], "f32"));
      const blocks = scales.map((scale, i) =>
        ({ scale, inverse: affine.inverseOf(scale, profile), zeroPoint: inputs.zero_point[i] | 0 }));
      const elements = x.map((number, i) => affine.quantizeElement(number, blocks[i], how));
      return { inverse_scale: bitsOf(blocks.map((block) => block.inverse)), ...integerFields(elements) };
    },

    // A tensor whose rows are blocks.
    affine(parameters, { x }) {
      const { grid, profile, symmetric, rows } = parameters;
      return joined(rowsOf(numbersOf(x, parameters.source), rows).map((row) => {
        const { blocks: [block], elements } = affine.quantizeRow(row, grid, profile, symmetric, row.length);
        const { sum, nonzero, nonfinite } = errorFields(row, elements);
        return {
          minimum: bitsOf([block.minimum]), maximum: bitsOf([block.maximum]), scale: bitsOf([block.scale]),
          inverse_scale: bitsOf([block.inverse]), zero_float: bitsOf([block.zeroFloat]),
          zero_point: [block.zeroPoint >>> 0], ...integerFields(elements), sum, nonzero, nonfinite,
        };
      }));
    },

    shared_block(parameters, { x }) {
      return joined(rowsOf(numbersOf(x, "f32"), parameters.rows).map((row) => {
        const { blocks: [block] } = shared.quantizeRow(row, parameters.kind, parameters.profile);
        const of = (name) => block.elements.map((element) => element[name]);
        return {
          shared_exponent: [block.exponent], tau: block.tau,
          sign: of("sign"), magnitude: of("magnitude"), code: of("code"), y: bitsOf(of("y")),
        };
      }));
    },

    levels_element(parameters, inputs) {
      const [x, alphas] = ["x", "alpha"].map((name) => numbersOf(inputs[name], "f32"));
      return joined(x.map((number, i) => {
        const found = levels.quantizeRow([number], parameters.kind, parameters.arithmetic, alphas[i]);
        const [{ ratio, clipped, level, code, y, term, inside }] = found.elements;
        const [alpha, ...bits] = bitsOf([found.alpha, ratio, clipped, level, y, term]).map((each) => [each]);
        return {
          used_alpha: alpha, ratio: bits[0], clipped: bits[1], level: bits[2], code: [code], y: bits[3],
          alpha_term: bits[4], inside: [inside],
        };
      }));
    },

    mix_errors(parameters, { x, first, second }) {
      const [rows, ...ys] = [x, first, second].map((bits) => rowsOf(numbersOf(bits, "f32"), parameters.rows));
      return joined(rows.map((row, i) => {
        const { amax, errors, squares, choice } = mixed.unitOf(row, ys.map((each) => each[i]));
        return {
          amax: bitsOf([amax]), first_u: errors[0], second_u: errors[1],
          first_squares: [squares[0]], second_squares: [squares[1]], choice: [choice],
        };
      }));
    },

    // A row that is a tensor of one block.
    mor(parameters, { x }) {
      const row = numbersOf(x, parameters.source);
      const found = mor.decide(row, catalogue.policies[parameters.policy], parameters.scaling);
      const sums = Object.entries(found.errors).flatMap(([name, error]) =>
        ["sum", "nonzero", "nonfinite"].map((count) => [`${name}.${count}`, [error[count]]]));
      return {
        amax: bitsOf([found.amax]), amin: bitsOf([found.amin]), ...Object.fromEntries(sums),
        choice: [found.choice], output: found.output,
      };
    },
  };

  return ([operation, parameters, inputs]) => {
    const arrays = Object.entries(inputs).map(([name, array]) => [name, unpacked(array)]);
    const found = operations[operation](parameters, Object.fromEntries(arrays));
    return Object.fromEntries(Object.entries(found).map(([name, array]) => [name, packed(array)]));
  };
})();
