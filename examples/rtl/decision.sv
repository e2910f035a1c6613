// Whether each metric of MoR accepts a unit, from the sums of the unit. It is combinational.
// The rules that the comments name are those of spec/policies.md.
module decision (
    input  logic [63:0] sum,
    input  logic [63:0] nonzero,
    input  logic [63:0] nonfinite,
    input  logic [31:0] limit,          // T of the mean relative error
    input  logic [63:0] yardstick_sum,  // of the other representation
    input  logic [31:0] amax,           // in binary32, without sign
    input  logic [31:0] amin,
    output logic        mean_accepts,
    output logic        not_worse_accepts,
    output logic        range_accepts   // of e5m2
);
  // MOR-001: an element that is lost refuses the unit under every metric.
  wire keeps_all = nonfinite == 0;

  // MOR-002: equality does not accept.
  wire [95:0] bound = {64'b0, limit} * {32'b0, nonzero};
`ifdef PLANTED_BUG
  assign mean_accepts = keeps_all && {32'b0, sum} <= bound;  // this is here only for seeing a bench fail
`else
  assign mean_accepts = keeps_all && (nonzero == 0 || {32'b0, sum} < bound);
`endif

  // MOR-003: a tie accepts.
  assign not_worse_accepts = keeps_all && sum <= yardstick_sum;

  // MOR-004: amax <= amin * 1.75 * 2^29, exactly. Both sides have their leading one in bit 26.
  wire [23:0] amax_significand, amin_significand;
  wire signed [9:0] amax_exponent, amin_exponent;
  normalized of_amax (amax, amax_significand, amax_exponent);
  normalized of_amin (amin, amin_significand, amin_exponent);
  wire [26:0] left = {amax_significand, 3'b0};
  wire [26:0] product = {3'b0, amin_significand} * 27'd7;
  wire is_long = product[26];
  wire [26:0] right = is_long ? product : {product[25:0], 1'b0};
  wire signed [9:0] right_exponent = amin_exponent + (is_long ? 10'sd30 : 10'sd29);
  wire is_less = amax_exponent < right_exponent;
  wire is_equal = amax_exponent == right_exponent;
  wire fits = amax == 0 || (amin != 0 && (is_less || (is_equal && left <= right)));
  assign range_accepts = keeps_all && (nonzero == 0 || fits);
endmodule
