// Drives the AXI4-Stream ports of a verilated module and writes down what leaves, with the clock of every sample.
//
// harness INPUT OUTPUT SAMPLES STALL_IN STALL_OUT SEED RESET_AFTER TIMEOUT [LOADS]
//   INPUT: for each input port in turn all of its beats, each in whole 32-bit words, lowest first.
//   OUTPUT: for each output port in turn all of its beats in the same form, then for each input port the clock at which
//     each sample's first beat went in, and for each output port the clocks at which its first and last beat came out,
//     as 64-bit integers.
//   STALL_IN, STALL_OUT: of 1024 clocks, in how many a port offers or takes nothing.
//   RESET_AFTER: input beats after which the module is reset and everything begins again; 0 is never.
//   TIMEOUT: clocks without any beat after which the run is given up.
//   LOADS: loads of weights, as 32-bit integers: each the number of the sample that it comes before, its beats, and these
//     in whole words. A load is offered when the sample before has begun to go in.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "Vtop.h"
#include "verilated.h"

double sc_time_stamp() { return 0; }

namespace {

using Words = std::vector<uint32_t>;

template <typename T> void put(T& port, const uint32_t* words) {
    uint64_t value = words[0];
    if (sizeof(T) > 4) value |= static_cast<uint64_t>(words[1]) << 32;
    port = static_cast<T>(value);
}
template <std::size_t N> void put(VlWide<N>& port, const uint32_t* words) {
    for (std::size_t i = 0; i < N; ++i) port[i] = words[i];
}
template <typename T> void get(const T& port, uint32_t* words) {
    words[0] = static_cast<uint32_t>(port);
    if (sizeof(T) > 4) words[1] = static_cast<uint32_t>(static_cast<uint64_t>(port) >> 32);
}
template <std::size_t N> void get(const VlWide<N>& port, uint32_t* words) {
    for (std::size_t i = 0; i < N; ++i) words[i] = port[i];
}

uint64_t state;
bool stalls(uint32_t share) {
    // Xorshift, Marsaglia 2003.
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 20 & 1023) < share;
}

struct Port {
    int words, beats;
    std::size_t done = 0;
    bool active = false;
    Words data;
    std::vector<uint64_t> first, last;
};

struct Load {
    std::size_t sample, beats;
    Words data;
};

#include "bind.h"

}  // namespace

