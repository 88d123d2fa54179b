// One beat of each of two streams leaves side by side, the first in the lowest bits.
module fp_join #(
    parameter WIDTH_A = 8,
    parameter WIDTH_B = 8
) (
    input wire [WIDTH_A-1:0] a_data,
    input wire a_valid,
    output wire a_ready,
    input wire [WIDTH_B-1:0] b_data,
    input wire b_valid,
    output wire b_ready,
    output wire [WIDTH_A+WIDTH_B-1:0] m_data,
    output wire m_valid,
    input wire m_ready
);
    assign m_data = {b_data, a_data};
    assign m_valid = a_valid & b_valid;
    assign a_ready = m_ready & b_valid;
    assign b_ready = m_ready & a_valid;
endmodule
