// The C99 library as a candidate: mor-ref verify exec:./mor_ref_candidate compares it with the golden
// vectors, as it was built for this machine. It answers the operations of formats, scales, MoR, NVFP4 and MX, and
// skips the other representations, the formats and policies that the library does not have, and given amaxes, scales and words.
#include "mor_ref.h"
#include "mor_ref_protocol.hpp"

#include <algorithm>

using mor_ref::protocol::Answer;
using mor_ref::protocol::Array;
using mor_ref::protocol::Case;
using std::size_t;
using std::uint32_t;
using std::uint64_t;
using std::uint8_t;

namespace {

// A parameter that the library has no value for: the case is skipped.
struct Skipped {};

const mor_format &format_named(const std::string &name) {
    const mor_format *found = mor_format_named(name.c_str());
    if (!found) throw Skipped();
    return *found;
}

const mor_format &format_of(const Case &asked) { return format_named(asked.parameter("format")); }

// The place of a name in a list of names.
int place(const std::string &name, const std::vector<std::string> &names) {
    auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) throw Skipped();
    return static_cast<int>(found - names.begin());
}

mor_rounding rounding_of(const Case &asked) {
    return static_cast<mor_rounding>(
        place(asked.parameter("rounding"), {"", "rne", "rna", "rtz", "rtp", "rtn", "rto"}));
}
mor_overflow overflow_of(const Case &asked) {
    return static_cast<mor_overflow>(place(asked.parameter("overflow"), {"satfinite", "ieee"}));
}
mor_scaling scaling_of(const Case &asked) {
    return static_cast<mor_scaling>(place(asked.parameter("scaling"), {"gam", "e8m0", "fp32"}));
}
mor_mx_rule rule_of(const Case &asked) {
    return static_cast<mor_mx_rule>(place(asked.parameter("scale_rule"), {"floor", "ceil", "even", "rceil"}));
}
mor_profile profile_of(const Case &asked) {
    std::vector<std::string> names(mor_profiles, mor_profiles + MOR_PROFILES);
    return static_cast<mor_profile>(place(asked.parameter("profile"), names));
}

// A rectangle of a tensor.
struct Part {
    size_t row, column, rows, columns;
};

// The tensor of a case, with its numbers in binary32 (QNT-004).
struct Tensor {
    size_t rows = 1, columns = 1;
    std::vector<uint32_t> x;

    explicit Tensor(const Case &asked) {
        const Array &given = asked.input("x");
        rows = given.shape.size() > 1 ? given.shape[0] : 1;
        columns = given.shape.back();
        const mor_format &source = format_named(asked.parameter("source"));
        bool is_f32 = &source == &mor_formats[MOR_F32];
        x.reserve(given.numbers.size());
        for (uint64_t bits : given.numbers) {
            uint32_t code = static_cast<uint32_t>(bits);
            x.push_back(is_f32 ? code : static_cast<uint32_t>(mor_decode(&source, code)));
        }
    }
    size_t at(const Part &part) const { return part.row * columns + part.column; }
};

// How rectangles tile a tensor: BLK-002, BLK-003.
struct Grid {
    size_t height, width, rows, columns;

    Grid(const Tensor &tensor, const std::string &text) {
        height = text == "row" ? 1 : tensor.rows;
        width = text == "column" ? 1 : tensor.columns;
        if (text != "tensor" && text != "row" && text != "column") {
            std::vector<size_t> sides = mor_ref::protocol::sizes_in(text);
            height = sides.size() > 1 ? sides[0] : 1; // MX names the length of a row alone
            width = sides.back();
        }
        rows = (tensor.rows + height - 1) / height;
        columns = (tensor.columns + width - 1) / width;
    }
    Part part(const Tensor &tensor, size_t i, size_t j) const {
        size_t row = i * height, column = j * width;
        return {row, column, std::min(height, tensor.rows - row), std::min(width, tensor.columns - column)};
    }
    Array array() const { return Array({rows, columns}); }
};

