// TAPS products that come each clock, added up: `total` is the sum of all that came with `valid` since the first one
// behind a `last`. It is whole, with `leaves`, LEVELS + 1 clocks after the last of its products came; LEVELS is that of a
// tree over TAPS. Sums are modulo 2 ** SUM_WIDTH, which holds every total.
/* verilator lint_off WIDTHEXPAND */
/* verilator lint_off WIDTHTRUNC */
module fp_total #(
    parameter TAPS = 9,
    parameter WIDTH = 16,
    parameter SUM_WIDTH = 24,
    parameter LEVELS = 4
) (
    input wire clk,
    input wire rst,
    input wire valid,
    input wire last,
    input wire [TAPS*WIDTH-1:0] products,
    output wire leaves,
    output wire [SUM_WIDTH-1:0] total
);
    genvar level;
    genvar place;
    generate
        for (level = 0; level <= LEVELS; level = level + 1) begin : levels
            // So many sums stand side by side here.
            wire [((TAPS + (1 << level) - 1) >> level)*(WIDTH+level)-1:0] sums;
        end
        assign levels[0].sums = products;
        for (level = 0; level < LEVELS; level = level + 1) begin : tree
            for (place = 0; place < ((TAPS + (2 << level) - 1) >> (level + 1)); place = place + 1) begin : pairs
                wire signed [WIDTH+level-1:0] one = levels[level].sums[2*place*(WIDTH+level) +: WIDTH+level];
                reg signed [WIDTH+level:0] added;
                assign levels[level+1].sums[place*(WIDTH+level+1) +: WIDTH+level+1] = added;
                if (2 * place + 1 < ((TAPS + (1 << level) - 1) >> level)) begin : both
                    wire signed [WIDTH+level-1:0] two = levels[level].sums[(2*place+1)*(WIDTH+level) +: WIDTH+level];
                    always @(posedge clk) added <= one + two;
                end else begin : lone
                    always @(posedge clk) added <= {one[WIDTH+level-1], one};
                end
            end
        end
    endgenerate

    // What came with each level's sums; bit 0 is what comes.
    wire [LEVELS:0] valids;
    wire [LEVELS:0] lasts;
    assign valids[0] = valid;
    assign lasts[0] = last;
    generate
        if (LEVELS > 0) begin : later
            reg [LEVELS-1:0] valid_row;
            reg [LEVELS-1:0] last_row;
            assign valids[LEVELS:1] = valid_row;
            assign lasts[LEVELS:1] = last_row;
            always @(posedge clk) begin
                valid_row <= rst ? {LEVELS{1'b0}} : valids[LEVELS-1:0];
                last_row <= lasts[LEVELS-1:0];
            end
        end
    endgenerate

    reg begins;
    reg done;
    reg signed [SUM_WIDTH-1:0] sum;
    wire signed [WIDTH+LEVELS-1:0] root = levels[LEVELS].sums;
    assign total = sum;
    assign leaves = done;

    always @(posedge clk) begin
        done <= valids[LEVELS] & lasts[LEVELS] & ~rst;
        if (rst) begin
            begins <= 1'b1;
        end else if (valids[LEVELS]) begin
            begins <= lasts[LEVELS];
        end
        if (valids[LEVELS]) begin
            sum <= begins ? root : sum + root;
        end
    end
endmodule
