// The sum, or the largest, of each window of KH x KW pixels of an image, LANES signed numbers side by side.
// Windows stand side by side and do not overlap; pixels that fill no window are passed over. A pixel comes in CHANNELS
// beats. A memory has a place for each beat of a pixel of the windows that are under way; OUT_WIDTH bits hold every sum.
// Counters have the bits that their limits need, and limits are integers: the widths differ on purpose.
/* verilator lint_off WIDTHEXPAND */
/* verilator lint_off WIDTHTRUNC */
module fp_pool #(
    parameter LANES = 1,
    parameter WIDTH = 8,
    parameter OUT_WIDTH = 10,
    parameter LARGEST = 0,
    parameter CHANNELS = 1,
    parameter ROWS = 4,
    parameter COLUMNS = 4,
    parameter KH = 2,
    parameter KW = 2
) (
    input wire clk,
    input wire rst,
    input wire [LANES*WIDTH-1:0] s_data,
    input wire s_valid,
    output wire s_ready,
    output wire [LANES*OUT_WIDTH-1:0] m_data,
    output reg m_valid,
    input wire m_ready
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

    // A window of one row is whole before the next one begins.
    localparam PLACES = (KH == 1 ? 1 : COLUMNS / KW) * CHANNELS;

    // Where the beat stands: in its pixel, the pixel in its window, the window in the image.
    reg [bits_of(CHANNELS - 1)-1:0] channel;
    reg [bits_of(KW - 1)-1:0] x;
    reg [bits_of(KH - 1)-1:0] y;
    reg [bits_of(COLUMNS / KW)-1:0] across;
    reg [bits_of(ROWS / KH)-1:0] down;
    reg [bits_of(PLACES - 1)-1:0] at;
    wire last_channel = channel == CHANNELS - 1;
    wire last_x = x == KW - 1;
    wire last_y = y == KH - 1;
    wire last_column = (across == (COLUMNS - 1) / KW) & (x == (COLUMNS - 1) % KW);
    wire last_row = (down == (ROWS - 1) / KH) & (y == (ROWS - 1) % KH);
    wire inside = (across != COLUMNS / KW) & (down != ROWS / KH);
    wire begins = (x == 0) & (y == 0);
    wire [bits_of(PLACES - 1)-1:0] next_at;
    assign next_at = ~last_channel ? at + 1'b1
        : last_column | (last_x & (KH == 1)) ? 0
        : last_x ? at + 1'b1 : at - (CHANNELS - 1);

    // What the next beat is added to is read while this one is written; where both have one place, it is in `leaving`.
    reg [LANES*OUT_WIDTH-1:0] leaving;
    wire [LANES*OUT_WIDTH-1:0] before;
    wire [LANES*OUT_WIDTH-1:0] now;
    wire accept = s_valid & s_ready;
    generate
        if (PLACES == 1) begin : single
            assign before = leaving;
        end else begin : several
            reg [LANES*OUT_WIDTH-1:0] memory [0:PLACES-1];
            reg [LANES*OUT_WIDTH-1:0] held;
            reg again;
            assign before = again ? leaving : held;
            always @(posedge clk) begin
                if (accept) begin
                    if (inside) begin
                        memory[at] <= now;
                    end
                    held <= memory[next_at];
                end
                if (rst) begin
                    again <= 1'b0;
                end else if (accept) begin
                    again <= (CHANNELS == 1) & inside & (next_at == at);
                end
            end
        end
    endgenerate

    assign s_ready = m_ready | ~m_valid;
    assign m_data = leaving;

    genvar lane;
    generate
        for (lane = 0; lane < LANES; lane = lane + 1) begin : lanes
            wire signed [OUT_WIDTH-1:0] one;
            wire signed [OUT_WIDTH-1:0] other;
            wire signed [OUT_WIDTH-1:0] both;
            assign one = $signed(s_data[lane*WIDTH +: WIDTH]);
            assign other = before[lane*OUT_WIDTH +: OUT_WIDTH];
            if (LARGEST != 0) begin : larger
                assign both = (one > other) ? one : other;
            end else begin : sum
                assign both = one + other;
            end
            assign now[lane*OUT_WIDTH +: OUT_WIDTH] = begins ? one : both;
        end
    endgenerate

    always @(posedge clk) begin
        if (accept & inside) begin
            leaving <= now;
        end
        if (rst) begin
            m_valid <= 1'b0;
            channel <= 0;
            x <= 0;
            y <= 0;
            across <= 0;
            down <= 0;
            at <= 0;
        end else if (accept) begin
            m_valid <= inside & last_x & last_y;
            at <= next_at;
            channel <= last_channel ? 0 : channel + 1'b1;
            if (last_channel) begin
                x <= last_x | last_column ? 0 : x + 1'b1;
                across <= last_column ? 0 : last_x ? across + 1'b1 : across;
                if (last_column) begin
                    y <= last_y | last_row ? 0 : y + 1'b1;
                    down <= last_row ? 0 : last_y ? down + 1'b1 : down;
                end
            end
        end else if (m_ready) begin
            m_valid <= 1'b0;
        end
    end
endmodule