template <class F> void for_each_part(const Tensor &tensor, const Grid &grid, F f) {
    for (size_t i = 0; i < grid.rows; i++)
        for (size_t j = 0; j < grid.columns; j++) f(grid.part(tensor, i, j), i * grid.columns + j);
}

template <class F> void for_each_element(const Tensor &tensor, const Part &part, F f) {
    for (size_t r = 0; r < part.rows; r++)
        for (size_t c = 0; c < part.columns; c++) f((part.row + r) * tensor.columns + part.column + c);
}

uint32_t amax_of(const Tensor &tensor, const Part &part) {
    return mor_amax(tensor.x.data() + tensor.at(part), part.rows, part.columns, tensor.columns);
}

template <class T> void store(Answer &answer, const char *name, const Tensor &tensor, const std::vector<T> &from) {
    Array array({tensor.rows, tensor.columns});
    array.numbers.assign(from.begin(), from.end());
    answer[name] = std::move(array);
}

void store_sums(Answer &answer, const std::string &prefix, const Grid &grid, const std::vector<mor_sums> &sums) {
    Array sum = grid.array(), nonzero = grid.array(), nonfinite = grid.array();
    for (size_t i = 0; i < sums.size(); i++) {
        sum.numbers[i] = sums[i].sum;
        nonzero.numbers[i] = sums[i].nonzero;
        nonfinite.numbers[i] = sums[i].nonfinite;
    }
    answer[prefix + "sum"] = std::move(sum);
    answer[prefix + "nonzero"] = std::move(nonzero);
    answer[prefix + "nonfinite"] = std::move(nonfinite);
}

// ---- Lists of single steps ----

template <class F> Array mapped(const Array &x, F f) {
    Array made(x.shape);
    for (size_t i = 0; i < x.numbers.size(); i++) made.numbers[i] = static_cast<uint64_t>(f(i));
    return made;
}

uint32_t narrow(uint64_t bits) { return static_cast<uint32_t>(bits); }

Answer encode(const Case &asked) {
    const Array &x = asked.input("x");
    const mor_format &to = format_of(asked), &from = format_named(asked.parameter("source"));
    mor_rounding rounding = rounding_of(asked);
    mor_overflow overflow = overflow_of(asked);
    mor_nan nan = static_cast<mor_nan>(place(asked.parameter("nan"), {"canonical", "signed"}));
    return {{"code", mapped(x, [&](size_t i) {
                 return mor_encode(&to, rounding, overflow, nan, &from, x.numbers[i]);
             })}};
}

Answer encode_stochastic(const Case &asked) {
    const Array &x = asked.input("x"), &word = asked.input("random_word");
    const mor_format &to = format_of(asked), &from = format_named(asked.parameter("source"));
    mor_overflow overflow = overflow_of(asked);
    int n = std::stoi(asked.parameter("n_random_bits"));
    return {{"code", mapped(x, [&](size_t i) {
                 return mor_encode_stochastic(&to, overflow, MOR_CANONICAL, n, narrow(word.numbers[i]), &from,
                                              x.numbers[i]);
             })}};
}

Answer encode_preset(const Case &asked) {
    const Array &x = asked.input("x");
    const mor_format &to = format_of(asked);
    int named = place(asked.parameter("preset"), {"cuda", "ml_dtypes", "torch"});
    return {{"code", mapped(x, [&](size_t i) {
                 return mor_encode_profile(static_cast<mor_encoder_profile>(named), &to, MOR_DEFAULT,
                                           narrow(x.numbers[i]));
             })}};
}

Answer decode(const Case &asked) {
    const Array &code = asked.input("code");
    const mor_format &format = format_of(asked);
    return {{"value", mapped(code, [&](size_t i) { return mor_decode(&format, narrow(code.numbers[i])); })}};
}

