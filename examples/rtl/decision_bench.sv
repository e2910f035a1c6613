// Applies the vectors of three cases to decision, one for each metric. README.md says how to run it.
module decision_bench;
`include "mean_relative_error.svh"
`include "not_worse_than.svh"
`include "fits_range.e5m2.svh"
  localparam int COUNT = mean_relative_error_count + not_worse_than_count + fits_range_e5m2_count;
  localparam int LONGEST = 1 << 16;
  localparam int SHOWN = 10;  // mismatches that are printed

  mean_relative_error_t vector;  // the fields are those of the other cases
  logic [$bits(vector)-1:0] words [0:LONGEST-1];
  logic mean_accepts, not_worse_accepts, range_accepts;
  string directory;
  int applied = 0, differing = 0;
  int accepted[0:2], refused[0:2];  // cover points, by metric

  decision dut (
      .sum(vector.sum), .nonzero(vector.nonzero), .nonfinite(vector.nonfinite), .limit(vector.limit),
      .yardstick_sum(vector.yardstick_sum), .amax(vector.amax), .amin(vector.amin),
      .mean_accepts(mean_accepts), .not_worse_accepts(not_worse_accepts), .range_accepts(range_accepts));

  task automatic apply(input string name, input int metric, input int count);
    string path = {directory, "/", name, ".mem"};
    int file = $fopen(path, "r");
    logic given;
    if (file == 0) $fatal(0, "%s cannot be read; give its directory as +vectors=DIRECTORY", path);
    $fclose(file);
    $readmemh(path, words, 0, count - 1);
    if (^words[count-1] === 1'bx)
      $fatal(0, "%s has fewer than %0d vectors; give those of this case", path, count);
    for (int i = 0; i < count; i++) begin
      vector = words[i];
      #1;
      given = metric == 0 ? mean_accepts : metric == 1 ? not_worse_accepts : range_accepts;
      applied++;
      accepted[metric] += int'(vector.accepted[0]);
      refused[metric] += int'(!vector.accepted[0]);
      if ((given == vector.accepted[0]) !== 1'b1) begin
        differing++;
        if (differing <= SHOWN)
          $display("%s %0d: given %b, expected %b", name, i, given, vector.accepted[0]);
      end
      words[i] = 'x;
    end
  endtask

  initial begin
    if (!$value$plusargs("vectors=%s", directory)) directory = ".";
    for (int metric = 0; metric < 3; metric++) begin
      accepted[metric] = 0;
      refused[metric] = 0;
    end
    apply("mean_relative_error", 0, mean_relative_error_count);
    apply("not_worse_than", 1, not_worse_than_count);
    apply("fits_range.e5m2", 2, fits_range_e5m2_count);
    if (differing == 0) $finish(0);
    else $fatal(0, "decisions differ");  // this makes the exit status 1
  end

  final begin
    $display("covered: MOR-002 %0d accepted and %0d refused", accepted[0], refused[0]);
    $display("covered: MOR-003 %0d accepted and %0d refused", accepted[1], refused[1]);
    $display("covered: MOR-004 %0d accepted and %0d refused", accepted[2], refused[2]);
    if (applied != COUNT) $display("FAIL no vectors");
    else if (differing == 0) $display("PASS %0d vectors", COUNT);
    else $display("FAIL %0d of %0d", differing, COUNT);
  end
endmodule
