// For yosys's techmap: an adder whose carry comes from logic gets a lowest bit that makes this carry.
// nextpnr 0.11 and before set the cell that leads such a carry into a chain to I0 | CIN instead of I0, so the result hung
// on the cell beside it (nextpnr 1799, mended after 0.11.1). The lowest bit adds the carry to itself: its own carry comes
// from a constant, and what it hands on is the carry.
(* techmap_celltype = "$alu" *)
module _70_carry_from_logic(A, B, CI, BI, X, Y, CO);
    parameter A_SIGNED = 0;
    parameter B_SIGNED = 0;
    parameter A_WIDTH = 1;
    parameter B_WIDTH = 1;
    parameter Y_WIDTH = 1;
    parameter _TECHMAP_CONSTMSK_CI_ = 0;

    input [A_WIDTH-1:0] A;
    input [B_WIDTH-1:0] B;
    input CI, BI;
    output [Y_WIDTH-1:0] X, Y, CO;

    // yosys makes LUTs of adders of one or two bits, which have no such chain.
    wire _TECHMAP_FAIL_ = _TECHMAP_CONSTMSK_CI_ || Y_WIDTH <= 2;
    wire [2:0] lowest;
    // An operand may have no bits, which Verilog writes as two: what is beyond the width is cut off.
    wire [A_WIDTH:0] a = {A, CI};
    wire [B_WIDTH:0] b = {B, CI ^ BI};

    \$alu #(
        .A_SIGNED(A_SIGNED), .B_SIGNED(B_SIGNED),
        .A_WIDTH(A_WIDTH + 1), .B_WIDTH(B_WIDTH + 1), .Y_WIDTH(Y_WIDTH + 1)
    ) _TECHMAP_REPLACE_ (
        .A(a), .B(b), .CI(1'b0), .BI(BI),
        .X({X, lowest[0]}), .Y({Y, lowest[1]}), .CO({CO, lowest[2]})
    );
endmodule
