// Every KH x KW window of each channel of an image that arrives pixel by pixel, row by row, one channel after another,
// at strides SH and SW. Tap (r, c) of a window lies at bits [(r * KW + c) * WIDTH +: WIDTH].
// The windows of all channels at one place leave one after another; a value that completes none leaves nothing.
// Counters have the bits that their limits need, and limits are integers: the widths differ on purpose.
/* verilator lint_off WIDTHEXPAND */
/* verilator lint_off WIDTHTRUNC */
module fp_channel_window #(
    parameter WIDTH = 8,
    parameter CHANNELS = 4,
    parameter ROWS = 8,
    parameter COLUMNS = 8,
    parameter KH = 3,
    parameter KW = 3,
    parameter SH = 1,
    parameter SW = 1
) (
    input wire clk,
    input wire rst,
    input wire [WIDTH-1:0] s_data,
    input wire s_valid,
    output wire s_ready,
    output wire [KH*KW*WIDTH-1:0] m_data,
    output wire m_valid,
    input wire m_ready
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

    reg [bits_of(CHANNELS - 1)-1:0] channel;
    reg [bits_of(COLUMNS - 1)-1:0] column;
    reg [bits_of(ROWS - 1)-1:0] line_number;
    // Pixels and rows to go until the next window is whole.
    reg [bits_of(KW + SW)-1:0] columns_to_go;
    reg [bits_of(KH + SH)-1:0] rows_to_go;
    wire last_channel = channel == CHANNELS - 1;
    wire last_column = column == COLUMNS - 1;
    wire last_row = line_number == ROWS - 1;
    wire whole = (columns_to_go == 0) & (rows_to_go == 0);
    wire moves = s_valid & s_ready;

    assign m_valid = s_valid & whole;
    assign s_ready = m_ready | ~whole;

    // What arrives now in the lowest row of the window, and above it what arrived whole lines ago.
    wire [KH*WIDTH-1:0] arriving;
    assign arriving[(KH-1)*WIDTH +: WIDTH] = s_data;

    generate
        if (KH > 1) begin : lines
            wire unused_inside;
            fp_line_buffer #(.WIDTH((KH-1)*WIDTH), .DEPTH(COLUMNS*CHANNELS)) line_buffer (
                .clk(clk),
                .rst(rst),
                .ce(moves),
                .in_data(arriving[KH*WIDTH-1:WIDTH]),
                .out_data(arriving[(KH-1)*WIDTH-1:0]),
                .inside(unused_inside)
            );
        end
    endgenerate

    // Column c of the window; the last one arrives, and the one before it arrived a pixel ago.
    wire [KW*KH*WIDTH-1:0] columns;
    assign columns[(KW-1)*KH*WIDTH +: KH*WIDTH] = arriving;

    genvar c;
    genvar r;
    generate
        for (c = 0; c < KW; c = c + 1) begin : each
            if (c < KW - 1) begin : earlier
                wire unused_inside;
                fp_line_buffer #(.WIDTH(KH*WIDTH), .DEPTH(CHANNELS)) pixel (
                    .clk(clk),
                    .rst(rst),
                    .ce(moves),
                    .in_data(columns[(c+1)*KH*WIDTH +: KH*WIDTH]),
                    .out_data(columns[c*KH*WIDTH +: KH*WIDTH]),
                    .inside(unused_inside)
                );
            end
            for (r = 0; r < KH; r = r + 1) begin : taps
                assign m_data[(r*KW+c)*WIDTH +: WIDTH] = columns[(c*KH+r)*WIDTH +: WIDTH];
            end
        end
    endgenerate

    always @(posedge clk) begin
        if (rst) begin
            channel <= 0;
            column <= 0;
            line_number <= 0;
            columns_to_go <= KW - 1;
            rows_to_go <= KH - 1;
        end else if (moves) begin
            channel <= last_channel ? 0 : channel + 1'b1;
            if (last_channel) begin
                column <= last_column ? 0 : column + 1'b1;
                columns_to_go <= last_column ? KW - 1 : (columns_to_go == 0) ? SW - 1 : columns_to_go - 1'b1;
                if (last_column) begin
                    line_number <= last_row ? 0 : line_number + 1'b1;
                    rows_to_go <= last_row ? KH - 1 : (rows_to_go == 0) ? SH - 1 : rows_to_go - 1'b1;
                end
            end
        end
    end
endmodule
