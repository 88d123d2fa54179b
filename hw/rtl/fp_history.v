// A bit and what it was: `out[n]` is `in` of n clocks ago. Where nothing is kept, the clock has no reader.
/* verilator lint_off UNUSEDSIGNAL */
module fp_history #(
    parameter LATER = 0
) (
    input wire clk,
    input wire in,
    output wire [LATER:0] out
);
    generate
        if (LATER == 0) begin : now
            assign out = in;
        end else begin : before
            reg [LATER-1:0] earlier;
            assign out = {earlier, in};
            always @(posedge clk) earlier <= out[LATER-1:0];
        end
    endgenerate
endmodule