Answer scale(const Case &asked) {
    const Array &group = asked.input("group_amax"), &block = asked.input("block_amax");
    Array mantissa(group.shape), exponent(group.shape), scale(group.shape);
    for (size_t i = 0; i < group.numbers.size(); i++) {
        mor_scale made = mor_scale_of(&format_of(asked), scaling_of(asked), narrow(group.numbers[i]),
                                      narrow(block.numbers[i]));
        mantissa.numbers[i] = made.mantissa;
        exponent.numbers[i] = made.exponent;
        scale.numbers[i] = made.scale;
    }
    return {{"mantissa", mantissa}, {"exponent", exponent}, {"scale", scale}};
}

Answer quantize_element(const Case &asked) {
    const Array &x = asked.input("x"), &scales = asked.input("scale");
    Array xs(x.shape), code(x.shape), y(x.shape);
    for (size_t i = 0; i < x.numbers.size(); i++) {
        mor_element made = mor_quantize(&format_of(asked), narrow(x.numbers[i]), narrow(scales.numbers[i]));
        xs.numbers[i] = made.xs;
        code.numbers[i] = made.code;
        y.numbers[i] = made.y;
    }
    return {{"xs", xs}, {"code", code}, {"y", y}};
}

Answer error_term(const Case &asked) {
    const Array &x = asked.input("x"), &y = asked.input("y");
    Array d(x.shape), r(x.shape), u(x.shape);
    for (size_t i = 0; i < x.numbers.size(); i++) {
        mor_error made = mor_error_of(narrow(x.numbers[i]), narrow(y.numbers[i]));
        d.numbers[i] = made.d;
        r.numbers[i] = made.r;
        u.numbers[i] = made.u;
    }
    return {{"d", d}, {"r", r}, {"u", u}};
}

Answer decide(const Case &asked) {
    int metric = place(asked.parameter("metric"), {"mean_relative_error", "not_worse_than", "fits_range"});
    auto of = [&](const char *field, size_t i) { return asked.input(field).numbers[i]; };
    return {{"accepted", mapped(asked.input("sum"), [&](size_t i) {
                 mor_sums sums = {of("sum", i), of("nonzero", i), of("nonfinite", i)};
                 if (metric == 0) return mor_mean_accepts(&sums, narrow(of("limit", i)));
                 if (metric == 1) return mor_not_worse_accepts(&sums, of("yardstick_sum", i));
                 return mor_range_accepts(&format_of(asked), &sums, narrow(of("amax", i)), narrow(of("amin", i)));
             })}};
}

// ---- Scaled formats ----

struct Quantized {
    std::vector<mor_scale> scales; // of blocks
    std::vector<uint32_t> amax;    // of blocks
    std::vector<uint32_t> y;
    std::vector<uint8_t> code;
    std::vector<mor_sums> sums; // of blocks
};

// The amax of the group of each block is given by `group_amax`.
template <class F>
Quantized quantized(const Tensor &tensor, const Grid &blocks, const mor_format &format, mor_scaling scaling,
                    F group_amax) {
    Quantized made;
    made.y.resize(tensor.x.size());
    made.code.resize(tensor.x.size());
    for_each_part(tensor, blocks, [&](const Part &part, size_t block) {
        size_t at = tensor.at(part);
        made.amax.push_back(amax_of(tensor, part));
        made.scales.push_back(mor_scale_of(&format, scaling, group_amax(part, block), made.amax.back()));
        made.sums.push_back(mor_quantize_block(&format, made.scales.back().scale, tensor.x.data() + at, part.rows,
                                               part.columns, tensor.columns, made.code.data() + at,
                                               made.y.data() + at));
    });
    return made;
}

std::vector<uint32_t> amaxes_of(const Tensor &tensor, const Grid &grid) {
    std::vector<uint32_t> made;
    for_each_part(tensor, grid, [&](const Part &part, size_t) { made.push_back(amax_of(tensor, part)); });
    return made;
}

Quantized quantized_in_groups(const Tensor &tensor, const Grid &blocks, const Grid &groups,
                              const mor_format &format, mor_scaling scaling) {
    std::vector<uint32_t> amaxes = amaxes_of(tensor, groups);
    return quantized(tensor, blocks, format, scaling, [&](const Part &part, size_t) {
        return amaxes[part.row / groups.height * groups.columns + part.column / groups.width];
    });
}

