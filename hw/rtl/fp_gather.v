// BEATS beats leave as one, the first in the lowest bits.
// Counters have the bits that their limits need, and limits are integers: the widths differ on purpose.
/* verilator lint_off WIDTHEXPAND */
/* verilator lint_off WIDTHTRUNC */
module fp_gather #(
    parameter WIDTH = 8,
    parameter BEATS = 2
) (
    input wire clk,
    input wire rst,
    input wire [WIDTH-1:0] s_data,
    input wire s_valid,
    output wire s_ready,
    output wire [BEATS*WIDTH-1:0] m_data,
    output reg m_valid,
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

    reg [BEATS*WIDTH-1:0] beats;
    reg [bits_of(BEATS - 1)-1:0] count;
    wire accept = s_valid & s_ready;
    wire last = count == BEATS - 1;

    assign m_data = beats;
    assign s_ready = m_ready | ~m_valid;

    generate
        if (BEATS == 1) begin : one
            always @(posedge clk) begin
                if (accept) begin
                    beats <= s_data;
                end
            end
        end else begin : more
            always @(posedge clk) begin
                if (accept) begin
                    beats <= {s_data, beats[BEATS*WIDTH-1:WIDTH]};
                end
            end
        end
    endgenerate

    always @(posedge clk) begin
        if (rst) begin
            m_valid <= 1'b0;
            count <= 0;
        end else if (accept) begin
            m_valid <= last;
            count <= last ? 0 : count + 1'b1;
        end else if (m_ready) begin
            m_valid <= 1'b0;
        end
    end
endmodule
