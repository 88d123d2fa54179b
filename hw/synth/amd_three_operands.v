// For yosys's techmap: a sum of three operands in one carry chain, one LUT a bit. O5 of a LUT6_2 is the majority of three bits,
// O6 their parity and the majority of the bits below; CARRY4 adds parities and majorities. Without this map, yosys takes two
// LUTs a bit before the chain. Source: UG474 7 Series CLB User Guide; J. Simkins and B. Philofsky, Structures and methods for
// implementing ternary adders/subtractors in programmable logic devices, US 7274211.
(* techmap_celltype = "$macc_v2" *)
module _80_sum_of_three (A, B, C, Y);
    parameter NPRODUCTS = 0;
    parameter NADDENDS = 0;
    parameter PRODUCT_NEGATED = 0;
    parameter ADDEND_NEGATED = 0;
    parameter A_SIGNED = 0;
    parameter B_SIGNED = 0;
    parameter C_SIGNED = 0;
    parameter A_WIDTHS = 0;
    parameter B_WIDTHS = 0;
    parameter C_WIDTHS = 0;
    parameter Y_WIDTH = 1;

    localparam W0 = C_WIDTHS[15:0];
    localparam W1 = C_WIDTHS >> 16 & 16'hffff;
    localparam W2 = C_WIDTHS >> 32 & 16'hffff;
    localparam [2:0] NEGATED = ADDEND_NEGATED;

    input [0:0] A, B;
    input [W0+W1+W2-1:0] C;
    output [Y_WIDTH-1:0] Y;

    parameter _TECHMAP_CONSTMSK_C_ = 0;
    parameter _TECHMAP_CONSTVAL_C_ = 0;
    wire _TECHMAP_FAIL_ = NPRODUCTS != 0 || NADDENDS != 3 || NEGATED == 3'b111 || W0 == 0 || W1 == 0 || W2 == 0;

    // Bit `place` of operand `number` in C; its sign above its own bits, or -1 for a 0 there.
    function integer bit_of;
        input integer number, place;
        integer first, width;
        begin
            first = number == 0 ? 0 : number == 1 ? W0 : W0 + W1;
            width = number == 0 ? W0 : number == 1 ? W1 : W2;
            bit_of = place < width ? first + place : C_SIGNED >> number & 1 ? first + width - 1 : -1;
        end
    endfunction

    function is_zero;
        input integer number, place;
        integer at;
        begin
            at = bit_of(number, place);
            is_zero = at < 0 ? 1 : (_TECHMAP_CONSTMSK_C_ >> at & 1) && !(_TECHMAP_CONSTVAL_C_ >> at & 1);
        end
    endfunction

    // The lowest bits to which at most one operand has a bit, which is not subtracted, are wires.
    function integer count_wires;
        input integer none;
        integer place, number, live, ended;
        begin
            count_wires = 0;
            ended = 0;
            for (place = 0; place < Y_WIDTH; place = place + 1) begin
                live = 0;
                for (number = 0; number < 3; number = number + 1)
                    if (!is_zero(number, place)) live = live + (NEGATED >> number & 1 ? 2 : 1);
                if (live > 1) ended = 1;
                if (!ended) count_wires = place + 1;
            end
        end
    endfunction
    localparam WIRES = count_wires(0);
    localparam CHAIN = Y_WIDTH - WIRES;
    localparam CELLS = (CHAIN + 3) / 4;

    genvar i, number;
    wire [3*Y_WIDTH-1:0] bits;
    generate
        for (i = 0; i < Y_WIDTH; i = i + 1) begin : operands
            for (number = 0; number < 3; number = number + 1) begin : operand
                localparam AT = bit_of(number, i);
                if (AT < 0) assign bits[3*i+number] = 1'b0;
                else assign bits[3*i+number] = C[AT];
            end
        end
        for (i = 0; i < WIRES; i = i + 1) begin : wires
            assign Y[i] = |bits[3*i+2:3*i];
        end
        if (CHAIN > 0) begin : chain
            // A subtracted operand is inverted, and 1 is added: below the lowest majority, then into the chain.
            localparam SUBTRACTED = 2'd0 + NEGATED[0] + NEGATED[1] + NEGATED[2];
            wire [4*CELLS:0] carried, parity, sum;
            assign carried[0] = SUBTRACTED > 0;
            wire [CELLS:0] carry;
            assign carry[0] = SUBTRACTED > 1;
            for (i = 0; i < 4 * CELLS; i = i + 1) begin : each
                if (i < CHAIN) begin : used
                    LUT6_2 #(.INIT({parity_of(NEGATED), majority_of(NEGATED)})) both (
                        .I0(bits[3*(WIRES+i)]), .I1(bits[3*(WIRES+i)+1]), .I2(bits[3*(WIRES+i)+2]), .I3(carried[i]),
                        .I4(1'b0), .I5(1'b1), .O6(parity[i]), .O5(carried[i + 1])
                    );
                    assign Y[WIRES + i] = sum[i];
                end else begin : unused
                    assign parity[i] = 1'b0;
                    assign carried[i + 1] = 1'b0;
                end
            end
            for (i = 0; i < CELLS; i = i + 1) begin : cells
                wire [3:0] out;
                CARRY4 four (
                    .CYINIT(i == 0 ? carry[0] : 1'b0), .CI(i == 0 ? 1'b0 : carry[i]),
                    .DI(carried[4*i+3:4*i]), .S(parity[4*i+3:4*i]), .O(sum[4*i+3:4*i]), .CO(out)
                );
                assign carry[i + 1] = out[3];
            end
        end
    endgenerate

    function [31:0] parity_of;
        input [2:0] negated;
        integer row;
        for (row = 0; row < 32; row = row + 1) parity_of[row] = ^(row[3:0] ^ {1'b0, negated});
    endfunction

    function [31:0] majority_of;
        input [2:0] negated;
        integer row;
        reg [2:0] x;
        for (row = 0; row < 32; row = row + 1) begin
            x = row[2:0] ^ negated;
            majority_of[row] = x[0] & x[1] | x[0] & x[2] | x[1] & x[2];
        end
    endfunction
endmodule