int main(int argc, char** argv) {
    if (argc != 9 && argc != 10) return 2;
    const std::size_t samples = std::strtoull(argv[3], nullptr, 10);
    const uint32_t stall_in = std::strtoul(argv[4], nullptr, 10), stall_out = std::strtoul(argv[5], nullptr, 10);
    state = std::strtoull(argv[6], nullptr, 10) * 2654435761u + 88172645463325252ull;
    std::size_t reset_after = std::strtoull(argv[7], nullptr, 10);
    const uint64_t timeout = std::strtoull(argv[8], nullptr, 10);

    std::vector<Port> in = inputs(), out = outputs();
    FILE* file = std::fopen(argv[1], "rb");
    if (!file) return 3;
    for (Port& port : in) {
        port.data.resize(samples * port.beats * port.words);
        if (std::fread(port.data.data(), 4, port.data.size(), file) != port.data.size()) return 4;
    }
    std::fclose(file);
    std::vector<Port> load_ports = loads();
    std::vector<Load> queue;
    if (argc == 10) {
        file = std::fopen(argv[9], "rb");
        if (!file || load_ports.empty()) return 3;
        for (uint32_t head[2]; std::fread(head, 4, 2, file) == 2;) {
            queue.push_back({head[0], head[1], Words(head[1] * load_ports[0].words)});
            if (std::fread(queue.back().data.data(), 4, queue.back().data.size(), file) != queue.back().data.size()) return 4;
        }
        std::fclose(file);
    }
    std::size_t load = 0, load_done = 0;
    bool load_active = false;

    const auto context = std::make_unique<VerilatedContext>();
    const auto top = std::make_unique<Vtop>(context.get());
    const auto tick = [&]() {
        top->clk = 0;
        top->eval();
        top->clk = 1;
        top->eval();
    };
    const auto reset = [&]() {
        for (Port& port : in) port.done = 0, port.active = false, port.first.clear();
        for (Port& port : out) port.done = 0, port.data.clear(), port.first.clear(), port.last.clear();
        load = load_done = 0, load_active = false;
        top->rst = 1;
        if (!load_ports.empty()) offer_load(*top, 0, nullptr, false, false);
        for (std::size_t i = 0; i < in.size(); ++i) offer(*top, i, nullptr, false, false);
        for (std::size_t i = 0; i < out.size(); ++i) ready(*top, i, false);
        tick();
        tick();
        top->rst = 0;
    };
    reset();
    uint64_t clock = 0, moved = 0;
    for (;;) {
        bool finished = true;
        for (const Port& port : out) finished = finished && port.done == samples * port.beats;
        if (finished) break;
        if (clock - moved > timeout) return 5;
        // A load is offered when an input has begun the sample before; then it is the design that holds the next one back.
        bool due = load < queue.size() && queue[load].sample == 0;
        for (const Port& port : in) {
            due = due || (load < queue.size() && port.done > (queue[load].sample - 1) * port.beats);
        }
        if (!load_active) load_active = due && !stalls(stall_in);
        const std::size_t most = load < queue.size() && !load_active && !load_done ? queue[load].sample : samples;
        if (!load_ports.empty()) {
            const uint32_t* words = load_active ? &queue[load].data[load_done * load_ports[0].words] : nullptr;
            offer_load(*top, 0, words, load_active, load_active && load_done == queue[load].beats - 1);
        }
        for (std::size_t i = 0; i < in.size(); ++i) {
            Port& port = in[i];
            // What is offered stays until it is taken.
            if (!port.active) port.active = port.done < most * port.beats && !stalls(stall_in);
            const bool last = port.done % port.beats == static_cast<std::size_t>(port.beats) - 1;
            offer(*top, i, port.active ? &port.data[port.done * port.words] : nullptr, port.active, last);
        }
        std::vector<bool> takes(out.size());
        for (std::size_t i = 0; i < out.size(); ++i) {
            takes[i] = !stalls(stall_out);
            ready(*top, i, takes[i]);
        }
        top->clk = 0;
        top->eval();
        std::size_t went = 0;
        if (load_active && taken_load(*top, 0)) {
            load_active = false;
            moved = clock;
            if (++load_done == queue[load].beats) load_done = 0, ++load;
        }
        for (std::size_t i = 0; i < in.size(); ++i) {
            Port& port = in[i];
            if (port.active && taken(*top, i)) {
                if (port.done % port.beats == 0) port.first.push_back(clock);
                ++port.done;
                port.active = false;
                moved = clock;
            }
            went += port.done;
        }
        for (std::size_t i = 0; i < out.size(); ++i) {
            Port& port = out[i];
            if (takes[i] && offered(*top, i)) {
                if (port.done == samples * port.beats) return 6;
                const std::size_t place = port.done % port.beats;
                if (lasts(*top, i) != (place == static_cast<std::size_t>(port.beats) - 1)) return 7;
                if (place == 0) port.first.push_back(clock);
                if (place == static_cast<std::size_t>(port.beats) - 1) port.last.push_back(clock);
                port.data.resize(port.data.size() + port.words);
                fetch(*top, i, &port.data[port.data.size() - port.words]);
                ++port.done;
                moved = clock;
            }
        }
        top->clk = 1;
        top->eval();
        ++clock;
        if (reset_after && went >= reset_after) {
            reset();
            reset_after = 0;
            moved = clock;
        }
    }
    file = std::fopen(argv[2], "wb");
    if (!file) return 8;
    for (const Port& port : out) std::fwrite(port.data.data(), 4, port.data.size(), file);
    for (const Port& port : in) std::fwrite(port.first.data(), 8, port.first.size(), file);
    for (const Port& port : out) {
        std::fwrite(port.first.data(), 8, port.first.size(), file);
        std::fwrite(port.last.data(), 8, port.last.size(), file);
    }
    std::fclose(file);
    top->final();
    return 0;
}