Answer of_quantized(const Case &asked, const Tensor &tensor, const Grid &blocks, const Quantized &made) {
    Answer answer;
    Array amax = blocks.array(), exponent = blocks.array(), scale = blocks.array();
    for (size_t i = 0; i < made.scales.size(); i++) {
        amax.numbers[i] = made.amax[i];
        exponent.numbers[i] = made.scales[i].exponent;
        scale.numbers[i] = made.scales[i].scale;
    }
    store(answer, "code", tensor, made.code);
    store(answer, "y", tensor, made.y);
    store_sums(answer, "", blocks, made.sums);
    answer["amax"] = std::move(amax);
    answer["exponent"] = std::move(exponent);
    answer["scale"] = std::move(scale);
    if (!asked.parameter("recipe").empty()) return answer; // no digests of the steps of elements
    std::vector<uint32_t> xs(tensor.x.size()), d(xs), r(xs), u(xs);
    for_each_part(tensor, blocks, [&](const Part &part, size_t block) {
        for_each_element(tensor, part, [&](size_t i) {
            mor_error error = mor_error_of(tensor.x[i], made.y[i]);
            xs[i] = mor_f32_multiply(tensor.x[i], made.scales[block].scale);
            d[i] = error.d;
            r[i] = error.r;
            u[i] = error.u;
        });
    });
    store(answer, "xs", tensor, xs);
    store(answer, "d", tensor, d);
    store(answer, "r", tensor, r);
    store(answer, "u", tensor, u);
    return answer;
}

Answer quantize(const Case &asked) {
    Tensor tensor(asked);
    Grid blocks(tensor, asked.parameter("block")), groups(tensor, asked.parameter("group"));
    const mor_format &format = format_of(asked);
    Quantized made = quantized_in_groups(tensor, blocks, groups, format, scaling_of(asked));
    Answer answer = of_quantized(asked, tensor, blocks, made);
    Array mantissa = groups.array();
    std::vector<uint32_t> amaxes = amaxes_of(tensor, groups);
    for (size_t i = 0; i < amaxes.size(); i++)
        mantissa.numbers[i] = mor_scale_of(&format, scaling_of(asked), amaxes[i], amaxes[i]).mantissa;
    answer["mantissa"] = std::move(mantissa);
    return answer;
}

// Each row of x is a block. A field of blocks is a list then.
Answer as_list(Answer answer) {
    for (auto &[name, array] : answer)
        if (array.shape.size() == 2 && array.shape[1] == 1) array.shape.pop_back();
    return answer;
}

Answer quantize_block(const Case &asked) {
    Tensor tensor(asked);
    Grid blocks(tensor, "row");
    const Array &amaxes = asked.input("group_amax");
    Quantized made = quantized(tensor, blocks, format_of(asked), scaling_of(asked),
                               [&](const Part &, size_t block) { return narrow(amaxes.numbers[block]); });
    Answer answer = of_quantized(asked, tensor, blocks, made);
    Array mantissa = blocks.array();
    for (size_t i = 0; i < made.scales.size(); i++) mantissa.numbers[i] = made.scales[i].mantissa;
    answer["mantissa"] = std::move(mantissa);
    return as_list(answer);
}

// ---- MX ----

Answer mx_in(const Case &asked, const Tensor &tensor, const Grid &blocks) {
    std::vector<uint8_t> code(tensor.x.size());
    std::vector<uint32_t> y(tensor.x.size()), xs(tensor.x.size());
    Array scale = blocks.array();
    for_each_part(tensor, blocks, [&](const Part &part, size_t block) {
        size_t at = tensor.at(part);
        uint8_t made = mor_mx_block(&format_of(asked), rule_of(asked), tensor.x.data() + at, part.columns,
                                    code.data() + at, y.data() + at);
        scale.numbers[block] = made;
        for_each_element(tensor, part,
                         [&](size_t i) { xs[i] = mor_mx_element(&format_of(asked), made, tensor.x[i]).xs; });
    });
    Answer answer;
    store(answer, "code", tensor, code);
    store(answer, "y", tensor, y);
    if (asked.parameter("recipe").empty()) store(answer, "xs", tensor, xs);
    answer["scale"] = std::move(scale);
    return answer;
}

