// Every beat leaves BEATS times.
// Counters have the bits that their limits need, and limits are integers: the widths differ on purpose.
/* verilator lint_off WIDTHEXPAND */
/* verilator lint_off WIDTHTRUNC */
module fp_repeat #(
    parameter WIDTH = 8,
    parameter BEATS = 4
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

    reg [bits_of(BEATS - 1)-1:0] count;
    wire last = count == BEATS - 1;

    assign m_data = s_data;
    assign m_valid = s_valid;
    assign s_ready = last & m_ready;

    always @(posedge clk) begin
        if (rst) begin
            count <= 0;
        end else if (m_valid & m_ready) begin
            count <= last ? 0 : count + 1'b1;
        end
    end
endmodule
