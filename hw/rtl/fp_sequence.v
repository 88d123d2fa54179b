// The number of each beat, 0 to BEATS - 1 and again from 0, above the data that passes.
/* verilator lint_off WIDTHEXPAND */
module fp_sequence #(
    parameter WIDTH = 8,
    parameter BEATS = 4,
    parameter BITS = 2
) (
    input wire clk,
    input wire rst,
    input wire [WIDTH-1:0] s_data,
    input wire s_valid,
    output wire s_ready,
    output wire [BITS+WIDTH-1:0] m_data,
    output wire m_valid,
    input wire m_ready
);
    reg [BITS-1:0] number;

    assign m_data = {number, s_data};
    assign m_valid = s_valid;
    assign s_ready = m_ready;

    always @(posedge clk) begin
        if (rst) begin
            number <= {BITS{1'b0}};
        end else if (s_valid & m_ready) begin
            number <= (number == BEATS - 1) ? {BITS{1'b0}} : number + 1'b1;
        end
    end
endmodule
