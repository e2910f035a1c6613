// All that a translated kernel uses.
#pragma once
#include "bounded.h"
#include "contraction.h"
#include "conversions.h"
#include "halves.h"
#include "floats.h"
#include "integers.h"
#include "options.h"
#include "warpgroups.h"

namespace ptx {

// Local memory that is there as long as its function runs.
struct LocalMemory {
  Machine& m;
  Frame frame;
  LocalMemory(Machine& machine, char* memory, u64 size, u8* written) : m(machine), frame{u64(memory), size, written, machine.frames} { m.frames = &frame; }
  ~LocalMemory() { m.frames = frame.outer; }
};

}  // namespace ptx
