// Lets beats into a pipeline of DEPTH registers that never stops, while the queue behind it has room for them all.
// The queue takes every beat that `leaves` and reports each one that it has `freed`; it holds ROOM beats, and with
// DEPTH + 3 of them one beat enters every clock. `s_ready` is a register, so that nothing behind delays it.
// Counters have the bits that their limits need, and limits are integers: the widths differ on purpose.
/* verilator lint_off WIDTHEXPAND */
/* verilator lint_off WIDTHTRUNC */
module fp_credit #(
    parameter DEPTH = 1,
    parameter ROOM = 4
) (
    input wire clk,
    input wire rst,
    input wire s_valid,
    output wire s_ready,
    output wire leaves,
    input wire freed
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

    reg [DEPTH-1:0] valid;
    reg [bits_of(ROOM)-1:0] room;
    reg ready;
    wire accept = s_valid & ready;

    assign s_ready = ready;
    assign leaves = valid[DEPTH-1];

    always @(posedge clk) begin
        if (rst) begin
            room <= ROOM;
            ready <= 1'b1;
        end else begin
            if (accept != freed) begin
                room <= accept ? room - 1'b1 : room + 1'b1;
            end
            ready <= freed | (room != accept);
        end
    end

    generate
        if (DEPTH == 1) begin : one
            always @(posedge clk) valid <= accept & ~rst;
        end else begin : more
            always @(posedge clk) valid <= rst ? {DEPTH{1'b0}} : {valid[DEPTH-2:0], accept};
        end
    endgenerate
endmodule
