// What came in DEPTH enabled clocks before what comes in now comes out; DEPTH is at least 1.
// The place that is read is never the one that is written, so any block memory will do. After a reset it begins at place
// PHASE; `inside`, that it is at one of its places, is always so.
// Counters have the bits that their limits need, and limits are integers: the widths differ on purpose.
/* verilator lint_off WIDTHEXPAND */
/* verilator lint_off WIDTHTRUNC */
module fp_line_buffer #(
    parameter WIDTH = 8,
    parameter DEPTH = 8,
    parameter PHASE = 0
) (
    input wire clk,
    input wire rst,
    input wire ce,
    input wire [WIDTH-1:0] in_data,
    output wire [WIDTH-1:0] out_data,
    output wire inside
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

    reg [WIDTH-1:0] leaving;
    assign out_data = leaving;

    generate
        if (DEPTH == 1) begin : one
            wire unused = rst;
            assign inside = 1'b1;
            always @(posedge clk) begin
                if (ce) begin
                    leaving <= in_data;
                end
            end
        end else begin : more
            reg [WIDTH-1:0] memory [0:DEPTH-1];
            reg [bits_of(DEPTH)-1:0] write_at;
            reg [bits_of(DEPTH)-1:0] read_at;
            assign inside = write_at != DEPTH;
            always @(posedge clk) begin
                if (ce) begin
                    memory[write_at[bits_of(DEPTH - 1)-1:0]] <= in_data;
                    leaving <= memory[read_at[bits_of(DEPTH - 1)-1:0]];
                end
                if (rst) begin
                    write_at <= PHASE % DEPTH;
                    read_at <= (PHASE + 1) % DEPTH;
                end else if (ce) begin
                    write_at <= read_at;
                    read_at <= (read_at == DEPTH - 1) ? 0 : read_at + 1'b1;
                end
            end
        end
    endgenerate
endmodule
