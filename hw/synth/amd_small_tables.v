// For yosys's techmap: a table of at most 64 entries in one LUT for each bit of an entry, as Vivado makes of it. Without this
// map, yosys takes two or three smaller LUTs for some of them, which count less in its sum of costs.
(* techmap_celltype = "$bmux" *)
module _80_small_table (A, S, Y);
    parameter WIDTH = 1;
    parameter S_WIDTH = 1;
    localparam ENTRIES = 1 << S_WIDTH;

    input [WIDTH*ENTRIES-1:0] A;
    input [S_WIDTH-1:0] S;
    output [WIDTH-1:0] Y;

    parameter [WIDTH*ENTRIES-1:0] _TECHMAP_CONSTMSK_A_ = 0;
    parameter [WIDTH*ENTRIES-1:0] _TECHMAP_CONSTVAL_A_ = 0;
    wire _TECHMAP_FAIL_ = S_WIDTH > 6 || !(&_TECHMAP_CONSTMSK_A_);

    // For each bit of the entries its value by the index. Yosys is slow in loops: one serves all bits.
    function [64*WIDTH-1:0] columns;
        input integer unused;
        integer at;
        for (at = 0; at < 64 * WIDTH; at = at + 1)
            columns[at] = _TECHMAP_CONSTVAL_A_[(at & (ENTRIES - 1)) * WIDTH + at / 64];
    endfunction

    localparam [64*WIDTH-1:0] COLUMNS = columns(0);
    // For each bit of the index its value by the index.
    localparam [383:0] WIRES = {
        64'hffffffff00000000, 64'hffff0000ffff0000, 64'hff00ff00ff00ff00,
        64'hf0f0f0f0f0f0f0f0, 64'hcccccccccccccccc, 64'haaaaaaaaaaaaaaaa
    };

    // The first bit of the index, or of the entry behind the index, that is the same; none is below -1.
    function integer same;
        input integer place;
        integer other;
        begin
            same = -1;
            for (other = place - 1; other >= 0; other = other - 1)
                if (COLUMNS[64*other+:64] == COLUMNS[64*place+:64]) same = S_WIDTH + other;
            for (other = S_WIDTH - 1; other >= 0; other = other - 1)
                if (WIRES[64*other+:64] == COLUMNS[64*place+:64]) same = other;
        end
    endfunction

    wire [5:0] index = S;
    wire [S_WIDTH+WIDTH-1:0] known = {Y, S};
    genvar i;
    generate
        for (i = 0; i < WIDTH; i = i + 1) begin : bits
            localparam [63:0] INIT = COLUMNS[64*i+:64];
            localparam SAME = same(i);
            if (INIT == 64'd0 || &INIT) assign Y[i] = INIT[0];
            else if (SAME >= 0) assign Y[i] = known[SAME];
            else LUT6 #(.INIT(INIT)) one (
                .I0(index[0]), .I1(index[1]), .I2(index[2]), .I3(index[3]), .I4(index[4]), .I5(index[5]), .O(Y[i])
            );
        end
    endgenerate
endmodule
