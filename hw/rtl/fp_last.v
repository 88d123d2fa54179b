// `last` is 1 beside the last of every BEATS beats.
// Counters have the bits that their limits need, and limits are integers: the widths differ on purpose.
/* verilator lint_off WIDTHEXPAND */
/* verilator lint_off WIDTHTRUNC */
module fp_last #(
    parameter BEATS = 4
) (
    input wire clk,
    input wire rst,
    input wire valid,
    input wire ready,
    output wire last
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

    assign last = count == BEATS - 1;

    always @(posedge clk) begin
        if (rst) begin
            count <= 0;
        end else if (valid & ready) begin
            count <= last ? 0 : count + 1'b1;
        end
    end
endmodule
