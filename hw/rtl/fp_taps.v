// The taps of a window over some bits of each pixel of an image: tap (r, c) lies at [(r * KW + c) * WIDTH +: WIDTH]. A
// pixel that comes in at a clock with `in_valid` is the last tap two clocks later.
//
// Side by side, such slices make a wide window. Each has registers of its own for what moves it, since one register for
// thousands of taps would reach across the device; their counters begin at different places (PHASE), and `moves` asks
// them what is always so, because tools would otherwise merge what is equal into one again.
module fp_taps #(
    parameter WIDTH = 8,
    parameter COLUMNS = 8,
    parameter KH = 3,
    parameter KW = 3,
    parameter PHASE = 0
) (
    input wire clk,
    input wire rst,
    input wire [WIDTH-1:0] in_data,
    input wire in_valid,
    output wire [KH*KW*WIDTH-1:0] out_data
);
    // What arrives now in the lowest row of the window, and above it what arrived whole lines ago.
    wire [KH*WIDTH-1:0] arriving;
    wire inside;
    reg [WIDTH-1:0] pixel;
    reg moves;
    assign arriving[(KH-1)*WIDTH +: WIDTH] = pixel;

    always @(posedge clk) begin
        pixel <= in_data;
        moves <= in_valid & inside & ~rst;
    end

    generate
        if (KH == 1) begin : row
            assign inside = 1'b1;
        end else begin : lines
            fp_line_buffer #(.WIDTH((KH-1)*WIDTH), .DEPTH(COLUMNS), .PHASE(PHASE)) line_buffer (
                .clk(clk),
                .rst(rst),
                .ce(moves),
                .in_data(arriving[KH*WIDTH-1:WIDTH]),
                .out_data(arriving[(KH-1)*WIDTH-1:0]),
                .inside(inside)
            );
        end
    endgenerate

    genvar line;
    generate
        for (line = 0; line < KH; line = line + 1) begin : rows
            reg [KW*WIDTH-1:0] taps;
            assign out_data[line*KW*WIDTH +: KW*WIDTH] = taps;
            if (KW == 1) begin : narrow
                always @(posedge clk) begin
                    if (moves) begin
                        taps <= arriving[line*WIDTH +: WIDTH];
                    end
                end
            end else begin : wide
                always @(posedge clk) begin
                    if (moves) begin
                        taps <= {arriving[line*WIDTH +: WIDTH], taps[KW*WIDTH-1:WIDTH]};
                    end
                end
            end
        end
    endgenerate
endmodule
