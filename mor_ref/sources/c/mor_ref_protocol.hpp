// The protocol of `mor-ref verify exec:PROGRAM`, in one header of C++17: chapter protocol of the specification.
//
//     #include "mor_ref_protocol.hpp"
//     int main() {
//         return mor_ref::protocol::run([](const mor_ref::protocol::Case &asked) {
//             mor_ref::protocol::Answer answer;         // empty: the case is skipped
//             if (asked.operation == "decode" && asked.parameter("format") == "e4m3")
//                 answer["value"] = my_decoder(asked.input("code"));
//             return answer;
//         });
//     }
#ifndef MOR_REF_PROTOCOL_HPP
#define MOR_REF_PROTOCOL_HPP

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace mor_ref::protocol {

// Bit patterns in row-major order.
struct Array {
    std::vector<std::size_t> shape;
    std::vector<std::uint64_t> numbers;

    Array() = default;
    explicit Array(std::vector<std::size_t> sizes) : shape(std::move(sizes)) {
        std::size_t count = 1;
        for (std::size_t size : shape) count *= size;
        numbers.resize(count);
    }
};

// The fields that come out, by their names.
using Answer = std::map<std::string, Array>;

// A question: one call of an operation.
struct Case {
    std::string suite, operation, name;
    std::map<std::string, std::string> parameters;
    std::map<std::string, Array> inputs;

    // The value of a parameter; empty if the case does not have it.
    std::string parameter(const std::string &parameter_name) const {
        auto found = parameters.find(parameter_name);
        return found == parameters.end() ? std::string() : found->second;
    }
    const Array &input(const std::string &field) const { return inputs.at(field); }
};

// The sizes in a text such as 128x64.
inline std::vector<std::size_t> sizes_in(const std::string &text) {
    std::vector<std::size_t> sizes(1, 0);
    for (char c : text) {
        if (c == 'x') sizes.push_back(0);
        else if (c < '0' || c > '9') throw std::runtime_error("not a shape: " + text);
        else sizes.back() = sizes.back() * 10 + static_cast<std::size_t>(c - '0');
    }
    return sizes;
}

// The words of a file, which white space separates (PRO-002).
class Words {
  public:
    explicit Words(std::FILE *file) : file_(file) {}

    // The next word; empty at the end of the file.
    std::string next() {
        std::string word;
        for (int c = after_space(); c != EOF && !is_space(c); c = std::getc(file_))
            word.push_back(static_cast<char>(c));
        return word;
    }

    // The next word as a number in hexadecimal digits (PRO-005).
    std::uint64_t number() {
        std::uint64_t value = 0;
        int c = after_space();
        if (c == EOF) throw std::runtime_error("the input ends in an array");
        for (; c != EOF && !is_space(c); c = std::getc(file_)) value = value << 4 | digit(c);
        return value;
    }

  private:
    std::FILE *file_;

    static bool is_space(int c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
    int after_space() {
        int c = std::getc(file_);
        while (is_space(c)) c = std::getc(file_);
        return c;
    }
    static std::uint64_t digit(int c) {
        if (c >= '0' && c <= '9') return static_cast<std::uint64_t>(c - '0');
        if (c >= 'a' && c <= 'f') return static_cast<std::uint64_t>(c - 'a' + 10);
        throw std::runtime_error("not a hexadecimal digit");
    }
};

// Read the rest of a question, after its first word (PRO-003).
inline Case read_case(Words &words) {
    Case asked;
    asked.suite = words.next();
    asked.operation = words.next();
    asked.name = words.next();
    for (std::string word = words.next(); word != "run"; word = words.next()) {
        std::string name = words.next();
        if (word == "param") {
            asked.parameters[name] = words.next();
        } else if (word == "in") {
            Array array(sizes_in(words.next()));
            for (std::uint64_t &number : array.numbers) number = words.number();
            asked.inputs[name] = std::move(array);
        } else {
            throw std::runtime_error("the question has '" + word + "' where param, in or run is expected");
        }
    }
    return asked;
}

inline void append_hexadecimal(std::string &text, std::uint64_t number) {
    char digits[16];
    int count = 0;
    do digits[count++] = "0123456789abcdef"[number & 15];
    while (number >>= 4);
    while (count > 0) text.push_back(digits[--count]);
    text.push_back('\n');
}

// Write an answer, and flush it (PRO-006).
inline void write_answer(std::FILE *file, const Answer &answer) {
    std::string text;
    for (const auto &[name, array] : answer) {
        text += "out " + name + " ";
        for (std::size_t i = 0; i < array.shape.size(); i++)
            text += (i ? "x" : "") + std::to_string(array.shape[i]);
        text += "\n";
        for (std::uint64_t number : array.numbers) append_hexadecimal(text, number);
    }
    text += answer.empty() ? "skip\n" : "done\n";
    std::fwrite(text.data(), 1, text.size(), file);
    std::fflush(file);
}

// Answer every question until the input ends, and return the status of the program.
template <class Answering> int run(Answering answering, std::FILE *in = stdin, std::FILE *out = stdout) {
    Words words(in);
    if (words.next() != "mor-ref-protocol" || words.next() != "1") { // PRO-001
        std::fputs("the input does not begin with mor-ref-protocol 1; run it with mor-ref verify exec:PROGRAM\n",
                   stderr);
        return 2;
    }
    try {
        for (std::string word = words.next(); word == "case"; word = words.next())
            write_answer(out, answering(read_case(words)));
    } catch (const std::exception &error) { // mor-ref starts the program again for the next case: PRO-009
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}

} // namespace mor_ref::protocol

#endif
