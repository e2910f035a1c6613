// The scale of a block with gam scaling, from the amax of the block and of its group. It is combinational.
// The rules that the comments name are those of spec/scales.md.
module gam_scale #(
    parameter logic [31:0] LARGEST = 32'h43E00000  // of the element format, in binary32: 448 of e4m3
) (
    input  logic [31:0] group_amax,  // finite, without sign
    input  logic [31:0] block_amax,
    output logic [22:0] mantissa,    // of the group
    output logic [7:0]  exponent,    // of the block: a code of e8m0
    output logic [31:0] scale
);
  localparam logic [23:0] NUMERATOR = {1'b1, LARGEST[22:0]};
  wire [22:0] group_mantissa;
  ideal_mantissa #(.NUMERATOR(NUMERATOR)) of_group (group_amax, group_mantissa);
  wire [23:0] significand;
  wire signed [9:0] exponent_of_amax;
  normalized of_block (block_amax, significand, exponent_of_amax);

  // GAM-001, GAM-002: without a number other than zero, the mantissa and the exponent are 0.
  wire has_group = group_amax != 0, has_block = block_amax != 0;
  assign mantissa = has_group ? group_mantissa : 23'd0;

  // THM-004: the exponent of the ideal scale of the block, without a division.
  wire is_larger = significand > NUMERATOR;
  wire signed [9:0] block_exponent =
      $signed({2'b0, LARGEST[30:23]}) - exponent_of_amax - (is_larger ? 10'sd1 : 10'sd0);

  // GAM-003, as THM-006 has it: the rebuilt scale is never above the ideal one.
`ifdef PLANTED_BUG
  wire decrements = 1'b0;  // this is here only for seeing that the bench fails
`else
  wire [48:0] doubled = is_larger ? {NUMERATOR, 25'b0} : {1'b0, NUMERATOR, 24'b0};
  wire decrements = doubled < {25'b0, significand} * ({24'b0, 1'b1, mantissa, 1'b0} - 49'd1);
`endif
  wire signed [9:0] e = has_block ? block_exponent - (decrements ? 10'sd1 : 10'sd0) : 10'sd0;

  // GAM-004: the largest exponent comes after the decrement.
  wire is_capped = e > 10'sd127;
  wire signed [9:0] stored = (is_capped ? 10'sd127 : e) + 10'sd127;
  assign exponent = stored[7:0];

  // GAM-005: no e is below -126 if LARGEST is at least 4 and the group has the larger amax.
  assign scale = {1'b0, exponent, mantissa};
endmodule

// SCL-002: the mantissa of the largest number / amax, rounded to 24 significant bits.
module ideal_mantissa #(
    parameter logic [23:0] NUMERATOR = 24'hE00000  // the significand of the largest number
) (
    input  logic [31:0] amax,  // not 0
    output logic [22:0] mantissa
);
  // SCL-001: subnormal numbers are not flushed.
  wire [23:0] significand;
  wire signed [9:0] exponent_of_amax;
  normalized of_amax (amax, significand, exponent_of_amax);

  // The quotient has 24 bits: the numerator is moved up by one more if it is smaller.
  wire is_smaller = NUMERATOR < significand;
  wire [47:0] dividend = is_smaller ? {NUMERATOR, 24'b0} : {1'b0, NUMERATOR, 23'b0};
  wire [47:0] quotient = dividend / {24'b0, significand};
  wire [47:0] rest = dividend % {24'b0, significand};

  // There is no tie, and rounding never reaches the next binade.
  wire up = {rest[46:0], 1'b0} > {24'b0, significand};
  wire [47:0] rounded = quotient + {47'b0, up};
  assign mantissa = rounded[22:0];
endmodule
