// Holds a beat where it is for DEPTH clocks: what registers without an enable make of it stands still by then.
//
// Nothing else enters meanwhile, so that a value takes one register however long it is needed, and the input none.
module fp_settle #(
    parameter DEPTH = 1
) (
    input wire clk,
    input wire rst,
    input wire s_valid,
    output wire s_ready,
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

    reg [bits_of(DEPTH)-1:0] count;

    assign m_valid = count == DEPTH;
    assign s_ready = m_valid & m_ready;

    always @(posedge clk) begin
        if (rst | s_ready) begin
            count <= 0;
        end else if (s_valid & ~m_valid) begin
            count <= count + 1'b1;
        end
    end
endmodule
