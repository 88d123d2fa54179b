// Weighted sums of CHANNELS values in STEPS clocks by GROUPS of TAPS multipliers, as a memory outside says step by step.
//
// Beats of one place of the image come channel by channel, SPLIT * TAPS values each, into one of SIDES sides of a memory, while
// the groups read another side; each group has a copy. In each of the STEPS clocks of a place, `step` asks for
// `word`, which comes a clock later and holds for each group {last, TAPS weights, gap}: its products with a piece of a
// channel's beat, `gap` pieces behind the one after that of the step before, are added to its sum, which is stored with `last`. When the place is done, `turn` asks for `part`, for
// one output after another: {nothing, last, group, slot} names a stored sum; those up to `last` make one output.
// Sums of BUFFERS places can be under way. `word` and `part` are registers; that of `part` moves with `reads`.
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
    parameter CHANNELS = 4,
    parameter GROUPS = 2,
    parameter STEPS = 8,
    parameter TURNS = 4,
    parameter SIDES = 2,
    parameter BUFFERS = 2,
    // Bits of: a side, a piece (0 if there is one), a channel, a step, a turn, a group, a slot, a buffer.
    parameter SIDE = 1,
    parameter PIECE = 0,
    parameter CHANNEL = 2,
    parameter STEP = 3,
    parameter TURN = 2,
    parameter GROUP = 1,
    parameter SLOT = 2,
    parameter BUFFER = 1,
    // Bits of a gap, and {channel, piece} of the first step for each group.
    parameter GAP = 0,
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
    localparam WORD = 1 + TAPS * W_WIDTH + GAP;
    localparam PLACE = CHANNEL + PIECE;
    // Clocks from a step's word until its sum is stored.
    localparam THROUGH = LEVELS + 4;

    // Beats that come: the sides are filled in turn.
    reg [CHANNEL-1:0] channel;
    reg [SIDE-1:0] write_side;
    reg [SIDE:0] filled;
    reg [SIDE:0] waiting;
    wire take = s_valid & s_ready;
    wire whole = take & (channel == CHANNELS - 1);
    assign s_ready = filled != SIDES;

    // Steps of a place.
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
    reg fetch;
    reg fetch_first;
    reg fetch_last;
    reg [SIDE-1:0] side;
    // What the groups stored is whole; its memory is free again.
    wire stored;
    wire freed;

    always @(posedge clk) begin
        came <= running & ~rst;
        came_first <= at_step == 0;
        came_last <= ends & ~rst;
        came_side <= read_side;
        fetch <= came & ~rst;
        fetch_first <= came_first & came;
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
                channel <= whole ? 0 : channel + 1'b1;
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

    // The first and the last step of a place, as its sums are stored.
    reg [THROUGH-1:0] firsts;
    reg [THROUGH-1:0] ending;
    reg live;
    assign stored = ending[THROUGH-1];
    always @(posedge clk) begin
        live <= fetch & ~rst;
        firsts <= {firsts[THROUGH-2:0], fetch_first};
        ending <= rst ? {THROUGH{1'b0}} : {ending[THROUGH-2:0], fetch_last};
    end

    // The buffer that is written, and the one that is read.
    reg [BUFFER-1:0] write_buffer;
    reg [BUFFER-1:0] read_buffer;
    reg [GROUP+SLOT+1:0] named;
    wire [GROUPS*SUM_WIDTH-1:0] found;

    genvar g;
    generate
        for (g = 0; g < GROUPS; g = g + 1) begin : groups
            wire [WORD-1:0] own = word[g*WORD +: WORD];
            wire [SPLIT*TAPS*X_WIDTH-1:0] beat;
            wire [TAPS*X_WIDTH-1:0] x;
            wire [PLACE-1:0] gap;
            reg [PLACE-1:0] at;
            reg [TAPS*W_WIDTH:0] found_weights;
            reg [TAPS*W_WIDTH:0] weights;
            wire leaves;
            wire [SUM_WIDTH-1:0] total;
            reg [SLOT-1:0] next_slot;
            wire [SLOT-1:0] slot = firsts[THROUGH-1] ? 0 : next_slot;
            if (GAP == 0) begin : none
                assign gap = 0;
            end else begin : some
                assign gap = own[GAP-1:0];
            end
            always @(posedge clk) begin
                if (came) begin
                    at <= came_first ? STARTS[g*PLACE +: PLACE] : at + gap + 1'b1;
                end
            end
            fp_memory #(.WIDTH(SPLIT*TAPS*X_WIDTH), .DEPTH(1 << (SIDE + CHANNEL)), .ADDRESS(SIDE+CHANNEL)) beats (
                .clk(clk),
                .write(take),
                .write_at({write_side, channel}),
                .in_data(s_data),
                .read(1'b1),
                .read_at({side, at[PIECE +: CHANNEL]}),
                .out_data(beat)
            );
            if (SPLIT == 1) begin : whole_beats
                assign x = beat;
            end else begin : pieces
                reg [PIECE-1:0] piece;
                always @(posedge clk) piece <= at[PIECE-1:0];
                assign x = beat[piece*TAPS*X_WIDTH +: TAPS*X_WIDTH];
            end
            always @(posedge clk) begin
                found_weights <= own[WORD-1:GAP];
                weights <= found_weights;
                next_slot <= slot + leaves;
            end
            fp_products #(
                .TAPS(TAPS),
                .X_WIDTH(X_WIDTH),
                .X_SIGNED(X_SIGNED),
                .W_WIDTH(W_WIDTH),
                .SUM_WIDTH(SUM_WIDTH),
                .LEVELS(LEVELS)
            ) products (
                .clk(clk),
                .rst(rst),
                .valid(live),
                .last(weights[TAPS*W_WIDTH]),
                .x(x),
                .weights(weights[TAPS*W_WIDTH-1:0]),
                .leaves(leaves),
                .total(total)
            );
            fp_memory #(.WIDTH(SUM_WIDTH), .DEPTH(1 << (BUFFER + SLOT)), .ADDRESS(BUFFER+SLOT)) sums (
                .clk(clk),
                .write(leaves),
                .write_at({write_buffer, slot}),
                .in_data(total),
                .read(reads),
                .read_at({read_buffer, part[SLOT-1:0]}),
                .out_data(found[g*SUM_WIDTH +: SUM_WIDTH])
            );
        end
    endgenerate

    // Outputs of a place, all registers moving together while the last one is empty or leaves.
    reg [BUFFER:0] whole_places;
    reg reading;
    reg [TURN-1:0] at_turn;
    reg known;
    reg known_last;
    reg fetched;
    reg chosen;
    reg chosen_last;
    reg fresh;
    reg full;
    reg signed [SUM_WIDTH-1:0] choice;
    reg signed [SUM_WIDTH-1:0] sum;
    wire last_turn = at_turn == TURNS - 1;
    wire begins = (~reading | last_turn) & (whole_places != 0) & reads;
    wire nothing = named[GROUP+SLOT+1];
    assign reads = m_ready | ~full;
    assign turn = at_turn;
    assign freed = known_last & reads;
    assign m_data = sum;
    assign m_valid = full;

    always @(posedge clk) begin
        if (reads) begin
            named <= part;
            choice <= nothing ? 0 : found[named[SLOT +: GROUP]*SUM_WIDTH +: SUM_WIDTH];
            chosen_last <= named[GROUP+SLOT];
            sum <= (fresh ? 0 : sum) + choice;
        end
        if (rst) begin
            write_buffer <= 0;
            read_buffer <= 0;
            whole_places <= 0;
            reading <= 1'b0;
            at_turn <= 0;
            known <= 1'b0;
            known_last <= 1'b0;
            fetched <= 1'b0;
            chosen <= 1'b0;
            fresh <= 1'b1;
            full <= 1'b0;
        end else begin
            write_buffer <= write_buffer + stored;
            whole_places <= whole_places + stored - begins;
            if (reads) begin
                reading <= begins | (reading & ~last_turn);
                at_turn <= (begins | last_turn | ~reading) ? 0 : at_turn + 1'b1;
                known <= reading;
                known_last <= reading & last_turn;
                read_buffer <= read_buffer + known_last;
                fetched <= known;
                chosen <= fetched;
                full <= chosen & chosen_last;
                if (chosen) begin
                    fresh <= chosen_last;
                end
            end
        end
    end
endmodule
