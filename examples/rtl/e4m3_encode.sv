// Binary32 to e4m3: to nearest with ties to even, saturating, one NaN. It is combinational.
// The rules that the comments name are those of spec/encoding.md.
module e4m3_encode (
    input  logic [31:0] x,
    output logic [7:0]  code
);
  localparam logic [7:0] SMALLEST_NORMAL = 8'd121;  // the exponent field of 2^-6 in binary32
  localparam logic [6:0] LARGEST = 7'h7E;           // 448
  localparam logic [7:0] CANONICAL_NAN = 8'h7F;

  wire        sign = x[31];
  wire [7:0]  exponent = x[30:23];
  wire [22:0] mantissa = x[22:0];
  wire        is_nan = exponent == 8'hFF && mantissa != 0;

  // ENC-001: all bits of the input take part in the one rounding. Zeros and subnormal inputs have no
  // leading one, but they are too small for it to make a difference.
  wire [23:0] significand = {1'b1, mantissa};

  // ENC-002: units shrink with x down to those of 2^-6, and no further. After a shift of 5, k is 0 and
  // f is below one half, so that larger shifts would round alike.
  wire        is_small = exponent < SMALLEST_NORMAL;
  wire [7:0]  base = is_small ? SMALLEST_NORMAL : exponent;
  wire [7:0]  distance = base - exponent;
  wire [2:0]  shift = distance > 8'd5 ? 3'd5 : distance[2:0];
  wire [28:0] shifted = {significand, 5'b0} >> shift;
  wire [3:0]  k = shifted[28:25];
  wire        half = shifted[24];
  wire        sticky = |shifted[23:0];

  // ENC-003: up above one half, and from a tie if k is odd.
`ifdef PLANTED_BUG
  wire up = half;  // ties go away from zero; this is here only for seeing that the bench fails
`else
  wire up = half && (sticky || k[0]);
`endif

  // ENC-004: a k that becomes 16 carries into the exponent by itself.
  wire [7:0]  above = base - SMALLEST_NORMAL;
  wire [11:0] rounded = {1'b0, above, 3'b0} + {8'b0, k} + {11'b0, up};

  // ENC-006, ENC-008: a magnitude that is too large after rounding saturates, and infinity with it, whose
  // exponent field is the largest.
  wire [6:0] magnitude = rounded > {5'b0, LARGEST} ? LARGEST : rounded[6:0];

  // ENC-009: NaN loses its sign and payload. ENC-011: all else keeps its sign, zeros too.
  assign code = is_nan ? CANONICAL_NAN : {sign, magnitude};
endmodule
