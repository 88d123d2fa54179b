// Up to DEPTH + 1 beats wait in order; DEPTH of them in a memory, one at the exit.
// Counters have the bits that their limits need, and limits are integers: the widths differ on purpose.
/* verilator lint_off WIDTHEXPAND */
/* verilator lint_off WIDTHTRUNC */
module fp_fifo #(
    parameter WIDTH = 8,
    parameter DEPTH = 16
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

    // What is read from the place that is written in the same clock is not valid: nothing waits then.
    (* no_rw_check *)
    reg [WIDTH-1:0] memory [0:DEPTH-1];
    reg [bits_of(DEPTH - 1)-1:0] write_at;
    reg [bits_of(DEPTH - 1)-1:0] read_at;
    reg [bits_of(DEPTH)-1:0] waiting;
    reg [WIDTH-1:0] leaving;
    reg full;
    reg vacant;

    wire take = s_valid & s_ready;
    // The exit takes what the memory shows whenever it may; where nothing waits, that is not valid. So the wide register
    // moves by readiness alone, and by a flag of its own, so that no wire of the narrow control reaches as far.
    wire opens = m_ready | vacant;
    wire open = m_ready | ~full;
    wire move = (waiting != 0) & open;

    assign s_ready = waiting != DEPTH;
    assign m_data = leaving;
    assign m_valid = full;

    always @(posedge clk) begin
        if (take) begin
            memory[write_at] <= s_data;
        end
        if (opens) begin
            leaving <= memory[read_at];
        end
        if (rst) begin
            write_at <= 0;
            read_at <= 0;
            waiting <= 0;
            full <= 1'b0;
            vacant <= 1'b1;
        end else begin
            if (take) begin
                write_at <= (write_at == DEPTH - 1) ? 0 : write_at + 1'b1;
            end
            if (move) begin
                read_at <= (read_at == DEPTH - 1) ? 0 : read_at + 1'b1;
            end
            if (take != move) begin
                waiting <= take ? waiting + 1'b1 : waiting - 1'b1;
            end
            if (open) begin
                full <= move;
                vacant <= ~move;
            end
        end
    end
endmodule
