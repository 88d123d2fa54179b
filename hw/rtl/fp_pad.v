// An image with FILL around it: TOP rows above, BOTTOM below, LEFT and RIGHT columns beside.
// Nothing of an image leaves before its first pixel is offered.
// Counters have the bits that their limits need, and limits are integers: the widths differ on purpose.
/* verilator lint_off WIDTHEXPAND */
/* verilator lint_off WIDTHTRUNC */
module fp_pad #(
    parameter WIDTH = 8,
    parameter ROWS = 8,
    parameter COLUMNS = 8,
    parameter TOP = 1,
    parameter BOTTOM = 1,
    parameter LEFT = 1,
    parameter RIGHT = 1,
    parameter [WIDTH-1:0] FILL = 0
) (
    input wire clk,
    input wire rst,
    input wire [WIDTH-1:0] s_data,
    input wire s_valid,
    output wire s_ready,
    output wire [WIDTH-1:0] m_data,
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

    reg [bits_of(TOP + ROWS + BOTTOM - 1)-1:0] row;
    reg [bits_of(LEFT + COLUMNS + RIGHT - 1)-1:0] column;
    wire last_column = column == LEFT + COLUMNS + RIGHT - 1;
    wire last_row = row == TOP + ROWS + BOTTOM - 1;
    wire [bits_of(TOP + ROWS + BOTTOM - 1)-1:0] next_row;
    wire [bits_of(LEFT + COLUMNS + RIGHT - 1)-1:0] next_column;
    assign next_column = last_column ? 0 : column + 1'b1;
    assign next_row = ~last_column ? row : last_row ? 0 : row + 1'b1;

    // Known a clock before, for streams on both sides wait for it. One sum each, so that a side of 0 compares nothing
    // with zero.
    reg in_image;
    reg begins;
    wire next_in_rows = (next_row + 1'b1 > TOP) & (next_row < TOP + ROWS);
    wire next_in_columns = (next_column + 1'b1 > LEFT) & (next_column < LEFT + COLUMNS);

    assign m_data = in_image ? s_data : FILL;
    assign m_valid = s_valid | (~in_image & ~begins);
    assign s_ready = in_image & m_ready;

    always @(posedge clk) begin
        if (rst) begin
            row <= 0;
            column <= 0;
            in_image <= (TOP == 0) & (LEFT == 0);
            begins <= 1'b1;
        end else if (m_valid & m_ready) begin
            row <= next_row;
            column <= next_column;
            in_image <= next_in_rows & next_in_columns;
            begins <= last_column & last_row;
        end
    end
endmodule
