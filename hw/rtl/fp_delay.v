// What came in DEPTH clocks ago, and 0 after a reset; DEPTH is at least 1.
module fp_delay #(
    parameter DEPTH = 1
) (
    input wire clk,
    input wire rst,
    input wire in,
    output wire out
);
    reg [DEPTH-1:0] row;
    assign out = row[DEPTH-1];

    generate
        if (DEPTH == 1) begin : one
            always @(posedge clk) row <= in & ~rst;
        end else begin : more
            always @(posedge clk) row <= rst ? {DEPTH{1'b0}} : {row[DEPTH-2:0], in};
        end
    endgenerate
endmodule
