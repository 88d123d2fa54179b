// TAPS products of X_WIDTH by W_WIDTH bits for each of TOGETHER values that share a weight: one, or two in one
// multiplier. They leave two clocks after their factors came, three if two share a multiplier or if it is made of LUTs.
//
// Two values lie X_WIDTH + W_WIDTH bits apart in one factor. The product of the lower one borrows one from the upper
// product if it is negative, which is given back. IN_LUTS is for one value alone, and a factor of at most eight bits.
module fp_products #(
    parameter TAPS = 9,
    parameter X_WIDTH = 8,
    parameter X_SIGNED = 1,
    parameter W_WIDTH = 8,
    parameter TOGETHER = 1,
    parameter IN_LUTS = 0
) (
    input wire clk,
    input wire [TOGETHER*TAPS*X_WIDTH-1:0] x,
    input wire [TAPS*W_WIDTH-1:0] weights,
    output wire [TOGETHER*TAPS*(X_WIDTH+W_WIDTH)-1:0] products
);
    localparam WIDTH = X_WIDTH + W_WIDTH;
    // Bits of a factor: both values and, where they have none, a sign.
    localparam FACTOR = (TOGETHER - 1) * WIDTH + X_WIDTH + 1;

    genvar place;
    generate
        for (place = 0; place < TAPS; place = place + 1) begin : taps
            if (IN_LUTS != 0) begin : in_luts
                // The narrower factor says bit by bit which multiples of the other one are added.
                if (W_WIDTH <= X_WIDTH) begin : by_weight
                    wire signed [X_WIDTH:0] one;
                    assign one = {(X_SIGNED != 0) & x[place*X_WIDTH+X_WIDTH-1], x[place*X_WIDTH +: X_WIDTH]};
                    fp_product #(.NARROW(W_WIDTH), .SIGNED(1), .WIDE(X_WIDTH + 1), .WIDTH(WIDTH)) one_product (
                        .clk(clk), .narrow(weights[place*W_WIDTH +: W_WIDTH]), .wide(one),
                        .product(products[place*WIDTH +: WIDTH])
                    );
                end else begin : by_value
                    fp_product #(.NARROW(X_WIDTH), .SIGNED(X_SIGNED), .WIDE(W_WIDTH), .WIDTH(WIDTH)) one_product (
                        .clk(clk), .narrow(x[place*X_WIDTH +: X_WIDTH]), .wide(weights[place*W_WIDTH +: W_WIDTH]),
                        .product(products[place*WIDTH +: WIDTH])
                    );
                end
            end else begin : in_blocks
                wire signed [X_WIDTH:0] one;
                assign one = {(X_SIGNED != 0) & x[place*X_WIDTH+X_WIDTH-1], x[place*X_WIDTH +: X_WIDTH]};
                reg signed [FACTOR-1:0] factor;
                reg signed [W_WIDTH-1:0] weight;
                (* use_dsp = "yes" *) reg signed [TOGETHER*WIDTH-1:0] product;
                // The product of numbers of so many bits needs no more.
                /* verilator lint_off WIDTHTRUNC */
                /* verilator lint_off WIDTHEXPAND */
                always @(posedge clk) begin
                    weight <= weights[place*W_WIDTH +: W_WIDTH];
                    product <= factor * weight;
                end
                /* verilator lint_on WIDTHEXPAND */
                /* verilator lint_on WIDTHTRUNC */
                if (TOGETHER == 1) begin : single
                    always @(posedge clk) factor <= one;
                    assign products[place*WIDTH +: WIDTH] = product;
                end else begin : double
                    wire signed [X_WIDTH:0] two;
                    reg [WIDTH-1:0] low;
                    reg [WIDTH-1:0] high;
                    assign two = {
                        (X_SIGNED != 0) & x[(TAPS+place)*X_WIDTH+X_WIDTH-1], x[(TAPS+place)*X_WIDTH +: X_WIDTH]
                    };
                    if (X_SIGNED == 0) begin : unsigned_values
                        always @(posedge clk) factor <= {two, {(W_WIDTH-1){1'b0}}, one};
                    end else begin : signed_values
                        always @(posedge clk) factor <= {two, {WIDTH{1'b0}}} + {{WIDTH{one[X_WIDTH]}}, one};
                    end
                    always @(posedge clk) begin
                        low <= product[WIDTH-1:0];
                        high <= product[WIDTH +: WIDTH] + {{(WIDTH-1){1'b0}}, product[WIDTH-1]};
                    end
                    assign products[place*WIDTH +: WIDTH] = low;
                    assign products[(TAPS+place)*WIDTH +: WIDTH] = high;
                end
            end
        end
    endgenerate
endmodule
