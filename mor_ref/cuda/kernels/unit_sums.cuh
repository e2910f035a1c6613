// The sums that metrics of squares compare (MOR-009), as integers of 640 bits.
#pragma once
#include "significands.cuh"

constexpr u32 SUM_WORDS = 20, MAGNITUDE_WORDS = 9;
enum SumOf : u32 { SIGNAL, NOISE, ENERGY, PRODUCT, SUMS_OF_UNIT };

// The place of a magnitude's lowest bit above 2^-149.
MOR_DEVICE u32 place_of(u32 bits) { return u32(unit_of(bits) + 149); }

// `words` has the sums of each unit, and `largest` and `amax` those of each row of each unit: `across` of a row of the tensor.
struct UnitSums {
  u32* words;
  u64* unmeasured;
  u32 *largest, *amax;  // bits
  u64 across;
};

// Threads add to a sum in any order: the one whose addition wraps a word carries to the next.
MOR_DEVICE void add_word(u32* sum, u32 place, u32 word) {
  for (; word && place < SUM_WORDS; place++) {
    const u32 before = atomicAdd(sum + place, word);
    word = before + word < before;
  }
}
MOR_DEVICE void subtract_word(u32* sum, u32 place, u32 word) {
  for (; word && place < SUM_WORDS; place++) {
    const u32 before = atomicAdd(sum + place, 0u - word);
    word = before < word;
  }
}

MOR_DEVICE void add_product(u32* sum, u32 a, u32 b, bool is_negative) {
  const u64 product = u64(significand_of(a)) * significand_of(b);  // of 48 bits at most
  const u32 bit = place_of(a) + place_of(b), up = bit % 32, place = bit / 32;
  const u64 low = product << up, high = up ? product >> (64 - up) : 0;
  const u32 words[3] = {u32(low), u32(low >> 32), u32(high)};
  for (u32 k = 0; k < 3; k++)
    if (is_negative) subtract_word(sum, place + k, words[k]);
    else add_word(sum, place + k, words[k]);
}

// ---------------------------------------------------------------------- comparisons

// An integer that is not negative, the lowest word first.
struct Natural {
  const u32* words;
  u32 count;
};
// Of the side with the errors, and of the side with the numbers: integers that a threshold is made of.
struct Factors {
  Natural errors, numbers;
};

MOR_DEVICE bool is_zero(const Natural& number) {
  for (u32 k = 0; k < number.count; k++)
    if (number.words[k]) return false;
  return true;
}

// The words of a * b, from the lowest on.
struct Product {
  Natural a, b;
  u64 low, high;  // what the columns so far carry to the next
  MOR_MEMBER u32 word(u32 column) {
    for (u32 i = column < b.count ? 0 : column - b.count + 1; i < a.count && i <= column; i++) {
      const u64 more = u64(a.words[i]) * b.words[column - i];
      low += more;
      high += low < more;
    }
    const u32 lowest = u32(low);
    low = low >> 32 | high << 32;
    high >>= 32;
    return lowest;
  }
};

// Below 0 if a * b < c * d, 0 if they are equal, and else above 0.
MOR_DEVICE i32 compared(const Natural& a, const Natural& b, const Natural& c, const Natural& d) {
  Product left = {a, b, 0, 0}, right = {c, d, 0, 0};
  i32 sign = 0;  // that of the highest words that differ
  for (u32 column = 0; column < most(a.count + b.count, c.count + d.count); column++) {
    const u32 of_left = left.word(column), of_right = right.word(column);
    if (of_left != of_right) sign = of_left < of_right ? -1 : 1;
  }
  return sign;
}

// A finite magnitude in units of 2^-149.
struct WholeMagnitude {
  u32 words[MAGNITUDE_WORDS];
  MOR_MEMBER explicit WholeMagnitude(u32 bits) : words() {
    const u32 place = place_of(bits);
    const u64 shifted = u64(significand_of(bits)) << place % 32;
    words[place / 32] = u32(shifted);
    words[place / 32 + 1] = u32(shifted >> 32);
  }
  MOR_MEMBER Natural natural() const { return {words, MAGNITUDE_WORDS}; }
};