Answer mx(const Case &asked) {
    Tensor tensor(asked);
    return mx_in(asked, tensor, Grid(tensor, asked.parameter("block")));
}

Answer mx_block(const Case &asked) {
    Tensor tensor(asked);
    return as_list(mx_in(asked, tensor, Grid(tensor, "row")));
}

Answer mx_decode(const Case &asked) {
    const Array &code = asked.input("code"), &scale = asked.input("scale");
    Array y(code.shape);
    size_t columns = code.shape[1];
    for (size_t i = 0; i < code.numbers.size(); i++)
        y.numbers[i] = mor_mx_value(&format_of(asked), (uint8_t)scale.numbers[i / columns], (uint32_t)code.numbers[i]);
    Answer answer;
    answer["y"] = std::move(y);
    return answer;
}

// ---- NVFP4 ----

struct Tiles {
    std::vector<mor_nvfp4_tile> tiles;
    std::vector<uint32_t> xs, y;
    std::vector<uint8_t> code;
};

// The global scales of each tile are given by `global_of`.
template <class F>
Tiles tiled(const Tensor &tensor, const Grid &grid, mor_profile profile, F global_of) {
    Tiles made;
    made.xs.resize(tensor.x.size());
    made.y.resize(tensor.x.size());
    made.code.resize(tensor.x.size());
    for_each_part(tensor, grid, [&](const Part &part, size_t tile) {
        mor_nvfp4_global global = global_of(part, tile);
        made.tiles.push_back(mor_nvfp4_tile_of(profile, &global, tensor.x.data() + tensor.at(part), part.rows,
                                               part.columns, tensor.columns));
        for_each_element(tensor, part, [&](size_t i) {
            mor_element element = mor_nvfp4_element(profile, &made.tiles.back().taken, tensor.x[i]);
            made.xs[i] = element.xs;
            made.y[i] = element.y;
            made.code[i] = element.code;
        });
    });
    return made;
}

// One global scale, or one for each row.
std::vector<mor_nvfp4_global> globals_of(const Tensor &tensor, mor_profile profile) {
    std::vector<mor_nvfp4_global> made;
    for_each_part(tensor, Grid(tensor, profile == MOR_TE_ROW ? "row" : "tensor"), [&](const Part &part, size_t) {
        uint32_t amax = mor_nvfp4_amax(tensor.x.data() + tensor.at(part), part.rows, part.columns, tensor.columns);
        made.push_back(mor_nvfp4_global_of(profile, amax));
    });
    return made;
}

Tiles tiled_tensor(const Tensor &tensor, const Grid &grid, mor_profile profile,
                   const std::vector<mor_nvfp4_global> &globals) {
    return tiled(tensor, grid, profile,
                 [&](const Part &part, size_t) { return globals[globals.size() > 1 ? part.row : 0]; });
}

Answer nvfp4(const Case &asked) {
    Tensor tensor(asked);
    Grid grid(tensor, asked.parameter("tile"));
    mor_profile profile = profile_of(asked);
    std::vector<mor_nvfp4_global> globals = globals_of(tensor, profile);
    Tiles made = tiled_tensor(tensor, grid, profile, globals);
    Answer answer;
    Array encode_scale({globals.size()}), decode_scale({globals.size()}), block_scale = grid.array();
    for (size_t i = 0; i < globals.size(); i++) {
        encode_scale.numbers[i] = globals[i].encode;
        decode_scale.numbers[i] = globals[i].decode;
    }
    for (size_t i = 0; i < made.tiles.size(); i++) block_scale.numbers[i] = made.tiles[i].taken.scale;
    size_t pairs = (tensor.columns + 1) / 2;
    Array packed({tensor.rows, pairs});
    std::vector<uint8_t> bytes(tensor.rows * pairs);
    for (size_t r = 0; r < tensor.rows; r++)
        mor_pack(made.code.data() + r * tensor.columns, tensor.columns, bytes.data() + r * pairs);
    packed.numbers.assign(bytes.begin(), bytes.end());
    answer["global_encode_scale"] = std::move(encode_scale);
    answer["global_decode_scale"] = std::move(decode_scale);
    answer["block_scale"] = std::move(block_scale);
    answer["packed"] = std::move(packed);
    store(answer, "code", tensor, made.code);
    store(answer, "y", tensor, made.y);
    if (asked.parameter("recipe").empty()) store(answer, "xs", tensor, made.xs);
    return answer;
}

