// A number that leaves bit by bit, lowest first, from the clock after `load` on, and then its sign for ever.
// `out[k]` is the bit k clocks later.
module fp_serial_in #(
    parameter WIDTH = 8,
    parameter SIGNED = 0,
    parameter LATER = 0
) (
    input wire clk,
    input wire load,
    input wire [WIDTH-1:0] in_data,
    output wire [LATER:0] out
);
    reg [WIDTH-1:0] rest;
    wire sign = (SIGNED != 0) & rest[WIDTH-1];

    generate
        if (WIDTH == 1) begin : one
            always @(posedge clk) rest <= load ? in_data : sign;
        end else begin : more
            always @(posedge clk) rest <= load ? in_data : {sign, rest[WIDTH-1:1]};
        end
    endgenerate

    fp_history #(.LATER(LATER)) row (.clk(clk), .in(rest[0]), .out(out));
endmodule
