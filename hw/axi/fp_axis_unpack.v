// Words of a DMA on one side, beats of a design on the other.
//
// A beat stands in a slot of SLOT_BITS, at its low end. If a slot is no wider than a word, a word holds WORD_BITS /
// SLOT_BITS beats, the first at its low end, and a sample begins with a new word. Else a slot takes several words, the
// lowest first. With the last word of a sample, `taken` is high, and `taken_last` says whether that word had TLAST.
// TLAST on another word is `malformed`. No word is taken while `hold` is high.
module fp_axis_unpack #(
    parameter WORD_BITS = 64,
    parameter BEAT_BITS = 8,
    parameter SLOT_BITS = 8,
    parameter BEATS     = 1
) (
    input  wire                 clk,
    input  wire                 rst,
    input  wire                 hold,
    input  wire [WORD_BITS-1:0] s_axis_tdata,
    input  wire                 s_axis_tvalid,
    output wire                 s_axis_tready,
    input  wire                 s_axis_tlast,
    output wire [BEAT_BITS-1:0] m_axis_tdata,
    output wire                 m_axis_tvalid,
    input  wire                 m_axis_tready,
    output wire                 m_axis_tlast,
    output wire                 taken,
    output wire                 taken_last,
    output wire                 malformed
);
    localparam WIDE  = SLOT_BITS > WORD_BITS;
    localparam HELD  = WIDE ? SLOT_BITS : WORD_BITS;
    localparam SLOTS = WIDE ? 1 : WORD_BITS / SLOT_BITS;           // beats of a word
    localparam PARTS = WIDE ? SLOT_BITS / WORD_BITS : 1;           // words of a beat
    localparam WORDS = WIDE ? BEATS * PARTS : (BEATS + SLOTS - 1) / SLOTS;

    reg [HELD-1:0] held;
    reg            full;
    reg [15:0]     part, slot;
    reg [31:0]     word, beat;
    wire last_word = word == WORDS - 1;
    wire last_beat = beat == BEATS - 1;
    wire emptied   = full && m_axis_tready && (slot == SLOTS - 1 || last_beat);
    wire moved     = s_axis_tvalid && s_axis_tready;

    assign s_axis_tready = (!full || emptied) && !hold && !rst;
    assign m_axis_tdata  = held[BEAT_BITS-1:0];
    assign m_axis_tvalid = full;
    assign m_axis_tlast  = last_beat;
    assign taken         = moved && last_word;
    assign taken_last    = s_axis_tlast;
    assign malformed     = moved && s_axis_tlast && !last_word;

    always @(posedge clk)
        if (rst) begin
            full <= 1'b0;
            part <= 16'd0;
            slot <= 16'd0;
            word <= 32'd0;
            beat <= 32'd0;
        end else begin
            if (full && m_axis_tready) begin
                beat <= last_beat ? 32'd0 : beat + 32'd1;
                slot <= emptied ? 16'd0 : slot + 16'd1;
                if (emptied) full <= 1'b0;
            end
            if (moved) begin
                word <= last_word ? 32'd0 : word + 32'd1;
                part <= part == PARTS - 1 ? 16'd0 : part + 16'd1;
                if (part == PARTS - 1) full <= 1'b1;
            end
        end
    generate
        if (WIDE)
            always @(posedge clk) if (moved) held <= {s_axis_tdata, held[HELD-1:WORD_BITS]};
        if (!WIDE)
            always @(posedge clk)
                if (moved) held <= s_axis_tdata;
                else if (full && m_axis_tready) held <= held >> SLOT_BITS;
    endgenerate
endmodule