void store_candidate(Answer &answer, const std::string &prefix, const Tensor &tensor, mor_profile profile,
                     const Tiles &made, const mor_nvfp4_candidate mor_nvfp4_tile::*which) {
    Array scales({tensor.rows}), errors({tensor.rows}), codes({tensor.rows, tensor.columns});
    for (size_t r = 0; r < tensor.rows; r++) {
        const mor_nvfp4_candidate &candidate = made.tiles[r].*which;
        scales.numbers[r] = candidate.scale;
        errors.numbers[r] = candidate.error;
        for (size_t i = r * tensor.columns; i < (r + 1) * tensor.columns; i++)
            codes.numbers[i] = mor_nvfp4_element(profile, &candidate, tensor.x[i]).code;
    }
    answer[prefix + "block_scale"] = std::move(scales);
    answer[prefix + "error"] = std::move(errors);
    answer[prefix + "code"] = std::move(codes);
}

Answer nvfp4_block(const Case &asked) {
    Tensor tensor(asked);
    mor_profile profile = profile_of(asked);
    const Array &amaxes = asked.input("amax");
    auto global = [&](size_t tile) { return mor_nvfp4_global_of(profile, narrow(amaxes.numbers[tile])); };
    Tiles made =
        tiled(tensor, Grid(tensor, "row"), profile, [&](const Part &, size_t tile) { return global(tile); });
    Answer answer;
    auto list = [&](const char *name, auto f) { answer[name] = mapped(amaxes, f); };
    list("block_amax", [&](size_t i) { return made.tiles[i].block_amax; });
    list("block_scale", [&](size_t i) { return made.tiles[i].taken.scale; });
    list("decode_scale", [&](size_t i) { return made.tiles[i].taken.decode; });
    list("global_encode_scale", [&](size_t i) { return global(i).encode; });
    list("global_decode_scale", [&](size_t i) { return global(i).decode; });
    if (profile != MOR_MODELOPT && profile != MOR_COMPRESSED_TENSORS)
        list("encode_scale", [&](size_t i) { return made.tiles[i].taken.encode; });
    if (asked.parameter("profile").find("4over6") != std::string::npos) {
        store_candidate(answer, "six.", tensor, profile, made, &mor_nvfp4_tile::six);
        store_candidate(answer, "four.", tensor, profile, made, &mor_nvfp4_tile::four);
    }
    store(answer, "xs", tensor, made.xs);
    store(answer, "code", tensor, made.code);
    store(answer, "y", tensor, made.y);
    return answer;
}

// ---- MoR ----

struct Measured {
    std::vector<uint32_t> y;
    std::vector<mor_sums> sums; // of units
};

Measured measured(const Tensor &tensor, const Grid &units, std::vector<uint32_t> y) {
    Measured made;
    for_each_part(tensor, units, [&](const Part &part, size_t) {
        mor_sums sums = {0, 0, 0};
        for_each_element(tensor, part, [&](size_t i) { mor_sums_add(&sums, tensor.x[i], y[i]); });
        made.sums.push_back(sums);
    });
    made.y = std::move(y);
    return made;
}

uint64_t as_bf16(uint32_t y) {
    return static_cast<uint64_t>(
        mor_encode(&mor_formats[MOR_BF16], MOR_RNE, MOR_OVERFLOW_IEEE, MOR_CANONICAL, &mor_formats[MOR_F32], y));
}

