// BEATS_A beats of the first stream leave, then BEATS_B of the second, and so on in turn.
// Counters have the bits that their limits need, and limits are integers: the widths differ on purpose.
/* verilator lint_off WIDTHEXPAND */
/* verilator lint_off WIDTHTRUNC */
module fp_append #(
    parameter WIDTH = 8,
    parameter BEATS_A = 2,
    parameter BEATS_B = 2
) (
    input wire clk,
    input wire rst,
    input wire [WIDTH-1:0] a_data,
    input wire a_valid,
    output wire a_ready,
    input wire [WIDTH-1:0] b_data,
    input wire b_valid,
    output wire b_ready,
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

    reg [bits_of(BEATS_A + BEATS_B - 1)-1:0] count;
    wire first = count < BEATS_A;

    assign m_data = first ? a_data : b_data;
    assign m_valid = first ? a_valid : b_valid;
    assign a_ready = first & m_ready;
    assign b_ready = ~first & m_ready;

    always @(posedge clk) begin
        if (rst) begin
            count <= 0;
        end else if (m_valid & m_ready) begin
            count <= (count == BEATS_A + BEATS_B - 1) ? 0 : count + 1'b1;
        end
    end
endmodule
