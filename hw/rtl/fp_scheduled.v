// Weighted sums of CHANNELS values in STEPS clocks by GROUPS of TAPS multipliers, as a memory outside says step by step.
//
// Beats of a place of the image come channel by channel, SPLIT * TAPS values each. They fill one of SIDES sides of a
// memory while the groups read another one. In each of the STEPS clocks, `step` asks for `word`, which comes a clock later
// and holds for each group what `fp_group` does: products of a piece of one beat, added to a sum, which may then be stored.
// `fp_turns` makes outputs of the stored sums; those of BUFFERS times STEPS clocks can be under way. With TOGETHER 2 the
// same steps multiply the beats of two places at once, and of an odd number of PLACES in a sample the last one alone.
// Counters have the bits that their limits need, and limits are integers: the widths differ on purpose.
/* verilator lint_off WIDTHEXPAND */
/* verilator lint_off WIDTHTRUNC */
module fp_scheduled #(
    parameter TAPS = 9,
    parameter X_WIDTH = 8,
    parameter X_SIGNED = 1,
    parameter W_WIDTH = 8,
    parameter SUM_WIDTH = 24,
    parameter LEVELS = 4,
    parameter SPLIT = 1,
    parameter TOGETHER = 1,
    parameter IN_LUTS = 0,
    parameter PLACES = 1,
    parameter CHANNELS = 4,
    parameter GROUPS = 2,
    parameter STEPS = 8,
    parameter TURNS = 4,
    parameter SIDES = 2,
    parameter BUFFERS = 2,
    // Bits of: a side, a piece (0 if there is one), a channel, a step, a turn, a group, a slot, a buffer, a gap.
    parameter SIDE = 1,
    parameter PIECE = 0,
    parameter CHANNEL = 2,
    parameter STEP = 3,
    parameter TURN = 2,
    parameter GROUP = 1,
    parameter SLOT = 2,
    parameter BUFFER = 1,
    parameter GAP = 0,
    // {channel, piece} of the first step for each group.
    parameter [GROUPS*(CHANNEL+PIECE)-1:0] STARTS = 0
) (
    input wire clk,
    input wire rst,
    input wire [SPLIT*TAPS*X_WIDTH-1:0] s_data,
    input wire s_valid,
    output wire s_ready,
    output wire [SUM_WIDTH-1:0] m_data,
    output wire m_valid,
    input wire m_ready,
    output wire [STEP-1:0] step,
    input wire [GROUPS*(1+TAPS*W_WIDTH+GAP)-1:0] word,
    output wire reads,
    output wire [TURN-1:0] turn,
    input wire [2+GROUP+SLOT-1:0] part
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

    localparam WORD = 1 + TAPS * W_WIDTH + GAP;
    localparam PLACE = CHANNEL + PIECE;
    // Clocks from a step's word until its sum is stored.
    localparam THROUGH = LEVELS + (IN_LUTS != 0 ? 2 : TOGETHER) + 4;

    // Beats that come: the sides are filled in turn.
    reg [CHANNEL-1:0] channel;
    reg [SIDE-1:0] write_side;
    reg [SIDE:0] filled;
    reg [SIDE:0] waiting;
    wire take = s_valid & s_ready;
    wire last_channel = take & (channel == CHANNELS - 1);
    wire whole;
    wire [TOGETHER-1:0] write;
    assign s_ready = filled != SIDES;

    generate
        if (TOGETHER == 1) begin : one
            assign whole = last_channel;
            assign write = take;
        end else begin : two
            // Which of two places comes, and how many of the sample are left behind it.
            reg value;
            reg [bits_of(PLACES - 1)-1:0] left;
            assign whole = last_channel & (value | (left == 0));
            assign write = {take & value, take & ~value};
            always @(posedge clk) begin
                if (rst) begin
                    value <= 1'b0;
                    left <= PLACES - 1;
                end else if (last_channel) begin
                    value <= ~value & (left != 0);
                    left <= (left == 0) ? PLACES - 1 : left - 1'b1;
                end
            end
        end
    endgenerate

    // Steps.
    reg running;
    reg [STEP-1:0] at_step;
    reg [SIDE-1:0] read_side;
    reg [SIDE-1:0] next_side;
    reg [BUFFER:0] room;
    wire ends = running & (at_step == STEPS - 1);
    wire starts = (~running | ends) & (waiting != 0) & (room != 0);
    assign step = at_step;

    // A step's word has come; its beat is fetched, the last of which gives the side back.
    reg came;
    reg came_first;
    reg came_last;
    reg [SIDE-1:0] came_side;
    reg fetch_last;
    reg [SIDE-1:0] side;
    wire freed;

    always @(posedge clk) begin
        came <= running & ~rst;
        came_first <= at_step == 0;
        came_last <= ends & ~rst;
        came_side <= read_side;
        fetch_last <= came_last & ~rst;
        side <= came_side;
        if (rst) begin
            channel <= 0;
            write_side <= 0;
            filled <= 0;
            waiting <= 0;
            running <= 1'b0;
            at_step <= 0;
            read_side <= 0;
            next_side <= 0;
            room <= BUFFERS;
        end else begin
            if (take) begin
                channel <= last_channel ? 0 : channel + 1'b1;
            end
            write_side <= write_side + whole;
            filled <= filled + whole - fetch_last;
            waiting <= waiting + whole - starts;
            room <= room + freed - starts;
            running <= starts | (running & ~ends);
            at_step <= (starts | ends | ~running) ? 0 : at_step + 1'b1;
            if (starts) begin
                read_side <= next_side;
                next_side <= next_side + 1'b1;
            end
        end
    end

    // The first and the last step, as their sums are stored.
    reg [THROUGH-1:0] firsts;
    reg [THROUGH-1:0] ending;
    reg [BUFFER-1:0] write_buffer;
    wire stored = ending[THROUGH-1];
    always @(posedge clk) begin
        firsts <= {firsts[THROUGH-2:0], came_first & came};
        ending <= rst ? {THROUGH{1'b0}} : {ending[THROUGH-2:0], came_last};
        write_buffer <= rst ? 0 : write_buffer + stored;
    end

    wire [BUFFER+SLOT-1:0] read_at;
    wire [GROUPS*TOGETHER*SUM_WIDTH-1:0] found;

    genvar g;
    generate
        for (g = 0; g < GROUPS; g = g + 1) begin : groups
            fp_group #(
                .TAPS(TAPS),
                .X_WIDTH(X_WIDTH),
                .X_SIGNED(X_SIGNED),
                .W_WIDTH(W_WIDTH),
                .SUM_WIDTH(SUM_WIDTH),
                .LEVELS(LEVELS),
                .SPLIT(SPLIT),
                .TOGETHER(TOGETHER),
                .IN_LUTS(IN_LUTS),
                .SIDE(SIDE),
                .PIECE(PIECE),
                .CHANNEL(CHANNEL),
                .SLOT(SLOT),
                .BUFFER(BUFFER),
                .GAP(GAP),
                .START(STARTS[g*PLACE +: PLACE])
            ) group (
                .clk(clk),
                .rst(rst),
                .write(write),
                .write_at({write_side, channel}),
                .in_data(s_data),
                .came(came),
                .first(came_first),
                .word(word[g*WORD +: WORD]),
                .side(side),
                .stores_first(firsts[THROUGH-1]),
                .stores_at(write_buffer),
                .reads(reads),
                .read_at(read_at),
                .out_data(found[g*TOGETHER*SUM_WIDTH +: TOGETHER*SUM_WIDTH])
            );
        end
    endgenerate

    fp_turns #(
        .SUM_WIDTH(SUM_WIDTH),
        .TOGETHER(TOGETHER),
        .PLACES(PLACES),
        .GROUPS(GROUPS),
        .TURNS(TURNS),
        .TURN(TURN),
        .GROUP(GROUP),
        .SLOT(SLOT),
        .BUFFER(BUFFER)
    ) outputs (
        .clk(clk),
        .rst(rst),
        .stored(stored),
        .freed(freed),
        .reads(reads),
        .turn(turn),
        .part(part),
        .read_at(read_at),
        .found(found),
        .m_data(m_data),
        .m_valid(m_valid),
        .m_ready(m_ready)
    );
endmodule
