// The sum of BEATS beats, LANES signed numbers side by side; OUT_WIDTH bits hold every sum.
// Counters have the bits that their limits need, and limits are integers: the widths differ on purpose.
/* verilator lint_off WIDTHEXPAND */
/* verilator lint_off WIDTHTRUNC */
module fp_accumulate #(
    parameter LANES = 1,
    parameter WIDTH = 8,
    parameter OUT_WIDTH = 12,
    parameter BEATS = 4
) (
    input wire clk,
    input wire rst,
    input wire [LANES*WIDTH-1:0] s_data,
    input wire s_valid,
    output wire s_ready,
    output wire [LANES*OUT_WIDTH-1:0] m_data,
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

    reg [bits_of(BEATS - 1)-1:0] count;
    wire accept = s_valid & s_ready;
    wire last = count == BEATS - 1;

    assign s_ready = m_ready | ~m_valid;

    genvar lane;
    generate
        for (lane = 0; lane < LANES; lane = lane + 1) begin : lanes
            reg signed [OUT_WIDTH-1:0] sum;
            wire signed [OUT_WIDTH-1:0] addend;
            assign addend = {{(OUT_WIDTH-WIDTH){s_data[lane*WIDTH+WIDTH-1]}}, s_data[lane*WIDTH +: WIDTH]};
            assign m_data[lane*OUT_WIDTH +: OUT_WIDTH] = sum;
            always @(posedge clk) begin
                if (accept) begin
                    sum <= (count == 0) ? addend : sum + addend;
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
