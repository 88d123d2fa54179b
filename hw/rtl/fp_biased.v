// The bias of each of OUTPUTS outputs, from a memory outside, above the sums that pass one after another.
// `at` asks for the `bias` of the sum that comes next or stands there; it is there a clock later.
/* verilator lint_off WIDTHEXPAND */
module fp_biased #(
    parameter WIDTH = 24,
    parameter OUTPUTS = 4,
    parameter B_WIDTH = 8,
    parameter BIAS = 2
) (
    input wire clk,
    input wire rst,
    output wire [BIAS-1:0] at,
    input wire [B_WIDTH-1:0] bias,
    input wire [WIDTH-1:0] s_data,
    input wire s_valid,
    output wire s_ready,
    output wire [B_WIDTH+WIDTH-1:0] m_data,
    output wire m_valid,
    input wire m_ready
);
    reg [BIAS-1:0] number;
    wire [BIAS-1:0] next = (number == OUTPUTS - 1) ? {BIAS{1'b0}} : number + 1'b1;

    assign at = (s_valid & m_ready) ? next : number;
    assign m_data = {bias, s_data};
    assign m_valid = s_valid;
    assign s_ready = m_ready;

    always @(posedge clk) begin
        number <= rst ? {BIAS{1'b0}} : at;
    end
endmodule
