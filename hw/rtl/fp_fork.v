// Each beat goes to both exits, to each as soon as that one is ready, and is taken when both have it.
module fp_fork #(
    parameter WIDTH = 8
) (
    input wire clk,
    input wire rst,
    input wire [WIDTH-1:0] s_data,
    input wire s_valid,
    output wire s_ready,
    output wire [WIDTH-1:0] a_data,
    output wire a_valid,
    input wire a_ready,
    output wire [WIDTH-1:0] b_data,
    output wire b_valid,
    input wire b_ready
);
    reg a_done;
    reg b_done;

    assign a_data = s_data;
    assign b_data = s_data;
    assign a_valid = s_valid & ~a_done;
    assign b_valid = s_valid & ~b_done;
    assign s_ready = (a_done | a_ready) & (b_done | b_ready);

    always @(posedge clk) begin
        if (rst | (s_valid & s_ready)) begin
            a_done <= 1'b0;
            b_done <= 1'b0;
        end else begin
            a_done <= a_done | (a_valid & a_ready);
            b_done <= b_done | (b_valid & b_ready);
        end
    end
endmodule
