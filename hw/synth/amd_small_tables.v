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

    // Bit `place` of the entries, by the index.
    function [63:0] column;
        input integer place;
        integer row;
        for (row = 0; row < 64; row = row + 1)
            column[row] = _TECHMAP_CONSTVAL_A_[(row & (ENTRIES - 1)) * WIDTH + place];
    endfunction

    function [63:0] wire_of;
        input integer place;
        integer row;
        for (row = 0; row < 64; row = row + 1) wire_of[row] = row >> place & 1;
    endfunction

    // The first bit of the index, or of the entry behind the index, that is the same; none is below -1.
    function integer same;
        input integer place;
        integer other;
        begin
            same = -1;
            for (other = place - 1; other >= 0; other = other - 1)
                if (column(other) == column(place)) same = S_WIDTH + other;
            for (other = S_WIDTH - 1; other >= 0; other = other - 1)
                if (wire_of(other) == column(place)) same = other;
        end
    endfunction

    wire [5:0] index = S;
    wire [S_WIDTH+WIDTH-1:0] known = {Y, S};
    genvar i;
    generate
        for (i = 0; i < WIDTH; i = i + 1) begin : bits
            localparam [63:0] INIT = column(i);
            localparam SAME = same(i);
            if (INIT == 64'd0 || &INIT) assign Y[i] = INIT[0];
            else if (SAME >= 0) assign Y[i] = known[SAME];
            else LUT6 #(.INIT(INIT)) one (
                .I0(index[0]), .I1(index[1]), .I2(index[2]), .I3(index[3]), .I4(index[4]), .I5(index[5]), .O(Y[i])
            );
        end
    endgenerate
endmodule
