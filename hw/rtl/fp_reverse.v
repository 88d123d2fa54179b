// Sends the STEPS steps of a sample from the last to the first, the BEATS beats of each in their order.
// A sample waits in the memory until all of it has come. What it leaves free the next one takes, place by place, so the
// one lies from the first step on and the next from the last.
// Counters have the bits that their limits need, and limits are integers: the widths differ on purpose.
/* verilator lint_off WIDTHEXPAND */
/* verilator lint_off WIDTHTRUNC */
module fp_reverse #(
    parameter WIDTH = 8,
    parameter STEPS = 5,
    parameter BEATS = 3
) (
    input wire clk,
    input wire rst,
    input wire [WIDTH-1:0] s_data,
    input wire s_valid,
    output wire s_ready,
    output wire [WIDTH-1:0] m_data,
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

    localparam PLACES = STEPS * BEATS;
    localparam ADDRESS = bits_of(PLACES - 1);
    localparam BEAT = bits_of(BEATS - 1);

    // The place that is written next and the one that is read next, each with its beat of a step; whether places go from
    // the last step to the first. Reading is a sample ahead: it begins with the order in which the next one is written.
    reg [ADDRESS-1:0] write_at;
    reg [ADDRESS-1:0] read_at;
    reg [BEAT-1:0] write_beat;
    reg [BEAT-1:0] read_beat;
    reg write_back;
    reg read_back;
    // Whether a whole sample is there that has yet to be read to its end.
    reg whole;
    reg full;

    wire take = s_valid & s_ready;
    wire move = whole & (m_ready | ~full);
    wire write_turns = write_beat == BEATS - 1;
    wire read_turns = read_beat == BEATS - 1;
    wire write_ends = write_turns & write_at == (write_back ? BEATS - 1 : PLACES - 1);
    wire read_ends = read_turns & read_at == (read_back ? BEATS - 1 : PLACES - 1);

    assign s_ready = ~whole | (write_at != read_at);
    assign m_valid = full;

    fp_memory #(.WIDTH(WIDTH), .DEPTH(PLACES), .ADDRESS(ADDRESS)) memory (
        .clk(clk),
        .write(take),
        .write_at(write_at),
        .in_data(s_data),
        .read(move),
        .read_at(read_at),
        .out_data(m_data)
    );

    always @(posedge clk) begin
        if (rst) begin
            write_at <= 0;
            read_at <= PLACES - BEATS;
            write_beat <= 0;
            read_beat <= 0;
            write_back <= 1'b0;
            read_back <= 1'b1;
            whole <= 1'b0;
            full <= 1'b0;
        end else begin
            if (take) begin
                write_beat <= write_turns ? 0 : write_beat + 1'b1;
                write_back <= write_back ^ write_ends;
                if (write_ends) begin
                    write_at <= write_back ? 0 : PLACES - BEATS;
                end else begin
                    write_at <= write_at + ((write_back & write_turns) ? 1 - 2 * BEATS : 1);
                end
            end
            if (move) begin
                read_beat <= read_turns ? 0 : read_beat + 1'b1;
                read_back <= read_back ^ read_ends;
                if (read_ends) begin
                    read_at <= read_back ? 0 : PLACES - BEATS;
                end else begin
                    read_at <= read_at + ((read_back & read_turns) ? 1 - 2 * BEATS : 1);
                end
            end
            // The last place is written after it was read, and never in the same clock.
            whole <= (take & write_ends) | (whole & ~(move & read_ends));
            full <= move | (full & ~m_ready);
        end
    end
endmodule
