// A serial port (8 data bits, no parity, one stop bit) on one side, AXI4-Streams on the other.
//
// A beat of IN_BITS is (IN_BITS + 7) / 8 bytes, lowest byte first; after BEATS beats TLAST marks the end of a sample.
// Every beat of OUT_BITS that the design gives is sent the same way. A beat that is complete before the design took
// the one before it is lost, unless KEEP is 1: then a memory holds a sample for a design that takes it more slowly than
// it comes. Send a sample, then read its result. A pause of 2 ** PAUSE_BITS cycles within a sample gives the sample up
// and resets the design, so that a sender that was cut off can begin again.
//
// A sample that is given up after its first byte, if that byte is a question mark, is a question: the IDENTITY_BYTES of
// IDENTITY are sent, lowest byte first. A sample of one byte is never given up, so such a design is never asked.
module uart_stream #(
    parameter DIVIDER    = 25,  // clock cycles per bit
    parameter IN_BITS    = 8,
    parameter OUT_BITS   = 8,
    parameter BEATS      = 1,
    parameter PAUSE_BITS = 20,
    parameter KEEP       = 0,
    parameter IDENTITY_BYTES = 1,
    parameter [8*IDENTITY_BYTES-1:0] IDENTITY = 0
) (
    input  wire                clk,
    input  wire                hold,        // high until the clock is steady
    input  wire                serial_in,
    output reg                 serial_out,
    output reg                 design_rst,
    output wire [IN_BITS-1:0]  to_design_tdata,
    output wire                to_design_tvalid,
    input  wire                to_design_tready,
    output wire                to_design_tlast,
    input  wire [OUT_BITS-1:0] from_design_tdata,
    input  wire                from_design_tvalid,
    output wire                from_design_tready
);
    localparam IN_BYTES  = (IN_BITS + 7) / 8;
    localparam OUT_BYTES = (OUT_BITS + 7) / 8;

    // Bits that hold `value`, at least one.
    function integer bits_of;
        input integer value;
        integer rest;
        begin
            bits_of = 1;
            for (rest = value >> 1; rest > 0; rest = rest >> 1) bits_of = bits_of + 1;
        end
    endfunction
    localparam WAIT = bits_of(DIVIDER - 1);

    // Reset once after configuration, and on a pause within a sample.
    reg [3:0]          started = 4'd0;
    reg [PAUSE_BITS:0] quiet   = 0;
    wire               gave_up = quiet[PAUSE_BITS];
    wire               rst     = !started[3] || gave_up;
    always @(posedge clk) begin
        if (hold) started <= 4'd0;
        else if (!started[3]) started <= started + 4'd1;
        design_rst <= rst;
    end

    // Receiver: the middle of each bit is sampled.
    reg  [1:0]  line = 2'b11;
    reg         receiving = 1'b0;
    reg  [WAIT-1:0] in_wait;
    reg  [3:0]  in_bit;
    reg  [7:0]  in_byte;
    reg         in_done;
    always @(posedge clk) begin
        line    <= {line[0], serial_in};
        in_done <= 1'b0;
        if (rst) receiving <= 1'b0;
        else if (!receiving) begin
            if (!line[1]) begin
                receiving <= 1'b1;
                in_wait   <= DIVIDER / 2 - 1;  // the line was low some cycles before it was seen
                in_bit    <= 4'd0;
            end
        end else if (in_wait != 0) in_wait <= in_wait - 1'b1;
        else begin
            in_wait <= DIVIDER - 1;
            in_bit  <= in_bit + 4'd1;
            if (in_bit == 4'd0) receiving <= !line[1];  // no start bit: a glitch
            else if (in_bit == 4'd9) begin
                receiving <= 1'b0;
                in_done   <= line[1];                   // no stop bit: no byte
            end else in_byte <= {line[1], in_byte[7:1]};
        end
    end

    // Bytes to beats.
    reg [8*IN_BYTES-1:0] in_shift;
    reg [bits_of(IN_BYTES-1)-1:0] in_count;
    reg [bits_of(BEATS-1)-1:0]    beat;
    reg                  question;  // all that came of this sample is a question mark
    wire                 begun  = in_count != 0 || beat != 0;
    wire                 midway = begun || receiving;
    reg                  came;      // a beat is complete, the last one of its sample or not
    reg                  came_last;
    wire                 taking;
    always @(posedge clk) begin
        quiet <= (midway && !receiving && !rst) ? quiet + 1'b1 : 0;
        if (taking) came <= 1'b0;
        if (rst) begin
            came             <= 1'b0;
            in_count         <= 0;
            beat             <= 0;
        end else if (in_done) begin
            in_shift <= {in_byte, in_shift} >> 8;
            question <= !begun && in_byte == 8'h3f;
            if (in_count == IN_BYTES - 1) begin
                in_count         <= 0;
                came             <= 1'b1;
                came_last        <= beat == BEATS - 1;
                beat             <= beat == BEATS - 1 ? 0 : beat + 1'b1;
            end else in_count <= in_count + 1'b1;
        end
    end

    // A memory for the beats of a sample, or none.
    generate
        if (KEEP == 0) begin : passes
            assign to_design_tdata  = in_shift[IN_BITS-1:0];
            assign to_design_tvalid = came;
            assign to_design_tlast  = came_last;
            assign taking           = to_design_tready;
        end else begin : keeps
            localparam AT = bits_of(BEATS - 1);
            reg [IN_BITS:0] kept [0:(1 << AT)-1];
            reg [IN_BITS:0] next;
            reg [AT:0]      write_at, read_at;
            reg             full;
            wire            reads = !full || to_design_tready;
            assign to_design_tdata  = next[IN_BITS-1:0];
            assign to_design_tlast  = next[IN_BITS];
            assign to_design_tvalid = full;
            assign taking           = 1'b1;
            always @(posedge clk) begin
                if (came) kept[write_at[AT-1:0]] <= {came_last, in_shift[IN_BITS-1:0]};
                if (reads) next <= kept[read_at[AT-1:0]];
                if (rst) begin
                    write_at <= 0;
                    read_at  <= 0;
                    full     <= 1'b0;
                end else begin
                    if (came) write_at <= write_at + 1'b1;
                    if (reads) full <= read_at != write_at;
                    if (reads && read_at != write_at) read_at <= read_at + 1'b1;
                end
            end
        end
    endgenerate

    // Sender: a beat is sent byte by byte from where the design holds it, and taken with its last byte.
    reg       sending = 1'b0;
    reg       telling = 1'b0;  // the identity is sent, a byte at a time
    reg       taken   = 1'b0;
    reg [bits_of(IDENTITY_BYTES-1)-1:0] told;
    reg [bits_of(OUT_BYTES-1)-1:0]      out_count;
    reg [WAIT-1:0]        out_wait;
    reg [3:0]             out_bit;
    reg [7:0]             out_byte;
    wire [8*OUT_BYTES-1:0] result = from_design_tdata;
    assign from_design_tready = taken;
    always @(posedge clk) begin
        taken <= 1'b0;
        if (rst) begin
            sending    <= 1'b0;
            serial_out <= 1'b1;
            telling    <= gave_up && begun && question && !receiving;
            told       <= 0;
            out_count  <= 0;
            out_wait   <= 0;
            out_bit    <= 4'd0;
        end else if (out_wait != 0) out_wait <= out_wait - 1'b1;  // a stop bit is as long as any other
        else if (!sending) begin
            if (telling) begin
                sending  <= 1'b1;
                out_byte <= IDENTITY[8*told +: 8];
                told     <= told + 1'b1;
                telling  <= told != IDENTITY_BYTES - 1;
            end else if (from_design_tvalid) begin
                sending   <= 1'b1;
                out_byte  <= result[8*out_count +: 8];
                out_count <= out_count == OUT_BYTES - 1 ? 0 : out_count + 1'b1;
                taken     <= out_count == OUT_BYTES - 1;
            end
        end else begin
            out_wait <= DIVIDER - 1;
            if (out_bit == 4'd0) serial_out <= 1'b0;
            else if (out_bit <= 4'd8) begin
                serial_out <= out_byte[0];
                out_byte   <= out_byte >> 1;
            end else serial_out <= 1'b1;
            if (out_bit != 4'd9) out_bit <= out_bit + 4'd1;
            else begin
                out_bit <= 4'd0;
                sending <= 1'b0;
            end
        end
    end
endmodule
