// The enable of a pipeline of DEPTH registers and the valid bit that travels beside its data.
// All registers stop together while the last one holds a beat that cannot leave.
module fp_pipeline #(
    parameter DEPTH = 1
) (
    input wire clk,
    input wire rst,
    input wire s_valid,
    output wire s_ready,
    output wire ce,
    output wire m_valid,
    input wire m_ready
);
    reg [DEPTH-1:0] valid;

    assign m_valid = valid[DEPTH-1];
    assign ce = m_ready | ~valid[DEPTH-1];
    assign s_ready = ce;

    generate
        if (DEPTH == 1) begin : one
            always @(posedge clk) begin
                if (rst) begin
                    valid <= 1'b0;
                end else if (ce) begin
                    valid <= s_valid;
                end
            end
        end else begin : more
            always @(posedge clk) begin
                if (rst) begin
                    valid <= {DEPTH{1'b0}};
                end else if (ce) begin
                    valid <= {valid[DEPTH-2:0], s_valid};
                end
            end
        end
    endgenerate
endmodule
