// Applies every vector of a case to gam_scale. README.md in this directory says how to run it.
module gam_scale_bench;
`include "e4m3.gam.svh"
  localparam int COUNT = e4m3_gam_count;
  localparam int SHOWN = 10;  // mismatches that are printed

  e4m3_gam_t vector;
  logic [$bits(vector)-1:0] words [0:COUNT-1];
  logic [22:0] mantissa;
  logic [7:0] exponent;
  logic [31:0] scale;
  string path;
  int file;
  int applied = 0, differing = 0;
  // Cover points, by the ids of rules.
  int zero_groups = 0, zero_blocks = 0, decrements = 0, equal_mantissas = 0, caps = 0, subnormals = 0;

  gam_scale #(.LARGEST(mor_ref_constants::E4M3_LARGEST_F32)) dut (
      .group_amax(vector.group_amax), .block_amax(vector.block_amax),
      .mantissa(mantissa), .exponent(exponent), .scale(scale));
  // The design does not compute the mantissa of the block (THM-006): it is here for a cover point.
  localparam logic [23:0] NUMERATOR = {1'b1, mor_ref_constants::E4M3_LARGEST_F32[22:0]};
  logic [22:0] block_mantissa;
  ideal_mantissa #(.NUMERATOR(NUMERATOR)) of_block (vector.block_amax, block_mantissa);

  initial begin
    if (!$value$plusargs("vectors=%s", path)) path = "e4m3.gam.mem";
    file = $fopen(path, "r");
    if (file == 0) $fatal(0, "%s cannot be read; give the vectors as +vectors=FILE", path);
    $fclose(file);
    $readmemh(path, words);
    if (^words[COUNT-1] === 1'bx)
      $fatal(0, "%s has fewer than %0d vectors; give those of this case as +vectors=FILE", path, COUNT);
    for (int i = 0; i < COUNT; i++) begin
      vector = words[i];
      #1;
      applied++;
      zero_groups += int'(vector.group_amax == 0);
      zero_blocks += int'(vector.block_amax == 0);
      decrements += int'(dut.has_block && dut.decrements);
      equal_mantissas += int'(dut.has_block && dut.mantissa == block_mantissa);
      caps += int'(dut.is_capped);
      subnormals += int'(dut.has_block && vector.block_amax[30:23] == 0);
      if (({9'b0, mantissa} == vector.mantissa && exponent == vector.exponent && scale == vector.scale) !== 1'b1)
      begin
        differing++;
        if (differing <= SHOWN)
          $display("%0d: group %h, block %h, given %h %h %h, expected %h %h %h", i, vector.group_amax,
                   vector.block_amax, mantissa, exponent, scale, vector.mantissa[22:0], vector.exponent,
                   vector.scale);
      end
    end
    if (differing == 0) $finish(0);
    else $fatal(0, "scales differ");  // this makes the exit status 1
  end

  final begin
    $display("covered: GAM-001 %0d groups of zeros, GAM-002 %0d blocks of zeros", zero_groups, zero_blocks);
    $display("covered: GAM-003 %0d decrements and %0d equal mantissas", decrements, equal_mantissas);
    $display("covered: GAM-004 %0d caps, SCL-001 %0d subnormal amaxes", caps, subnormals);
    if (applied != COUNT) $display("FAIL no vectors");
    else if (differing == 0) $display("PASS %0d vectors", COUNT);
    else $display("FAIL %0d of %0d", differing, COUNT);
  end
endmodule
