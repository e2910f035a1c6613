// The chapter on blocks (BLK-002): how a tensor is cut, and how teams of threads share the work.
//
// A block is cut into pieces of some rows and columns, and each piece is for a team: a thread, a warp
// or a block of threads. What a team finds is reduced among its threads, as integers, and then added
// to what others found: no order of anything has a say.
#pragma once
#include "numbers.cuh"
#include "vectors.cuh"

struct Cut {
  u64 rows, columns;              // of the tensor
  u64 block_rows, block_columns;  // sides, clipped to those of the tensor
  u64 grid_rows, grid_columns;    // how many blocks there are
  u64 group_rows, group_columns;  // sides of groups, in elements
  u64 groups_across;              // how many groups there are in a row
  u64 piece_rows, piece_columns;  // sides of pieces
  u64 pieces_down, pieces_across; // how many pieces a block has
};

struct Piece {
  u64 block;  // its number, row by row
  u64 top, left, rows, columns;
};

constexpr u32 THREADS = 256;

// a / b, and the remainder.
struct Division {
  u64 quotient, rest;
};

// Most often blocks have one piece, or a tensor one block: GPUs divide integers slowly.
MOR_DEVICE Division divided(u64 a, u64 b) {
  if (b == 1) return {a, 0};
  return {a / b, a % b};
}

MOR_DEVICE u64 pieces_of(const Cut& cut) {
  return cut.grid_rows * cut.grid_columns * cut.pieces_down * cut.pieces_across;
}

// A piece of a block at the edge may have no rows or columns.
MOR_DEVICE Piece piece_of(const Cut& cut, u64 number) {
  const Division block = divided(number, cut.pieces_down * cut.pieces_across);
  const Division place = divided(block.quotient, cut.grid_columns);
  const Division place_in_block = divided(block.rest, cut.pieces_across);
  const u64 top = place.quotient * cut.block_rows, left = place.rest * cut.block_columns;
  const u64 bottom = least(top + cut.block_rows, cut.rows), right = least(left + cut.block_columns, cut.columns);
  Piece piece;
  piece.block = block.quotient;
  piece.top = top + place_in_block.quotient * cut.piece_rows;
  piece.left = left + place_in_block.rest * cut.piece_columns;
  piece.rows = piece.top < bottom ? least(cut.piece_rows, bottom - piece.top) : 0;
  piece.columns = piece.left < right ? least(cut.piece_columns, right - piece.left) : 0;
  return piece;
}

// The number of the group that a block belongs to (BLK-003).
MOR_DEVICE u64 group_of(const Cut& cut, u64 block) {
  const u64 top = block / cut.grid_columns * cut.block_rows, left = block % cut.grid_columns * cut.block_columns;
  return top / cut.group_rows * cut.groups_across + left / cut.group_columns;
}

// ---------------------------------------------------------------------- teams

// Every thread by itself.
MOR_DEVICE u64 first_of_thread() { return u64(blockIdx.x) * blockDim.x + threadIdx.x; }
MOR_DEVICE u64 threads_of_grid() { return u64(gridDim.x) * blockDim.x; }

// TEAM threads: 1, 32 or THREADS. A team goes through the pieces with all others of the grid.
template <u32 TEAM> struct Team {
  static MOR_MEMBER u32 rank() { return threadIdx.x % TEAM; }
  static MOR_MEMBER u64 number() { return u64(blockIdx.x) * (THREADS / TEAM) + threadIdx.x / TEAM; }
  static MOR_MEMBER u64 count() { return u64(gridDim.x) * (THREADS / TEAM); }
};

