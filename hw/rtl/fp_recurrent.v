// The loop of a recurrent layer: STEPS steps of INPUTS values, whose sums are made outside, and so are the new states.
//
// For each step, x carries the inputs and then the outputs of all UNITS units of the step before, zeros in the first step
// of a sample. g brings the sums of one unit after another, n hands them on below the unit's state of the step before,
// r brings its output, and above that its new state if it is another. Outputs leave at m: all, or those of the last step.
// Counters have the bits that their limits need, and limits are integers: the widths differ on purpose.
/* verilator lint_off WIDTHEXPAND */
/* verilator lint_off WIDTHTRUNC */
module fp_recurrent #(
    parameter X_WIDTH = 9,
    parameter SUMS_WIDTH = 24,
    parameter H_WIDTH = 8,
    parameter R_WIDTH = 8,
    parameter H_SIGNED = 1,
    parameter INPUTS = 3,
    parameter UNITS = 4,
    parameter STEPS = 5,
    parameter SEQUENCES = 1
) (
    input wire clk,
    input wire rst,
    input wire [X_WIDTH-1:0] s_data,
    input wire s_valid,
    output wire s_ready,
    output wire [X_WIDTH-1:0] x_data,
    output wire x_valid,
    input wire x_ready,
    input wire [SUMS_WIDTH-1:0] g_data,
    input wire g_valid,
    output wire g_ready,
    output wire [H_WIDTH+SUMS_WIDTH-1:0] n_data,
    output wire n_valid,
    input wire n_ready,
    input wire [R_WIDTH-1:0] r_data,
    input wire r_valid,
    output wire r_ready,
    output wire [H_WIDTH-1:0] m_data,
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

    localparam PLACE = bits_of((INPUTS > UNITS ? INPUTS : UNITS) - 1);
    localparam UNIT = bits_of(UNITS - 1);
    localparam STEP = bits_of(STEPS - 1);

    // What goes to the sums: inputs, then outputs of the step before.
    reg feeds;
    reg x_first;
    reg [PLACE-1:0] x_place;
    reg [STEP-1:0] x_step;
    wire [H_WIDTH-1:0] h_data;
    wire h_valid;
    wire x_moves = x_valid & x_ready;
    wire x_last = x_place == (feeds ? UNITS - 1 : INPUTS - 1);
    wire [X_WIDTH-1:0] h_wide;
    assign x_valid = feeds ? x_first | h_valid : s_valid;
    assign x_data = feeds ? (x_first ? {X_WIDTH{1'b0}} : h_wide) : s_data;
    assign s_ready = x_ready & ~feeds;

    generate
        if (H_SIGNED != 0) begin : signed_outputs
            assign h_wide = $signed(h_data);
        end else begin : unsigned_outputs
            assign h_wide = h_data;
        end
    endgenerate

    // The sums of a unit meet its state, which is there before them.
    reg n_first;
    reg [UNIT-1:0] n_unit;
    reg [STEP-1:0] n_step;
    wire [H_WIDTH-1:0] k_data;
    wire n_moves = g_valid & n_ready;
    assign n_data = {n_first ? {H_WIDTH{1'b0}} : k_data, g_data};
    assign n_valid = g_valid;
    assign g_ready = n_ready;

    // Outputs leave, and outputs and states are kept for the next step.
    reg r_last;
    reg [UNIT-1:0] r_unit;
    reg [STEP-1:0] r_step;
    wire r_moves = r_valid & r_ready;
    wire leaves = (SEQUENCES != 0) | r_last;
    assign m_data = r_data[H_WIDTH-1:0];
    assign m_valid = r_valid & leaves;
    assign r_ready = m_ready | ~leaves;

    always @(posedge clk) begin
        if (rst) begin
            feeds <= 1'b0;
            x_first <= 1'b1;
            x_place <= 0;
            x_step <= 0;
            n_first <= 1'b1;
            n_unit <= 0;
            n_step <= 0;
            r_last <= STEPS == 1;
            r_unit <= 0;
            r_step <= 0;
        end else begin
            if (x_moves) begin
                x_place <= x_last ? 0 : x_place + 1'b1;
                feeds <= feeds ^ x_last;
                if (feeds & x_last) begin
                    x_first <= x_step == STEPS - 1;
                    x_step <= (x_step == STEPS - 1) ? 0 : x_step + 1'b1;
                end
            end
            if (n_moves) begin
                n_unit <= (n_unit == UNITS - 1) ? 0 : n_unit + 1'b1;
                if (n_unit == UNITS - 1) begin
                    n_first <= n_step == STEPS - 1;
                    n_step <= (n_step == STEPS - 1) ? 0 : n_step + 1'b1;
                end
            end
            if (r_moves) begin
                r_unit <= (r_unit == UNITS - 1) ? 0 : r_unit + 1'b1;
                if (r_unit == UNITS - 1) begin
                    r_last <= (STEPS == 1) | (r_step == STEPS - 2);
                    r_step <= (r_step == STEPS - 1) ? 0 : r_step + 1'b1;
                end
            end
        end
    end

    // There is always room: what a step has made is read before that of the next one comes.
    wire unused_fed;
    wire unused_kept;
    wire unused_known;
    fp_fifo #(.WIDTH(H_WIDTH), .DEPTH(UNITS)) outputs (
        .clk(clk), .rst(rst),
        .s_data(r_data[H_WIDTH-1:0]), .s_valid(r_moves & ~r_last), .s_ready(unused_fed),
        .m_data(h_data), .m_valid(h_valid), .m_ready(x_ready & feeds)
    );
    fp_fifo #(.WIDTH(H_WIDTH), .DEPTH(UNITS)) states (
        .clk(clk), .rst(rst),
        .s_data(r_data[R_WIDTH-1:R_WIDTH-H_WIDTH]), .s_valid(r_moves & ~r_last), .s_ready(unused_kept),
        .m_data(k_data), .m_valid(unused_known), .m_ready(n_moves & ~n_first)
    );
endmodule
