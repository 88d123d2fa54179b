// The last WIDTH bits of a number that arrives bit by bit, lowest first, side by side from a clock after the last.
module fp_serial_out #(
    parameter WIDTH = 8
) (
    input wire clk,
    input wire in,
    output wire [WIDTH-1:0] out_data
);
    reg [WIDTH-1:0] word;
    assign out_data = word;

    generate
        if (WIDTH == 1) begin : one
            always @(posedge clk) word <= in;
        end else begin : more
            always @(posedge clk) word <= {in, word[WIDTH-1:1]};
        end
    endgenerate
endmodule
