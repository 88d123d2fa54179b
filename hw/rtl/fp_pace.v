// Holds pixels back so that those that complete a KH x KW window, at strides SH and SW, come at least CLOCKS clocks apart.
// Counters have the bits that their limits need, and limits are integers: the widths differ on purpose.
/* verilator lint_off WIDTHEXPAND */
/* verilator lint_off WIDTHTRUNC */
module fp_pace #(
    parameter WIDTH = 8,
    parameter ROWS = 8,
    parameter COLUMNS = 8,
    parameter KH = 3,
    parameter KW = 3,
    parameter SH = 1,
    parameter SW = 1,
    parameter CLOCKS = 2
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

    // Pixels and rows to go until the next window is whole; clocks until it may be.
    reg [bits_of(COLUMNS - 1)-1:0] column;
    reg [bits_of(ROWS - 1)-1:0] line_number;
    reg [bits_of(KW + SW)-1:0] columns_to_go;
    reg [bits_of(KH + SH)-1:0] rows_to_go;
    reg [bits_of(CLOCKS - 1)-1:0] wait_for;
    reg open;
    wire last_column = column == COLUMNS - 1;
    wire last_row = line_number == ROWS - 1;
    wire whole = (columns_to_go == 0) & (rows_to_go == 0);
    wire pass = open | ~whole;
    wire moves = m_valid & m_ready;

    assign m_data = s_data;
    assign m_valid = s_valid & pass;
    assign s_ready = m_ready & pass;

    always @(posedge clk) begin
        if (rst) begin
            column <= 0;
            line_number <= 0;
            columns_to_go <= KW - 1;
            rows_to_go <= KH - 1;
            wait_for <= 0;
            open <= 1'b1;
        end else begin
            if (moves) begin
                column <= last_column ? 0 : column + 1'b1;
                columns_to_go <= last_column ? KW - 1 : (columns_to_go == 0) ? SW - 1 : columns_to_go - 1'b1;
                if (last_column) begin
                    line_number <= last_row ? 0 : line_number + 1'b1;
                    rows_to_go <= last_row ? KH - 1 : (rows_to_go == 0) ? SH - 1 : rows_to_go - 1'b1;
                end
            end
            if (moves & whole) begin
                wait_for <= CLOCKS - 1;
                open <= CLOCKS == 1;
            end else if (!open) begin
                wait_for <= wait_for - 1'b1;
                open <= wait_for == 1;
            end
        end
    end
endmodule
