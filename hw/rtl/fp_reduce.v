// Each of BEATS signed numbers leaves, the largest of them (LARGEST) or their sum beside it, in the upper bits.
// OUT_WIDTH bits, at least WIDTH, hold every number and every sum.
// Counters have the bits that their limits need, and limits are integers: the widths differ on purpose.
/* verilator lint_off WIDTHEXPAND */
/* verilator lint_off WIDTHTRUNC */
module fp_reduce #(
    parameter WIDTH = 8,
    parameter OUT_WIDTH = 10,
    parameter BEATS = 4,
    parameter LARGEST = 0
) (
    input wire clk,
    input wire rst,
    input wire [WIDTH-1:0] s_data,
    input wire s_valid,
    output wire s_ready,
    output wire [2*OUT_WIDTH-1:0] m_data,
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

    // The result of the sample that comes in grows in one register; that of the sample that leaves stands in another.
    reg signed [OUT_WIDTH-1:0] growing;
    reg signed [OUT_WIDTH-1:0] standing;
    reg complete;
    reg leaves;
    reg [bits_of(BEATS - 1)-1:0] came;
    reg [bits_of(BEATS - 1)-1:0] left;

    wire [WIDTH-1:0] waiting;
    wire has_room;
    wire is_there;
    wire accept = s_valid & s_ready;
    wire go = m_valid & m_ready;
    wire last = go & (left == BEATS - 1);
    wire move = complete & (~leaves | last);
    wire signed [OUT_WIDTH-1:0] number = {{(OUT_WIDTH-WIDTH+1){s_data[WIDTH-1]}}, s_data[WIDTH-2:0]};

    // Nothing that depends on m_ready decides here: of a long path from reader to writer, synthesis makes large logic. So
    // every second sample at full speed loses a cycle.
    assign s_ready = has_room & ~(complete & leaves);
    assign m_valid = is_there & leaves;
    assign m_data = {standing, {(OUT_WIDTH-WIDTH+1){waiting[WIDTH-1]}}, waiting[WIDTH-2:0]};

    // While a sample leaves at full speed, BEATS numbers wait, and two on their way through the queue.
    fp_fifo #(.WIDTH(WIDTH), .DEPTH(BEATS + 1)) queue (
        .clk(clk), .rst(rst),
        .s_data(s_data), .s_valid(accept), .s_ready(has_room),
        .m_data(waiting), .m_valid(is_there), .m_ready(m_ready & leaves)
    );

    generate
        if (LARGEST) begin : compare
            always @(posedge clk) begin
                if (accept & ((came == 0) | (number > growing))) begin
                    growing <= number;
                end
            end
        end else begin : add
            always @(posedge clk) begin
                if (accept) begin
                    growing <= (came == 0) ? number : growing + number;
                end
            end
        end
    endgenerate

    always @(posedge clk) begin
        if (move) begin
            standing <= growing;
        end
        if (rst) begin
            came <= 0;
            left <= 0;
            complete <= 1'b0;
            leaves <= 1'b0;
        end else begin
            if (accept) begin
                came <= (came == BEATS - 1) ? 0 : came + 1'b1;
            end
            if (accept | move) begin
                complete <= accept & (came == BEATS - 1);
            end
            if (go) begin
                left <= last ? 0 : left + 1'b1;
            end
            if (move | last) begin
                leaves <= move;
            end
        end
    end
endmodule
