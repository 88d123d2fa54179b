// Every KH x KW window of an image that arrives pixel by pixel, row by row, at strides SH and SW.
// Tap (r, c) of a window lies at bits [(r * KW + c) * WIDTH +: WIDTH]. Windows do not cross the image's edges.
// It never waits: a pixel comes in at every clock with `s_valid`, and two clocks later either its window leaves or, a
// clock before, the pixel is reported as `skipped`. So all taps move by a register that does nothing else.
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
    parameter SW = 1
) (
    input wire clk,
    input wire rst,
    input wire [WIDTH-1:0] s_data,
    input wire s_valid,
    output wire [KH*KW*WIDTH-1:0] m_data,
    output reg m_valid,
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

    reg [WIDTH-1:0] pixel;
    reg moves;
    reg whole;
    assign skipped = moves & ~whole;

    // What arrives now in the lowest row of the window, and above it what arrived whole lines ago.
    wire [KH*WIDTH-1:0] arriving;
    assign arriving[(KH-1)*WIDTH +: WIDTH] = pixel;

    genvar row;
    generate
        for (row = 0; row < KH; row = row + 1) begin : rows
            if (row < KH - 1) begin : line
                fp_line_buffer #(.WIDTH(WIDTH), .DEPTH(COLUMNS)) line_buffer (
                    .clk(clk),
                    .rst(rst),
                    .ce(moves),
                    .in_data(arriving[(row+1)*WIDTH +: WIDTH]),
                    .out_data(arriving[row*WIDTH +: WIDTH])
                );
            end
            reg [KW*WIDTH-1:0] taps;
            assign m_data[row*KW*WIDTH +: KW*WIDTH] = taps;
            if (KW == 1) begin : narrow
                always @(posedge clk) begin
                    if (moves) begin
                        taps <= arriving[row*WIDTH +: WIDTH];
                    end
                end
            end else begin : wide
                always @(posedge clk) begin
                    if (moves) begin
                        taps <= {arriving[row*WIDTH +: WIDTH], taps[KW*WIDTH-1:WIDTH]};
                    end
                end
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
        pixel <= s_data;
        moves <= s_valid & ~rst;
        whole <= (columns_to_go == 0) & (rows_to_go == 0);
        m_valid <= moves & whole & ~rst;
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
