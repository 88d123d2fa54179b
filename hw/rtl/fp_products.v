// TAPS products a clock, added up: `total` is the sum of all that came with `valid` since the first one behind a `last`.
// `total` is whole, with `leaves`, LEVELS + 4 clocks after its last products came; LEVELS is that of a tree over TAPS.
module fp_products #(
    parameter TAPS = 9,
    parameter X_WIDTH = 8,
    parameter X_SIGNED = 1,
    parameter W_WIDTH = 8,
    parameter SUM_WIDTH = 24,
    parameter LEVELS = 4
) (
    input wire clk,
    input wire rst,
    input wire valid,
    input wire last,
    input wire [TAPS*X_WIDTH-1:0] x,
    input wire [TAPS*W_WIDTH-1:0] weights,
    output wire leaves,
    output wire signed [SUM_WIDTH-1:0] total
);
    localparam WIDTH = X_WIDTH + W_WIDTH;

    genvar level;
    genvar place;
    generate
        for (level = 0; level <= LEVELS; level = level + 1) begin : levels
            // So many sums stand side by side here.
            wire [((TAPS + (1 << level) - 1) >> level)*(WIDTH+level)-1:0] sums;
        end
        for (place = 0; place < TAPS; place = place + 1) begin : taps
            reg signed [X_WIDTH:0] factor;
            reg signed [W_WIDTH-1:0] weight;
            (* use_dsp = "yes" *) reg signed [WIDTH-1:0] product;
            wire sign = (X_SIGNED != 0) & x[place*X_WIDTH+X_WIDTH-1];
            // The product of numbers of so many bits needs no more than WIDTH.
            /* verilator lint_off WIDTHTRUNC */
            always @(posedge clk) begin
                factor <= {sign, x[place*X_WIDTH +: X_WIDTH]};
                weight <= weights[place*W_WIDTH +: W_WIDTH];
                product <= factor * weight;
            end
            /* verilator lint_on WIDTHTRUNC */
            assign levels[0].sums[place*WIDTH +: WIDTH] = product;
        end
        for (level = 0; level < LEVELS; level = level + 1) begin : tree
            for (place = 0; place < ((TAPS + (2 << level) - 1) >> (level + 1)); place = place + 1) begin : pairs
                wire signed [WIDTH+level-1:0] one = levels[level].sums[2*place*(WIDTH+level) +: WIDTH+level];
                reg signed [WIDTH+level:0] sum;
                assign levels[level+1].sums[place*(WIDTH+level+1) +: WIDTH+level+1] = sum;
                if (2 * place + 1 < ((TAPS + (1 << level) - 1) >> level)) begin : both
                    wire signed [WIDTH+level-1:0] two = levels[level].sums[(2*place+1)*(WIDTH+level) +: WIDTH+level];
                    always @(posedge clk) sum <= one + two;
                end else begin : lone
                    always @(posedge clk) sum <= {one[WIDTH+level-1], one};
                end
            end
        end
    endgenerate

    reg [LEVELS+1:0] valids;
    reg [LEVELS+1:0] lasts;
    wire whole = valids[LEVELS+1] & lasts[LEVELS+1];
    reg begins;
    reg done;
    reg signed [SUM_WIDTH-1:0] sum;
    wire signed [WIDTH+LEVELS-1:0] root = levels[LEVELS].sums;
    assign total = sum;
    assign leaves = done;

    // Sums are modulo 2 ** SUM_WIDTH, which holds every total.
    /* verilator lint_off WIDTHEXPAND */
    /* verilator lint_off WIDTHTRUNC */
    always @(posedge clk) begin
        valids <= rst ? {(LEVELS+2){1'b0}} : {valids[LEVELS:0], valid};
        lasts <= {lasts[LEVELS:0], last};
        done <= whole & ~rst;
        if (rst) begin
            begins <= 1'b1;
        end else if (valids[LEVELS+1]) begin
            begins <= lasts[LEVELS+1];
        end
        if (valids[LEVELS+1]) begin
            sum <= begins ? root : sum + root;
        end
    end
endmodule