// What the lanes of a warp have, as one: by one instruction for 32 bits since sm_80.
template <class Operation, class Type> MOR_DEVICE Type shuffled(Type value) {
  for (u32 distance = 16; distance; distance /= 2)
    value = Operation::of(value, __shfl_xor_sync(MOR_ALL_LANES, value, i32(distance)));
  return value;
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define MOR_OF_WARP(Operation, name, value) __reduce_##name##_sync(MOR_ALL_LANES, value)
#else
#define MOR_OF_WARP(Operation, name, value) shuffled<Operation>(value)
#endif

struct Larger {
  template <class Type> static MOR_MEMBER Type of(Type a, Type b) { return a > b ? a : b; }
  static MOR_MEMBER u32 of_warp(u32 value) { return MOR_OF_WARP(Larger, max, value); }
};
struct Smaller {
  template <class Type> static MOR_MEMBER Type of(Type a, Type b) { return a < b ? a : b; }
  static MOR_MEMBER u32 of_warp(u32 value) { return MOR_OF_WARP(Smaller, min, value); }
};
struct Sum {
  template <class Type> static MOR_MEMBER Type of(Type a, Type b) { return a + b; }
  static MOR_MEMBER u64 of_warp(u64 value) { return shuffled<Sum>(value); }
  // A sum of halves has no more than 32 bits.
  static MOR_MEMBER u64 of_warp(u32 value) {
    return MOR_OF_WARP(Sum, add, value & 0xFFFF) + (u64(MOR_OF_WARP(Sum, add, value >> 16)) << 16);
  }
};

// What the threads of a team have, as one, for its thread of rank 0.
template <u32 TEAM, class Operation, class Type> MOR_DEVICE auto reduced(Type value) {
  typedef decltype(Operation::of_warp(value)) Wide;
  if (TEAM == 1) return Wide(value);
  Wide combined = Operation::of_warp(value);
  if (TEAM > 32) {
    MOR_SHARED(Wide, parts, THREADS / 32);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = combined;
    __syncthreads();
    if (threadIdx.x < 32)
      for (u32 warp = 1; warp < THREADS / 32; warp++) combined = Operation::of(combined, parts[warp]);
    __syncthreads();  // the next reduction writes to the same place
  }
  return combined;
}

// ---------------------------------------------------------------------- elements

template <u32 TEAM, u32 COUNT, u32 AT_ONCE, class Stored, class Visit>
MOR_DEVICE void visit_runs(const Stored* x, const Cut& cut, const Piece& piece, Visit visit) {
  u32 across = 1;  // neighbouring threads: a power of two, so that nothing is divided below
  while (across < TEAM && u64(across) * COUNT < piece.columns) across *= 2;
  const u32 rank = Team<TEAM>::rank(), down = TEAM / across;
  for (u64 j = u64(rank % across) * COUNT; j < piece.columns; j += u64(across) * COUNT) {
    const u64 column = piece.left + j;
    u64 i = rank / across;
    for (; i + (AT_ONCE - 1) * down < piece.rows; i += AT_ONCE * down) {
      Run<Stored, COUNT> runs[AT_ONCE];
      for (u32 k = 0; k < AT_ONCE; k++) {
        runs[k].at = (piece.top + i + k * down) * cut.columns + column;
        load(runs[k], x);
      }
      for (u32 k = 0; k < AT_ONCE; k++) visit(runs[k], piece.top + i + k * down, column);
    }
    for (; AT_ONCE > 1 && i < piece.rows; i += down) {
      Run<Stored, COUNT> run;
      run.at = (piece.top + i) * cut.columns + column;
      load(run, x);
      visit(run, piece.top + i, column);
    }
  }
}

// Calls `visit` with the runs of numbers of a piece that are this thread's, and where they begin: vectors where rows, blocks and
// pieces begin where vectors do, else single numbers. Where little is made of a number, several loads
// AT_ONCE are worth their registers. `To` is what `visit` makes of numbers, if that is wider.
template <u32 TEAM, u32 AT_ONCE = 1, class To = u8, class Stored, class Visit>
MOR_DEVICE void visit_piece(const Stored* x, const Cut& cut, const Piece& piece, Visit visit) {
  constexpr u64 each = BOTH_WAYS<Stored, To>;
  if (is_aligned(x) && cut.columns % each == 0 && cut.block_columns % each == 0 && cut.piece_columns % each == 0)
    visit_runs<TEAM, BOTH_WAYS<Stored, To>, AT_ONCE>(x, cut, piece, visit);
  else
    visit_runs<TEAM, 1, AT_ONCE>(x, cut, piece, visit);
}
