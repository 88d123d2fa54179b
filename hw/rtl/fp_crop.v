// An image without its TOP first and BOTTOM last rows and its LEFT first and RIGHT last columns.
// Counters have the bits that their limits need, and limits are integers: the widths differ on purpose.
/* verilator lint_off WIDTHEXPAND */
/* verilator lint_off WIDTHTRUNC */
module fp_crop #(
    parameter WIDTH = 8,
    parameter ROWS = 8,
    parameter COLUMNS = 8,
    parameter TOP = 1,
    parameter BOTTOM = 1,
    parameter LEFT = 1,
    parameter RIGHT = 1
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

    reg [bits_of(ROWS - 1)-1:0] row;
    reg [bits_of(COLUMNS - 1)-1:0] column;
    wire last_column = column == COLUMNS - 1;
    wire last_row = row == ROWS - 1;
    wire in_rows = (row + 1'b1 > TOP) & (row < ROWS - BOTTOM);
    wire in_columns = (column + 1'b1 > LEFT) & (column < COLUMNS - RIGHT);
    wire in_image = in_rows & in_columns;

    assign m_data = s_data;
    assign m_valid = s_valid & in_image;
    assign s_ready = m_ready | ~in_image;

    always @(posedge clk) begin
        if (rst) begin
            row <= 0;
            column <= 0;
        end else if (s_valid & s_ready) begin
            column <= last_column ? 0 : column + 1'b1;
            if (last_column) begin
                row <= last_row ? 0 : row + 1'b1;
            end
        end
    end
endmodule
