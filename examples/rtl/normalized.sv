// The significand of a binary32 number with its leading one in bit 23, also of a subnormal number (SCL-001).
// The number is significand * 2^(exponent - 150).
module normalized (
    input  logic [31:0]       x,  // not 0, finite
    output logic [23:0]       significand,
    output logic signed [9:0] exponent
);
  wire [7:0]  field = x[30:23];
  wire [22:0] fraction = x[22:0];
  always_comb begin
    significand = {field != 0, fraction};
    exponent = field != 0 ? $signed({2'b0, field}) : 10'sd1;
    for (int i = 0; i < 23; i++)
      if (significand < 24'h800000) begin
        significand = significand << 1;
        exponent = exponent - 10'sd1;
      end
  end
endmodule
