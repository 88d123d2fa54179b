// A stream passes with one beat a clock and one clock of delay; neither direction has a path through.
// The second register takes the beat that arrives while the first cannot leave.
module fp_register #(
    parameter WIDTH = 8
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
    reg [WIDTH-1:0] first;
    reg [WIDTH-1:0] second;
    reg first_full;
    reg second_full;

    assign s_ready = ~second_full;
    assign m_data = first;
    assign m_valid = first_full;

    always @(posedge clk) begin
        if (m_ready | ~first_full) begin
            first <= second_full ? second : s_data;
        end
        if (~second_full) begin
            second <= s_data;
        end
        if (rst) begin
            first_full <= 1'b0;
            second_full <= 1'b0;
        end else if (m_ready | ~first_full) begin
            first_full <= second_full | s_valid;
            second_full <= 1'b0;
        end else if (s_valid) begin
            second_full <= 1'b1;
        end
    end
endmodule
