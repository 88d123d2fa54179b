// Adds two numbers that arrive bit by bit, lowest first: a + (b << n), or a - (b << n). A full adder does it.
// `clear` is 1 in the clock before the lowest bit of `a` and in the n clocks from there; the lowest bit of `b` arrives
// with bit n of `a`. In the clock before a number's lowest bit, any bit leaves; `sum[k]` is the sum k clocks later.
module fp_serial_add #(
    parameter SUBTRACT = 0,
    parameter LATER = 0
) (
    input wire clk,
    input wire clear,
    input wire a,
    input wire b,
    output wire [LATER:0] sum
);
    reg total;
    reg carry;

    wire term = (b & ~clear) ^ (SUBTRACT != 0);
    wire over = (a & term) | (carry & (a | term));

    // As gates: a multiplexer would become the reset of a register, and those of a tile share one.
    always @(posedge clk) begin
        total <= a ^ term ^ carry;
        carry <= (SUBTRACT != 0) ? over | clear : over & ~clear;
    end

    fp_history #(.LATER(LATER)) row (.clk(clk), .in(total), .out(sum));
endmodule
