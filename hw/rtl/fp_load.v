// The part of a load that is for one layer: the weights of KERNELS kernels, TAPS each, then BIASES biases.
//
// A load passes the layers one after another, a value at each clock, and nothing stops it. A layer takes as many values as
// it has, and hands on those behind. Kernels go to the STEPS places of the memory of the first group, then of the next.
// `l_end` comes with the last value of a load, wherever that is: then everything begins anew, and a memory that got
// nothing keeps what it has.
// Counters have the bits that their limits need, and limits are integers: the widths differ on purpose.
/* verilator lint_off WIDTHEXPAND */
/* verilator lint_off WIDTHTRUNC */
module fp_load #(
    parameter WIDTH = 8,
    parameter TAPS = 9,
    parameter W_WIDTH = 8,
    parameter GROUPS = 2,
    parameter STEPS = 8,
    parameter STEP = 3,
    parameter KERNELS = 16,
    parameter BIASES = 4,
    parameter B_WIDTH = 8,
    parameter BIAS = 2
) (
    input wire clk,
    input wire rst,
    input wire [WIDTH-1:0] l_data,
    input wire l_valid,
    input wire l_end,
    output reg [WIDTH-1:0] n_data,
    output reg n_valid,
    output reg n_end,
    output reg [GROUPS-1:0] writes,
    output reg [STEP-1:0] write_at,
    output reg [TAPS*W_WIDTH-1:0] kernel,
    output reg bias_writes,
    output reg [BIAS-1:0] bias_at,
    output reg [B_WIDTH-1:0] bias
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

    // Where the last kernel lies, if there is one.
    localparam LAST = (KERNELS == 0) ? 0 : KERNELS - 1;
    localparam LAST_GROUP = LAST / STEPS;
    localparam LAST_STEP = LAST % STEPS;

    reg weighing;
    reg biasing;
    reg [bits_of(TAPS - 1)-1:0] tap;
    reg [GROUPS-1:0] group;
    reg [STEP-1:0] step;
    reg [BIAS-1:0] number;
    wire whole = l_valid & weighing & (tap == TAPS - 1);

    always @(posedge clk) begin
        n_data <= l_data;
        n_valid <= l_valid & ~weighing & ~biasing & ~rst;
        n_end <= l_end & ~rst;
        if (l_valid & weighing) begin
            kernel <= {l_data[W_WIDTH-1:0], kernel} >> W_WIDTH;
        end
        writes <= (whole & ~rst) ? group : {GROUPS{1'b0}};
        write_at <= step;
        bias_writes <= l_valid & biasing & ~rst;
        bias_at <= number;
        bias <= l_data[B_WIDTH-1:0];
        if (rst | l_end) begin
            weighing <= KERNELS != 0;
            biasing <= KERNELS == 0;
            tap <= 0;
            group <= 1;
            step <= 0;
            number <= 0;
        end else if (whole) begin
            tap <= 0;
            step <= (step == STEPS - 1) ? 0 : step + 1'b1;
            group <= (step == STEPS - 1) ? group << 1 : group;
            if (group[LAST_GROUP] & (step == LAST_STEP)) begin
                weighing <= 1'b0;
                biasing <= 1'b1;
            end
        end else if (l_valid & weighing) begin
            tap <= tap + 1'b1;
        end else if (l_valid & biasing) begin
            number <= number + 1'b1;
            biasing <= number != BIASES - 1;
        end
    end
endmodule
