// Sends the rows of a transposed matrix: the first part of each of COLUMNS pixels, then the second of each, and so on.
// The first parts leave as they come; the others wait in a memory of a row of pixels.
// Counters have the bits that their limits need, and limits are integers: the widths differ on purpose.
/* verilator lint_off WIDTHEXPAND */
/* verilator lint_off WIDTHTRUNC */
module fp_transpose #(
    parameter WIDTH = 8,
    parameter PARTS = 2,
    parameter COLUMNS = 8
) (
    input wire clk,
    input wire rst,
    input wire [PARTS*WIDTH-1:0] s_data,
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

    localparam REST = (PARTS - 1) * WIDTH;

    reg [bits_of(PARTS - 1)-1:0] part;
    reg [bits_of(COLUMNS - 1)-1:0] column;
    wire last_column = column == COLUMNS - 1;
    wire fresh = part == 0;
    // The parts that a pixel in the memory has yet to send, the next one lowest.
    wire [REST-1:0] kept;
    wire leave = m_valid & m_ready;

    assign m_data = fresh ? s_data[WIDTH-1:0] : kept[WIDTH-1:0];
    assign m_valid = s_valid | ~fresh;
    assign s_ready = fresh & m_ready;

    wire unused_inside;
    fp_line_buffer #(.WIDTH(REST), .DEPTH(COLUMNS)) row (
        .clk(clk),
        .rst(rst),
        .ce(leave),
        .in_data(fresh ? s_data[PARTS*WIDTH-1:WIDTH] : kept >> WIDTH),
        .out_data(kept),
        .inside(unused_inside)
    );

    always @(posedge clk) begin
        if (rst) begin
            part <= 0;
            column <= 0;
        end else if (leave) begin
            column <= last_column ? 0 : column + 1'b1;
            if (last_column) begin
                part <= (part == PARTS - 1) ? 0 : part + 1'b1;
            end
        end
    end
endmodule
