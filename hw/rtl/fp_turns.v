// The outputs of `fp_scheduled`, from the sums that its groups have stored.
//
// When the sums of TOGETHER places are `stored`, `turn` asks for `part`, for one output after another and one place after
// another: {nothing, last, group, slot} names a stored sum, and those up to `last` make one output. `part` and what is
// `found` at `read_at` for all groups of all places are registers that move with `reads`. Of an odd number of PLACES in a
// sample the last one is alone. What has been read is `freed`.
// Counters have the bits that their limits need, and limits are integers: the widths differ on purpose.
/* verilator lint_off WIDTHEXPAND */
/* verilator lint_off WIDTHTRUNC */
module fp_turns #(
    parameter SUM_WIDTH = 24,
    parameter TOGETHER = 1,
    parameter PLACES = 1,
    parameter GROUPS = 2,
    parameter TURNS = 4,
    parameter TURN = 2,
    parameter GROUP = 1,
    parameter SLOT = 2,
    parameter BUFFER = 1
) (
    input wire clk,
    input wire rst,
    input wire stored,
    output wire freed,
    output wire reads,
    output wire [TURN-1:0] turn,
    input wire [2+GROUP+SLOT-1:0] part,
    output wire [BUFFER+SLOT-1:0] read_at,
    input wire [GROUPS*TOGETHER*SUM_WIDTH-1:0] found,
    output wire [SUM_WIDTH-1:0] m_data,
    output wire m_valid,
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

    // All registers move together while the last one is empty or leaves.
    reg [BUFFER:0] waiting;
    reg [BUFFER-1:0] buffer;
    reg reading;
    reg [TURN-1:0] at_turn;
    reg known;
    reg known_last;
    reg fetched;
    reg [GROUP+1:0] named;
    reg chosen;
    reg chosen_last;
    reg fresh;
    reg full;
    reg signed [SUM_WIDTH-1:0] choice;
    reg signed [SUM_WIDTH-1:0] sum;
    wire last_turn = at_turn == TURNS - 1;
    wire last_value;
    wire done = last_turn & last_value;
    wire begins = (~reading | done) & (waiting != 0) & reads;
    wire [GROUPS*SUM_WIDTH-1:0] of_value;
    assign reads = m_ready | ~full;
    assign turn = at_turn;
    assign read_at = {buffer, part[SLOT-1:0]};
    assign freed = known_last & reads;
    assign m_data = sum;
    assign m_valid = full;

    generate
        if (TOGETHER == 1) begin : one
            assign last_value = 1'b1;
            assign of_value = found;
        end else begin : two
            // Which of two places is read, and how many of the sample are left behind it.
            reg value;
            reg known_value;
            reg fetched_value;
            reg [bits_of(PLACES - 1)-1:0] left;
            wire [TOGETHER*GROUPS*SUM_WIDTH-1:0] ordered;
            genvar g;
            for (g = 0; g < 2 * GROUPS; g = g + 1) begin : order
                assign ordered[((g % 2) * GROUPS + g / 2)*SUM_WIDTH +: SUM_WIDTH] = found[g*SUM_WIDTH +: SUM_WIDTH];
            end
            assign last_value = value | (left == 0);
            assign of_value = fetched_value ? ordered[2*GROUPS*SUM_WIDTH-1:GROUPS*SUM_WIDTH]
                : ordered[GROUPS*SUM_WIDTH-1:0];
            always @(posedge clk) begin
                if (rst) begin
                    value <= 1'b0;
                    left <= PLACES - 1;
                end else if (reads & reading & last_turn) begin
                    value <= ~last_value;
                    left <= (left == 0) ? PLACES - 1 : left - 1'b1;
                end
                if (reads) begin
                    known_value <= value;
                    fetched_value <= known_value;
                end
            end
        end
    endgenerate

    always @(posedge clk) begin
        if (reads) begin
            named <= part[GROUP+SLOT+1:SLOT];
            choice <= named[GROUP+1] ? 0 : of_value[named[GROUP-1:0]*SUM_WIDTH +: SUM_WIDTH];
            chosen_last <= named[GROUP];
            sum <= (fresh ? 0 : sum) + choice;
        end
        if (rst) begin
            buffer <= 0;
            waiting <= 0;
            reading <= 1'b0;
            at_turn <= 0;
            known <= 1'b0;
            known_last <= 1'b0;
            fetched <= 1'b0;
            chosen <= 1'b0;
            fresh <= 1'b1;
            full <= 1'b0;
        end else begin
            waiting <= waiting + stored - begins;
            if (reads) begin
                reading <= begins | (reading & ~done);
                at_turn <= (last_turn | ~reading) ? 0 : at_turn + 1'b1;
                known <= reading;
                known_last <= reading & done;
                buffer <= buffer + known_last;
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
