// Compares e4m3_encode with the C library of mor_ref on random bits. README.md says how to run it.
module e4m3_scoreboard;
  import mor_ref_dpi::*;
  localparam int SHOWN = 10;  // mismatches that are printed

  logic [31:0] x;
  logic [7:0] code;
  int unsigned state;
  int count = 100000, seed = 1, differing = 0;
  longint expected;

  e4m3_encode dut (.x(x), .code(code));

  // Every third number is near the range of e4m3, where roundings, ties and saturation are.
  function automatic logic [31:0] drawn(input int unsigned word, input int i);
    if (i % 3 != 0) return word;
    return {word[31], 8'd112 + {3'b0, word[30:26]}, word[25:22], word[21] ? 19'b0 : word[18:0]};
  endfunction

  initial begin
    void'($value$plusargs("count=%d", count));
    void'($value$plusargs("seed=%d", seed));
    if (count < 1) $fatal(0, "count is %0d, and nothing is compared; give +count=NUMBER", count);
    state = seed == 0 ? 1 : seed;  // from 0 it would never change
    for (int i = 0; i < count; i++) begin
      state ^= state << 13;  // xorshift, so that all simulators draw the same numbers
      state ^= state >> 17;
      state ^= state << 5;
      x = drawn(state, i);
      #1;
      expected = mor_dpi_encode(MOR_E4M3, MOR_RNE, MOR_SATFINITE, MOR_CANONICAL, MOR_F32, {32'b0, x});
      if (({56'b0, code} == expected) !== 1'b1) begin
        differing++;
        if (differing <= SHOWN) $display("%0d: input %h, given %h, expected %h", i, x, code, expected[7:0]);
      end
    end
    if (differing == 0) $display("PASS %0d numbers", count);
    else $display("FAIL %0d of %0d", differing, count);
    if (differing == 0) $finish;
    else $fatal(0, "codes differ");  // this makes the exit status other than 0
  end
endmodule
