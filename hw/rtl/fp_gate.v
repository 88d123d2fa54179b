// Samples and loads of weights take turns at the ports of a design.
//
// While a load waits or is under way, no input is `open` for a new sample; only one that another input has begun, or that
// is half in, goes on. The load begins when every sample has left: `ready`. After its last value the inputs stay closed
// until that has `arrived`, behind all layers. `beats` are taken at the inputs, `lasts` says which end a sample;
// `ends` are the last beats that leave the outputs. Samples are counted modulo 1 << COUNT, more than can be inside.
module fp_gate #(
    parameter INPUTS = 1,
    parameter OUTPUTS = 1,
    parameter COUNT = 16
) (
    input wire clk,
    input wire rst,
    input wire [INPUTS-1:0] beats,
    input wire [INPUTS-1:0] lasts,
    output wire [INPUTS-1:0] open,
    input wire [OUTPUTS-1:0] ends,
    input wire valid,
    input wire last,
    output wire ready,
    input wire arrived
);
    reg [INPUTS-1:0] within;
    reg [INPUTS*COUNT-1:0] begun;
    reg [OUTPUTS*COUNT-1:0] ended;
    reg loading;
    reg whole;
    wire [INPUTS-1:0] even;
    wire [OUTPUTS-1:0] gone;

    assign ready = ~whole & (loading | (&even & &gone));

    genvar i, k;
    generate
        for (i = 0; i < INPUTS; i = i + 1) begin : inputs
            // Whether this input has begun fewer samples than each of the others.
            wire [INPUTS-1:0] fewer;
            for (k = 0; k < INPUTS; k = k + 1) begin : others
                wire [COUNT-1:0] unused_more = begun[i*COUNT +: COUNT] - begun[k*COUNT +: COUNT];
                assign fewer[k] = unused_more[COUNT-1];
            end
            assign even[i] = begun[i*COUNT +: COUNT] == begun[COUNT-1:0];
            assign open[i] = within[i] | ~(valid | loading) | (|fewer);
            always @(posedge clk) begin
                if (rst) begin
                    within[i] <= 1'b0;
                    begun[i*COUNT +: COUNT] <= {COUNT{1'b0}};
                end else if (beats[i]) begin
                    within[i] <= ~lasts[i];
                    begun[i*COUNT +: COUNT] <= begun[i*COUNT +: COUNT] + {{(COUNT-1){1'b0}}, ~within[i]};
                end
            end
        end
        for (i = 0; i < OUTPUTS; i = i + 1) begin : outputs
            assign gone[i] = ended[i*COUNT +: COUNT] == begun[COUNT-1:0];
            always @(posedge clk) begin
                if (rst) begin
                    ended[i*COUNT +: COUNT] <= {COUNT{1'b0}};
                end else begin
                    ended[i*COUNT +: COUNT] <= ended[i*COUNT +: COUNT] + {{(COUNT-1){1'b0}}, ends[i]};
                end
            end
        end
    endgenerate

    always @(posedge clk) begin
        loading <= ~rst & ~arrived & (loading | (valid & ready));
        whole <= ~rst & ~arrived & (whole | (valid & ready & last));
    end
endmodule
