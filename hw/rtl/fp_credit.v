// Lets beats into what never stops, while the queue behind it has room for them all.
// Each beat that `enters` takes a place of ROOM until it has left the queue (`freed`) or has come to nothing on the way
// (`skipped`). `s_ready` is a register, so that nothing behind delays it.
// Counters have the bits that their limits need, and limits are integers: the widths differ on purpose.
/* verilator lint_off WIDTHEXPAND */
/* verilator lint_off WIDTHTRUNC */
module fp_credit #(
    parameter ROOM = 4
) (
    input wire clk,
    input wire rst,
    input wire s_valid,
    output wire s_ready,
    output wire enters,
    input wire freed,
    input wire skipped
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

    reg [bits_of(ROOM)-1:0] room;
    reg ready;

    assign s_ready = ready;
    assign enters = s_valid & ready;

    always @(posedge clk) begin
        if (rst) begin
            room <= ROOM;
            ready <= 1'b1;
        end else begin
            room <= room + freed + skipped - enters;
            ready <= freed | skipped | (room != enters);
        end
    end
endmodule
