// The product of NARROW bits, one to eight, which have a sign if SIGNED, and of WIDE bits with a sign, made of adders.
// It leaves three clocks after its factors came.
//
// Each two bits of the narrow factor, a digit, choose none, one, two or three times the wide one. The upper two digits
// make one sum, the lower ones another. The highest bit of a number with a sign counts negative: its digit is -2 to 1.
module fp_product #(
    parameter NARROW = 8,
    parameter SIGNED = 1,
    parameter WIDE = 8,
    parameter WIDTH = 16
) (
    input wire clk,
    input wire [NARROW-1:0] narrow,
    input wire [WIDE-1:0] wide,
    output wire [WIDTH-1:0] product
);
    localparam DIGITS = (NARROW + 1) / 2;
    localparam UPPER = DIGITS > 1 ? 2 : 1;
    localparam LOWER = DIGITS - UPPER;
    // Bits of a multiple, and of the sum of two.
    localparam ROW = WIDE + 2;
    localparam PART = WIDE + 4;

    reg [2*DIGITS-1:0] bits;
    reg signed [WIDE-1:0] value;
    reg signed [ROW-1:0] three;
    reg signed [PART-1:0] low;
    reg signed [PART-1:0] high;
    reg signed [WIDTH-1:0] total;
    wire signed [WIDE-1:0] given = wide;
    wire signed [ROW-1:0] one = {{2{value[WIDE-1]}}, value};
    assign product = total;

    // What each digit chooses, and the last one of a number with a sign: its size, and whether it is negative.
    wire signed [PART-1:0] rows [0:3];
    wire signed [PART-1:0] last;
    wire negative;
    genvar n;
    generate
        for (n = 0; n < 4; n = n + 1) begin : digits
            if (n < DIGITS) begin : there
                wire signed [ROW-1:0] chosen = bits[2*n+1] ? (bits[2*n] ? three : one <<< 1) : (bits[2*n] ? one : 0);
                assign rows[n] = {{(PART-ROW){chosen[ROW-1]}}, chosen};
            end else begin : none
                assign rows[n] = 0;
            end
        end
        if (SIGNED != 0) begin : with_sign
            wire signed [ROW-1:0] size = (bits[2*DIGITS-1] & ~bits[2*DIGITS-2]) ? one <<< 1 : (bits[2*DIGITS-2] ? one : 0);
            assign negative = bits[2*DIGITS-1];
            assign last = {{(PART-ROW){size[ROW-1]}}, size};
        end else begin : without_sign
            assign negative = 1'b0;
            assign last = rows[DIGITS-1];
        end
    endgenerate
    wire [PART-1:0] placed = last <<< (2 * (UPPER - 1));
    wire [PART-1:0] beside = UPPER == 1 ? 0 : rows[LOWER];
    // The lowest bit only hands a carry on.
    wire [PART:0] upper = {beside, 1'b1} + {placed ^ {PART{negative}}, negative};
    wire unused_carry = upper[0];

    /* verilator lint_off WIDTHTRUNC */
    /* verilator lint_off WIDTHEXPAND */
    always @(posedge clk) begin
        bits <= {{2{SIGNED != 0 & narrow[NARROW-1]}}, narrow};
        value <= wide;
        three <= given + (given <<< 1);
        low <= LOWER == 0 ? 0 : LOWER == 1 ? rows[0] : rows[0] + (rows[1] <<< 2);
        high <= upper[PART:1];
        total <= low + (high <<< (2 * LOWER));
    end
    /* verilator lint_on WIDTHEXPAND */
    /* verilator lint_on WIDTHTRUNC */
endmodule
