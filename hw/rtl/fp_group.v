// One group of multipliers of `fp_scheduled`: its copy of the beats, its products, its stored sums.
//
// A step comes as `word` with `came`: {last, TAPS weights, gap}. The piece of a beat that it multiplies lies `gap` pieces
// behind the one after that of the step before; the first step of a place, with `first`, begins at START. Two clocks
// later its factors are there. `stores_first` is 1 when what the first step made may be stored.
// Counters have the bits that their limits need, and limits are integers: the widths differ on purpose.
/* verilator lint_off WIDTHEXPAND */
/* verilator lint_off WIDTHTRUNC */
module fp_group #(
    parameter TAPS = 9,
    parameter X_WIDTH = 8,
    parameter X_SIGNED = 1,
    parameter W_WIDTH = 8,
    parameter SUM_WIDTH = 24,
    parameter LEVELS = 4,
    parameter SPLIT = 1,
    parameter TOGETHER = 1,
    parameter IN_LUTS = 0,
    parameter SIDE = 1,
    parameter PIECE = 0,
    parameter CHANNEL = 2,
    parameter SLOT = 2,
    parameter BUFFER = 1,
    parameter GAP = 0,
    parameter [CHANNEL+PIECE-1:0] START = 0
) (
    input wire clk,
    input wire rst,
    input wire [TOGETHER-1:0] write,
    input wire [SIDE+CHANNEL-1:0] write_at,
    input wire [SPLIT*TAPS*X_WIDTH-1:0] in_data,
    input wire came,
    input wire first,
    input wire [TAPS*W_WIDTH+GAP:0] word,
    input wire [SIDE-1:0] side,
    input wire stores_first,
    input wire [BUFFER-1:0] stores_at,
    input wire reads,
    input wire [BUFFER+SLOT-1:0] read_at,
    output wire [TOGETHER*SUM_WIDTH-1:0] out_data
);
    localparam WIDTH = X_WIDTH + W_WIDTH;
    // Clocks of the products.
    localparam THROUGH = (IN_LUTS != 0 ? 2 : TOGETHER) + 1;

    wire [CHANNEL+PIECE-1:0] gap;
    reg [CHANNEL+PIECE-1:0] at;
    reg [TAPS*W_WIDTH:0] kept;
    reg [TAPS*W_WIDTH:0] weights;
    reg fetch;
    reg [THROUGH:0] valids;
    reg [THROUGH-1:0] lasts;
    wire [TOGETHER*TAPS*X_WIDTH-1:0] x;
    wire [TOGETHER*TAPS*WIDTH-1:0] products;

    generate
        if (GAP == 0) begin : none
            assign gap = 0;
        end else begin : some
            assign gap = word[GAP-1:0];
        end
    endgenerate

    always @(posedge clk) begin
        if (came) begin
            at <= first ? START : at + gap + 1'b1;
        end
        kept <= word[TAPS*W_WIDTH+GAP:GAP];
        weights <= kept;
        fetch <= came & ~rst;
        valids <= rst ? {(THROUGH+1){1'b0}} : {valids[THROUGH-1:0], fetch};
        lasts <= {lasts[THROUGH-2:0], weights[TAPS*W_WIDTH]};
    end

    genvar n;
    generate
        for (n = 0; n < TOGETHER; n = n + 1) begin : values
            wire [SPLIT*TAPS*X_WIDTH-1:0] beat;
            fp_memory #(.WIDTH(SPLIT*TAPS*X_WIDTH), .DEPTH(1 << (SIDE + CHANNEL)), .ADDRESS(SIDE+CHANNEL)) beats (
                .clk(clk),
                .write(write[n]),
                .write_at(write_at),
                .in_data(in_data),
                .read(1'b1),
                .read_at({side, at[PIECE +: CHANNEL]}),
                .out_data(beat)
            );
            if (SPLIT == 1) begin : whole_beats
                assign x[n*TAPS*X_WIDTH +: TAPS*X_WIDTH] = beat;
            end else begin : pieces
                reg [PIECE-1:0] piece;
                always @(posedge clk) piece <= at[PIECE-1:0];
                assign x[n*TAPS*X_WIDTH +: TAPS*X_WIDTH] = beat[piece*TAPS*X_WIDTH +: TAPS*X_WIDTH];
            end
        end
    endgenerate

    fp_products #(
        .TAPS(TAPS),
        .X_WIDTH(X_WIDTH),
        .X_SIGNED(X_SIGNED),
        .W_WIDTH(W_WIDTH),
        .TOGETHER(TOGETHER),
        .IN_LUTS(IN_LUTS)
    ) multipliers (
        .clk(clk),
        .x(x),
        .weights(weights[TAPS*W_WIDTH-1:0]),
        .products(products)
    );

    // Sums are stored one after another.
    reg [SLOT-1:0] next_slot;
    wire [SLOT-1:0] slot = stores_first ? 0 : next_slot;
    wire [TOGETHER-1:0] leaves;
    always @(posedge clk) begin
        next_slot <= slot + leaves[0];
    end

    generate
        for (n = 0; n < TOGETHER; n = n + 1) begin : totals
            wire [SUM_WIDTH-1:0] total;
            fp_total #(.TAPS(TAPS), .WIDTH(WIDTH), .SUM_WIDTH(SUM_WIDTH), .LEVELS(LEVELS)) additions (
                .clk(clk),
                .rst(rst),
                .valid(valids[THROUGH]),
                .last(lasts[THROUGH-1]),
                .products(products[n*TAPS*WIDTH +: TAPS*WIDTH]),
                .leaves(leaves[n]),
                .total(total)
            );
            fp_memory #(.WIDTH(SUM_WIDTH), .DEPTH(1 << (BUFFER + SLOT)), .ADDRESS(BUFFER+SLOT)) sums (
                .clk(clk),
                .write(leaves[n]),
                .write_at({stores_at, slot}),
                .in_data(total),
                .read(reads),
                .read_at(read_at),
                .out_data(out_data[n*SUM_WIDTH +: SUM_WIDTH])
            );
        end
    endgenerate
endmodule
