// One beat leaves as BEATS beats, its lowest bits first.
// Counters have the bits that their limits need, and limits are integers: the widths differ on purpose.
/* verilator lint_off WIDTHEXPAND */
/* verilator lint_off WIDTHTRUNC */
module fp_scatter #(
    parameter WIDTH = 8,
    parameter BEATS = 2
) (
    input wire clk,
    input wire rst,
    input wire [BEATS*WIDTH-1:0] s_data,
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

    reg [BEATS*WIDTH-1:0] beats;
    reg [bits_of(BEATS)-1:0] to_go;
    // At most one beat is to go.
    reg few;

    assign m_data = beats[WIDTH-1:0];
    assign m_valid = to_go != 0;
    assign s_ready = (to_go == 0) | ((to_go == 1'b1) & m_ready);

    always @(posedge clk) begin
        // What is taken without s_valid leaves nothing to go, so one register chooses: of more than that, synthesis for an
        // ECP5 makes up to eight tables for each bit.
        if ((s_valid & s_ready) | (m_valid & m_ready)) begin
            beats <= few ? s_data : beats >> WIDTH;
        end
        few <= rst | (s_ready ? ~s_valid | (BEATS == 1) : (to_go == 1) | (m_ready & (to_go == 2)));
        if (rst) begin
            to_go <= 0;
        end else if (s_valid & s_ready) begin
            to_go <= BEATS;
        end else if (m_valid & m_ready) begin
            to_go <= to_go - 1'b1;
        end
    end
endmodule
