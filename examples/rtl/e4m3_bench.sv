// Applies every vector of a case to e4m3_encode. README.md beside this file says how to run it.
module e4m3_bench;
`include "e4m3.f32.rne.satfinite.canonical.svh"
  localparam int COUNT = e4m3_f32_rne_satfinite_canonical_count;
  localparam int SHOWN = 10;  // mismatches that are printed

  e4m3_f32_rne_satfinite_canonical_t vector;
  logic [$bits(vector)-1:0] words [0:COUNT-1];  // plain words, as Icarus has no arrays of structs
  logic [7:0] code;
  string path;
  int differing = 0;

  e4m3_encode dut (.x(vector.x), .code(code));

  initial begin
    if (!$value$plusargs("vectors=%s", path)) path = "e4m3.f32.rne.satfinite.canonical.mem";
    // Words that the file lacks stay all ones, which no encoder passes: NaN is to be 7f, and not ff.
    for (int i = 0; i < COUNT; i++) words[i] = '1;
    $readmemh(path, words);
    for (int i = 0; i < COUNT; i++) begin
      vector = words[i];
      #1;
      // Not !=, as that is unknown, and so not true, for a code with x bits.
      if ((code == vector.code) !== 1'b1) begin
        differing++;
        if (differing <= SHOWN)
          $display("%0d: input %h, given %h, expected %h", i, vector.x, code, vector.code);
      end
    end
    if (differing == 0) $finish(0);
    else $fatal(0, "codes differ");  // this makes the exit status 1
  end

  // Printed here, it comes after the lines of $fatal.
  final
    if (differing == 0) $display("PASS %0d vectors", COUNT);
    else $display("FAIL %0d of %0d", differing, COUNT);
endmodule
