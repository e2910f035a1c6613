"""The tables of instructions: what each opcode becomes in C++."""
