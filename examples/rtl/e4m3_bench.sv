// Applies every vector of a case to e4m3_encode. README.md in this directory says how to run it.
module e4m3_bench;
`include "e4m3.f32.rne.satfinite.canonical.svh"
  localparam int COUNT = e4m3_f32_rne_satfinite_canonical_count;
  localparam int SHOWN = 10;  // mismatches that are printed

  e4m3_f32_rne_satfinite_canonical_t vector;
  logic [$bits(vector)-1:0] words [0:COUNT-1];  // plain words, as Icarus has no arrays of structs
  logic [7:0] code;
  string path;
  int file;
  int applied = 0, differing = 0;

  e4m3_encode dut (.x(vector.x), .code(code));

  initial begin
    if (!$value$plusargs("vectors=%s", path)) path = "e4m3.f32.rne.satfinite.canonical.mem";
    file = $fopen(path, "r");
    if (file == 0) $fatal(0, "%s cannot be read; give the vectors as +vectors=FILE", path);
    $fclose(file);
    // Words that the file lacks stay unknown.
    $readmemh(path, words);
    if (^words[COUNT-1] === 1'bx)
      $fatal(0, "%s has fewer than %0d vectors; give those of this case as +vectors=FILE", path, COUNT);
    for (int i = 0; i < COUNT; i++) begin
      vector = words[i];
      #1;
      applied++;
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
    if (applied != COUNT) $display("FAIL no vectors");
    else if (differing == 0) $display("PASS %0d vectors", COUNT);
    else $display("FAIL %0d of %0d", differing, COUNT);
endmodule
