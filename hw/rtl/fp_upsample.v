// Every pixel stands FX times beside itself, and every row FY times below itself.
// Counters have the bits that their limits need, and limits are integers: the widths differ on purpose.
/* verilator lint_off WIDTHEXPAND */
/* verilator lint_off WIDTHTRUNC */
module fp_upsample #(
    parameter WIDTH = 8,
    parameter COLUMNS = 8,
    parameter FY = 2,
    parameter FX = 2
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

    // The row that is being repeated turns around once for each repetition.
    reg [bits_of(FX - 1)-1:0] copy_x;
    reg [bits_of(FY - 1)-1:0] copy_y;
    reg [bits_of(COLUMNS - 1)-1:0] column;
    wire last_copy = copy_x == FX - 1;
    wire last_column = column == COLUMNS - 1;
    wire fresh = copy_y == 0;
    wire [WIDTH-1:0] again;
    wire leave = m_valid & m_ready;

    assign m_data = fresh ? s_data : again;
    assign m_valid = s_valid | ~fresh;
    assign s_ready = fresh & last_copy & m_ready;

    wire unused_inside;
    fp_line_buffer #(.WIDTH(WIDTH), .DEPTH(COLUMNS)) row (
        .clk(clk),
        .rst(rst),
        .ce(leave & last_copy),
        .in_data(m_data),
        .out_data(again),
        .inside(unused_inside)
    );

    always @(posedge clk) begin
        if (rst) begin
            copy_x <= 0;
            copy_y <= 0;
            column <= 0;
        end else if (leave) begin
            copy_x <= last_copy ? 0 : copy_x + 1'b1;
            if (last_copy) begin
                column <= last_column ? 0 : column + 1'b1;
                if (last_column) begin
                    copy_y <= (copy_y == FY - 1) ? 0 : copy_y + 1'b1;
                end
            end
        end
    end
endmodule
