// Tells adders of bits where numbers begin: 1 with `load` and for SHIFT clocks after it; `clear[k]` is that k clocks later.
module fp_serial_clear #(
    parameter SHIFT = 0,
    parameter LATER = 0
) (
    input wire clk,
    input wire load,
    output wire [LATER:0] clear
);
    wire now;

    generate
        if (SHIFT == 0) begin : at_once
            assign now = load;
        end else begin : longer
            reg [SHIFT-1:0] since;
            assign now = load | since[SHIFT-1];
            if (SHIFT == 1) begin : one
                always @(posedge clk) since <= load;
            end else begin : more
                always @(posedge clk) since <= {since[SHIFT-2:0], 1'b0} | {SHIFT{load}};
            end
        end
    endgenerate

    fp_history #(.LATER(LATER)) row (.clk(clk), .in(now), .out(clear));
endmodule
