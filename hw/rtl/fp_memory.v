// DEPTH words, one written and one read in a clock; what is read stands at `out_data` a clock later.
// Nothing is read from the place that is written in the same clock, which `no_rw_check` tells yosys.
module fp_memory #(
    parameter WIDTH = 8,
    parameter DEPTH = 16,
    parameter ADDRESS = 4
) (
    input wire clk,
    input wire write,
    input wire [ADDRESS-1:0] write_at,
    input wire [WIDTH-1:0] in_data,
    input wire read,
    input wire [ADDRESS-1:0] read_at,
    output reg [WIDTH-1:0] out_data
);
    (* no_rw_check *)
    reg [WIDTH-1:0] memory [0:DEPTH-1];

    always @(posedge clk) begin
        if (write) begin
            memory[write_at] <= in_data;
        end
        if (read) begin
            out_data <= memory[read_at];
        end
    end
endmodule
