// What stands around a design on AXI: streams of WORD_BITS with TLAST, and registers on AXI4-Lite.
//
// TLAST on the last word of a sample goes with that sample to the last word of its result. Up to 2 ** FLIGHT_BITS
// samples are in flight. Registers of 32 bits, by their byte addresses:
//   00 "fpr1"                       04 version of these registers, 1
//   08 digest of the design, low    0c digest, high
//   10 write 1: reset, 16 clocks    14 samples taken
//   18 results sent                 1c, 20 clocks with a sample in flight, low and high
//   24 TLASTs out of place          28 bits of a word
//   2c write: a beat of a load of weights; read: 1 while it waits
//   30 write: the last beat of a load; read: 1 if the design takes loads
// A load waits until all samples that have begun before it have left, and those behind it wait until its last beat. A
// write of a beat while another one waits is answered when that has gone.
// The reset clears streams, counters and the design, at any time; a DMA that is waiting must be reset too.
module fp_axi_core #(
    parameter WORD_BITS   = 64,
    parameter IN_BITS     = 8,
    parameter IN_SLOT     = 8,
    parameter IN_BEATS    = 1,
    parameter OUT_BITS    = 8,
    parameter OUT_SLOT    = 8,
    parameter OUT_BEATS   = 1,
    parameter FLIGHT_BITS = 8,
    parameter LOADS       = 0,
    parameter LOAD_BITS   = 8,
    parameter [63:0] DIGEST = 0
) (
    input  wire                   aclk,
    input  wire                   aresetn,
    input  wire [WORD_BITS-1:0]   s_axis_tdata,
    input  wire                   s_axis_tvalid,
    output wire                   s_axis_tready,
    input  wire                   s_axis_tlast,
    output wire [WORD_BITS-1:0]   m_axis_tdata,
    output wire [WORD_BITS/8-1:0] m_axis_tkeep,
    output wire                   m_axis_tvalid,
    input  wire                   m_axis_tready,
    output wire                   m_axis_tlast,
    input  wire [7:0]             s_axi_awaddr,
    input  wire                   s_axi_awvalid,
    output wire                   s_axi_awready,
    input  wire [31:0]            s_axi_wdata,
    input  wire [3:0]             s_axi_wstrb,
    input  wire                   s_axi_wvalid,
    output wire                   s_axi_wready,
    output wire [1:0]             s_axi_bresp,
    output reg                    s_axi_bvalid,
    input  wire                   s_axi_bready,
    input  wire [7:0]             s_axi_araddr,
    input  wire                   s_axi_arvalid,
    output wire                   s_axi_arready,
    output reg  [31:0]            s_axi_rdata,
    output wire [1:0]             s_axi_rresp,
    output reg                    s_axi_rvalid,
    input  wire                   s_axi_rready,
    output reg                    design_rst,
    output wire [IN_BITS-1:0]     to_design_tdata,
    output wire                   to_design_tvalid,
    input  wire                   to_design_tready,
    output wire                   to_design_tlast,
    input  wire [OUT_BITS-1:0]    from_design_tdata,
    input  wire                   from_design_tvalid,
    output wire                   from_design_tready,
    output reg  [LOAD_BITS-1:0]   load_tdata,
    output wire                   load_tvalid,
    output reg                    load_tlast,
    input  wire                   load_tready
);
    // Reset: from outside, or for 16 clocks after a write.
    reg [4:0] resetting;
    wire      asked;
    always @(posedge aclk)
        if (!aresetn) begin
            resetting  <= 5'd0;
            design_rst <= 1'b1;
        end else begin
            if (asked) resetting <= 5'd16;
            else if (resetting != 5'd0) resetting <= resetting - 5'd1;
            design_rst <= asked || resetting != 5'd0;
        end
    wire rst = design_rst;

    // For each sample in flight, whether it ended with TLAST.
    reg [(1<<FLIGHT_BITS)-1:0] flags;
    reg [FLIGHT_BITS:0]        pushed, popped;
    wire taken, taken_last, sent, malformed;
    wire flags_full  = pushed - popped == 1 << FLIGHT_BITS;
    wire flags_there = pushed != popped;

    // A beat of a load; whether a load has begun; whether words of a sample have come, and not its last one.
    reg load_there, loading, within;
    always @(posedge aclk)
        if (rst) begin
            pushed <= 0;
            popped <= 0;
        end else begin
            if (taken) begin
                flags[pushed[FLIGHT_BITS-1:0]] <= taken_last;
                pushed <= pushed + 1'b1;
            end
            if (sent) popped <= popped + 1'b1;
        end

    fp_axis_unpack #(
        .WORD_BITS(WORD_BITS), .BEAT_BITS(IN_BITS), .SLOT_BITS(IN_SLOT), .BEATS(IN_BEATS)
    ) unpack (
        .clk(aclk), .rst(rst), .hold(flags_full || (loading && !within)), .s_axis_tdata(s_axis_tdata), .s_axis_tvalid(s_axis_tvalid),
        .s_axis_tready(s_axis_tready), .s_axis_tlast(s_axis_tlast), .m_axis_tdata(to_design_tdata),
        .m_axis_tvalid(to_design_tvalid), .m_axis_tready(to_design_tready), .m_axis_tlast(to_design_tlast),
        .taken(taken), .taken_last(taken_last), .malformed(malformed)
    );
    fp_axis_pack #(
        .WORD_BITS(WORD_BITS), .BEAT_BITS(OUT_BITS), .SLOT_BITS(OUT_SLOT), .BEATS(OUT_BEATS)
    ) pack (
        .clk(aclk), .rst(rst), .flag(flags[popped[FLIGHT_BITS-1:0]]), .flag_there(flags_there), .sent(sent),
        .s_axis_tdata(from_design_tdata), .s_axis_tvalid(from_design_tvalid), .s_axis_tready(from_design_tready),
        .m_axis_tdata(m_axis_tdata), .m_axis_tvalid(m_axis_tvalid), .m_axis_tready(m_axis_tready),
        .m_axis_tlast(m_axis_tlast)
    );
    assign m_axis_tkeep = {WORD_BITS/8{1'b1}};

    // Counters.
    reg [31:0] samples, results, misplaced;
    reg [63:0] busy;
    always @(posedge aclk)
        if (rst) begin
            samples   <= 32'd0;
            results   <= 32'd0;
            misplaced <= 32'd0;
            busy      <= 64'd0;
        end else begin
            if (taken) samples <= samples + 32'd1;
            if (sent) results <= results + 32'd1;
            if (malformed) misplaced <= misplaced + 32'd1;
            if (flags_there || to_design_tvalid) busy <= busy + 64'd1;
        end

    // AXI4-Lite: a write when address and data are there and no answer waits; a read when no answer waits.
    wire last_beat = s_axi_awaddr[7:2] == 6'h0c;
    wire beat = LOADS != 0 && (s_axi_awaddr[7:2] == 6'h0b || last_beat);
    wire write = s_axi_awvalid && s_axi_wvalid && !s_axi_bvalid && aresetn && !(beat && (load_there || rst));
    assign s_axi_awready = write;
    assign s_axi_wready  = write;
    assign s_axi_bresp   = 2'b00;
    assign s_axi_rresp   = 2'b00;
    assign s_axi_arready = !s_axi_rvalid && aresetn;
    assign asked = write && s_axi_awaddr[7:2] == 6'h04 && s_axi_wstrb[0] && s_axi_wdata[0];
    assign load_tvalid = load_there && !flags_there && !within;
    always @(posedge aclk)
        if (rst) begin
            load_there <= 1'b0;
            loading    <= 1'b0;
            within     <= 1'b0;
        end else begin
            if (s_axis_tvalid && s_axis_tready) within <= !taken;
            if (write && beat) begin
                load_tdata <= s_axi_wdata[LOAD_BITS-1:0];
                load_tlast <= last_beat;
                load_there <= 1'b1;
                loading    <= 1'b1;
            end else if (load_tvalid && load_tready) begin
                load_there <= 1'b0;
                loading    <= !load_tlast;
            end
        end
    always @(posedge aclk)
        if (!aresetn) begin
            s_axi_bvalid <= 1'b0;
            s_axi_rvalid <= 1'b0;
        end else begin
            if (write) s_axi_bvalid <= 1'b1;
            else if (s_axi_bready) s_axi_bvalid <= 1'b0;
            if (s_axi_arvalid && s_axi_arready) begin
                s_axi_rvalid <= 1'b1;
                case (s_axi_araddr[7:2])
                    6'h00: s_axi_rdata <= 32'h31727066;
                    6'h01: s_axi_rdata <= 32'd1;
                    6'h02: s_axi_rdata <= DIGEST[31:0];
                    6'h03: s_axi_rdata <= DIGEST[63:32];
                    6'h04: s_axi_rdata <= {31'd0, rst};
                    6'h05: s_axi_rdata <= samples;
                    6'h06: s_axi_rdata <= results;
                    6'h07: s_axi_rdata <= busy[31:0];
                    6'h08: s_axi_rdata <= busy[63:32];
                    6'h09: s_axi_rdata <= misplaced;
                    6'h0a: s_axi_rdata <= WORD_BITS;
                    6'h0b: s_axi_rdata <= {31'd0, load_there};
                    6'h0c: s_axi_rdata <= {31'd0, LOADS != 0};
                    default: s_axi_rdata <= 32'd0;
                endcase
            end else if (s_axi_rready) s_axi_rvalid <= 1'b0;
        end
endmodule
