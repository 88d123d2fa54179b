// Every KH x KW window of an image that arrives pixel by pixel, row by row, at strides SH and SW.
// Tap (r, c) of a window lies at bits [(r * KW + c) * WIDTH +: WIDTH]. Windows do not cross the image's edges.
// It never waits: a pixel comes in at any clock with `s_valid`; two clocks later its window leaves, or a clock after it
// came it is reported as `skipped`. With SPREAD windows leave a clock later, from registers that need be near nothing but
// their readers. SLICE bits of a pixel each have their own line buffers; 36 fill a block memory, and distributed ones.
// Counters have the bits that their limits need, and limits are integers: the widths differ on purpose.
/* verilator lint_off WIDTHEXPAND */
/* verilator lint_off WIDTHTRUNC */
module fp_window #(
    parameter WIDTH = 8,
    parameter ROWS = 8,
    parameter COLUMNS = 8,
    parameter KH = 3,
    parameter KW = 3,
    parameter SH = 1,
    parameter SW = 1,
    parameter SPREAD = 0,
    parameter SLICE = 36
) (
    input wire clk,
    input wire rst,
    input wire [WIDTH-1:0] s_data,
    input wire s_valid,
    output wire [KH*KW*WIDTH-1:0] m_data,
    output wire m_valid,
    output wire skipped
);
    // Bits that hold `value`, at least one.
    function integer bits_of;
        input integer value;
        integer rest;
        begin
            bits_of = 1;
            for (rest = value >> 1; rest > 0; rest = rest >> 1) begin
                bits_of = bits_of + 1;
            end
        end
    endfunction

    wire [KH*KW*WIDTH-1:0] window;
    reg moves;
    reg whole;
    reg leaves;
    assign skipped = moves & ~whole;

    generate
        if (SPREAD != 0) begin : spread
            reg [KH*KW*WIDTH-1:0] again;
            reg later;
            assign m_data = again;
            assign m_valid = later;
            always @(posedge clk) begin
                again <= window;
                later <= leaves & ~rst;
            end
        end else begin : direct
            assign m_data = window;
            assign m_valid = leaves;
        end
    endgenerate

    genvar slice;
    genvar tap;
    generate
        for (slice = 0; slice < WIDTH; slice = slice + SLICE) begin : slices
            wire [KH*KW*((slice + SLICE < WIDTH) ? SLICE : WIDTH - slice)-1:0] taps;
            fp_taps #(
                .WIDTH((slice + SLICE < WIDTH) ? SLICE : WIDTH - slice),
                .COLUMNS(COLUMNS),
                .KH(KH),
                .KW(KW),
                .PHASE(slice / SLICE)
            ) part (
                .clk(clk),
                .rst(rst),
                .in_data(s_data[slice +: (slice + SLICE < WIDTH) ? SLICE : WIDTH - slice]),
                .in_valid(s_valid),
                .out_data(taps)
            );
            for (tap = 0; tap < KH * KW; tap = tap + 1) begin : each
                assign window[tap*WIDTH+slice +: (slice + SLICE < WIDTH) ? SLICE : WIDTH - slice] =
                    taps[tap*((slice + SLICE < WIDTH) ? SLICE : WIDTH - slice)
                        +: (slice + SLICE < WIDTH) ? SLICE : WIDTH - slice];
            end
        end
    endgenerate

    // Pixels and rows to go until the next window is whole.
    reg [bits_of(COLUMNS - 1)-1:0] column;
    reg [bits_of(ROWS - 1)-1:0] line_number;
    reg [bits_of(KW + SW)-1:0] columns_to_go;
    reg [bits_of(KH + SH)-1:0] rows_to_go;
    wire last_column = column == COLUMNS - 1;
    wire last_row = line_number == ROWS - 1;

    always @(posedge clk) begin
        moves <= s_valid & ~rst;
        whole <= (columns_to_go == 0) & (rows_to_go == 0);
        leaves <= moves & whole & ~rst;
        if (rst) begin
            column <= 0;
            line_number <= 0;
            columns_to_go <= KW - 1;
            rows_to_go <= KH - 1;
        end else if (s_valid) begin
            column <= last_column ? 0 : column + 1'b1;
            columns_to_go <= last_column ? KW - 1 : (columns_to_go == 0) ? SW - 1 : columns_to_go - 1'b1;
            if (last_column) begin
                line_number <= last_row ? 0 : line_number + 1'b1;
                rows_to_go <= last_row ? KH - 1 : (rows_to_go == 0) ? SH - 1 : rows_to_go - 1'b1;
            end
        end
    end
endmodule
