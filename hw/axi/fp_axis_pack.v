// Beats of a design on one side, words of a DMA on the other, laid out as fp_axis_unpack.v says; unused bits are zero.
//
// The last word of a sample has TLAST if `flag` is high, which is read with the sample's last beat, and then `sent` is
// high; until `flag_there` is high, that beat waits.
module fp_axis_pack #(
    parameter WORD_BITS = 64,
    parameter BEAT_BITS = 8,
    parameter SLOT_BITS = 8,
    parameter BEATS     = 1
) (
    input  wire                 clk,
    input  wire                 rst,
    input  wire                 flag,
    input  wire                 flag_there,
    output wire                 sent,
    input  wire [BEAT_BITS-1:0] s_axis_tdata,
    input  wire                 s_axis_tvalid,
    output wire                 s_axis_tready,
    output wire [WORD_BITS-1:0] m_axis_tdata,
    output wire                 m_axis_tvalid,
    input  wire                 m_axis_tready,
    output wire                 m_axis_tlast
);
    localparam WIDE  = SLOT_BITS > WORD_BITS;
    localparam HELD  = WIDE ? SLOT_BITS : WORD_BITS;
    localparam SLOTS = WIDE ? 1 : WORD_BITS / SLOT_BITS;
    localparam PARTS = WIDE ? SLOT_BITS / WORD_BITS : 1;

    reg [HELD-1:0] held;
    reg            full, last;
    reg [15:0]     part, slot;
    reg [31:0]     beat;
    wire last_beat = beat == BEATS - 1;
    wire emptied   = full && m_axis_tready && part == PARTS - 1;
    wire moved     = s_axis_tvalid && s_axis_tready;
    wire [HELD-1:0] widened = s_axis_tdata;

    assign s_axis_tready = (!full || emptied) && (!last_beat || flag_there) && !rst;
    assign m_axis_tdata  = held[WORD_BITS-1:0];
    assign m_axis_tvalid = full && !rst;
    assign m_axis_tlast  = last && part == PARTS - 1;
    assign sent          = moved && last_beat;

    always @(posedge clk)
        if (rst) begin
            full <= 1'b0;
            last <= 1'b0;
            part <= 16'd0;
            slot <= 16'd0;
            beat <= 32'd0;
        end else begin
            if (full && m_axis_tready) begin
                part <= emptied ? 16'd0 : part + 16'd1;
                if (emptied) full <= 1'b0;
                else held <= held >> WORD_BITS;
            end
            if (moved) begin
                held <= slot == 16'd0 ? widened : held | widened << (slot * SLOT_BITS);
                beat <= last_beat ? 32'd0 : beat + 32'd1;
                slot <= slot == SLOTS - 1 || last_beat ? 16'd0 : slot + 16'd1;
                if (slot == SLOTS - 1 || last_beat) begin
                    full <= 1'b1;
                    last <= last_beat && flag;
                end
            end
        end
endmodule