Answer mor(const Case &asked) {
    static const std::vector<std::vector<std::string>> representations = {
        {"e4m3"}, {"e4m3", "e5m2"}, {"e4m3", "e5m2"}, {"nvfp4", "e4m3"}};
    Tensor tensor(asked);
    int policy = place(asked.parameter("policy"), {"tensor", "two_way", "three_way", "nvfp4"});
    Grid blocks(tensor, asked.parameter("block")), groups(tensor, "tensor");
    Grid units = policy == MOR_TENSOR ? groups : blocks;
    std::map<std::string, Measured> found;
    Answer answer;
    for (const std::string &name : representations[static_cast<size_t>(policy)]) {
        std::vector<uint32_t> y =
            name == "nvfp4"
                ? tiled_tensor(tensor, Grid(tensor, "1x16"), MOR_TE, globals_of(tensor, MOR_TE)).y
                : quantized_in_groups(tensor, blocks, groups, format_named(name), scaling_of(asked)).y;
        found[name] = measured(tensor, units, std::move(y));
        store_sums(answer, name + ".", units, found[name].sums);
    }
    Array amax = units.array(), amin = units.array(), choice = units.array(), output({tensor.rows, tensor.columns});
    for_each_part(tensor, units, [&](const Part &part, size_t i) {
        mor_unit unit = {};
        unit.amax = amax_of(tensor, part);
        unit.amin = mor_amin(tensor.x.data() + tensor.at(part), part.rows, part.columns, tensor.columns);
        if (found.count("e4m3")) unit.e4m3 = found["e4m3"].sums[i];
        if (found.count("e5m2")) unit.e5m2 = found["e5m2"].sums[i];
        if (found.count("nvfp4")) unit.nvfp4 = found["nvfp4"].sums[i];
        amax.numbers[i] = unit.amax;
        amin.numbers[i] = unit.amin;
        unsigned taken = mor_choice(static_cast<mor_policy>(policy), &unit);
        choice.numbers[i] = taken;
        const std::vector<std::string> rungs = policy == MOR_TWO_WAY ? std::vector<std::string>{"e4m3"}
                                                                     : representations[static_cast<size_t>(policy)];
        const std::vector<uint32_t> &y = taken < rungs.size() ? found[rungs[taken]].y : tensor.x;
        bool is_copied = taken >= rungs.size() && asked.parameter("source") == "bf16"; // MOR-006
        for_each_element(tensor, part, [&](size_t at) {
            output.numbers[at] = is_copied ? asked.input("x").numbers[at] : as_bf16(y[at]);
        });
    });
    answer["amax"] = std::move(amax);
    answer["amin"] = std::move(amin);
    answer["choice"] = std::move(choice);
    answer["output"] = std::move(output);
    return answer;
}

Answer answered(const Case &asked) {
    static const std::map<std::string, Answer (*)(const Case &)> operations = {
        {"encode", encode}, {"encode_preset", encode_preset}, {"encode_stochastic", encode_stochastic},
        {"decode", decode}, {"scale", scale}, {"quantize_element", quantize_element},
        {"error_term", error_term}, {"decide", decide}, {"quantize", quantize},
        {"quantize_block", quantize_block}, {"mx", mx}, {"mx_block", mx_block},
        {"mx_decode", mx_decode},
        {"nvfp4", nvfp4}, {"nvfp4_block", nvfp4_block}, {"mor", mor},
    };
    auto found = operations.find(asked.operation);
    if (found == operations.end()) return Answer();
    for (const char *name : {"amax", "scale", "global_scale"}) // given with a recipe; the functions measure them
        if (asked.parameters.count(name)) return Answer();
    if (asked.parameters.count("n_random_bits") && asked.operation != "encode_stochastic") return Answer();
    try {
        return found->second(asked);
    } catch (const Skipped &) {
        return Answer();
    }
}

} // namespace

int main() { return mor_ref::protocol::run(answered); }
