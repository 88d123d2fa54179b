// Runs the netlist of a bitstream, 64 boards at a time, and speaks to each over its serial line as a host does.
//
// netlist CELLS INPUT OUTPUT SAMPLES IN_BYTES OUT_BYTES BIT PATIENCE OPEN
//   CELLS: the cells in the order in which they are computed, one a line (see `Reader` below).
//   INPUT: the bytes of all samples. OUTPUT: the bytes that came back for each.
//   BIT: cycles of the clock that a bit takes on the line, in 1/65536.
//   PATIENCE: cycles without a byte after which the run is given up, with exit status 5.
//   OPEN: 0 or 1, what a wire that is connected to nothing gives.
// Board n of a round gets sample 64 * round + n; every bit of a word is one board. Exit status 6: a byte came that no
// sample asked for; 7: a byte has no stop bit.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace {

using Word = uint64_t;
using Words = std::vector<Word>;
constexpr int BOARDS = 64;
#ifdef EVERY_CELL  // The reference that a test compares with.
constexpr bool every = true;
#else
constexpr bool every = false;
#endif
Words net;

struct Cell {
    enum Kind { table, read, product } kind;
    uint32_t content;  // a table's bits, or the number of a small memory or of a multiplier
    int in[4], out;
};
struct Register {
    int data, enable, reset, out;
    int start;  // 0, 1, or 2 for what a wire gives that is connected to nothing
};
struct Small {
    std::array<Word, 16> bits;
    int write[4], enable, data;
    std::vector<int> reads;  // the cells that read it
};
struct Port {
    int width, enable, write, output_enable, registered, mode;
    std::vector<int> address, data, out, masks;
    Words first, last;  // what was read, and the register behind it
};
struct Block {
    std::vector<uint8_t> content[BOARDS];
    std::vector<Port> ports;
};
struct Multiplier {
    int a_signed, b_signed;
    std::vector<int> a, b, out;
};

std::vector<Cell> cells;
std::vector<Register> registers;
std::vector<Small> small;
std::vector<Block> blocks;
std::vector<Multiplier> multipliers;

// Most of a chip waits most of the time, so only what reads a changed net is computed. A node is a cell, a register, a
// small memory or a block, numbered in this order; the cells, in the order of computation, fill whole words of `stale`.
std::vector<std::vector<int>> readers;  // net -> the nodes that read it
Words stale;                            // a bit for each node whose inputs changed
int first_register = 0, first_small = 0, first_block = 0;

inline void mark(int node) { stale[node / 64] |= Word(1) << node % 64; }

inline void set(int at, Word value) {
    if (net[at] == value) return;
    net[at] = value;
    for (const int node : readers[at]) mark(node);
}

void connect() {
    first_register = (cells.size() + 63) / 64 * 64;
    first_small = first_register + registers.size();
    first_block = first_small + small.size();
    stale.assign((first_block + blocks.size() + 63) / 64, 0);
    readers.resize(net.size());
    const auto reads = [](int node, const std::vector<int>& nets) {
        for (const int at : nets) readers[at].push_back(node);
    };
    for (std::size_t i = 0; i < cells.size(); ++i) {
        const Cell& cell = cells[i];
        if (cell.kind == Cell::product) {
            const Multiplier& m = multipliers[cell.content];
            reads(i, m.a);
            reads(i, m.b);
            reads(i, {m.a_signed, m.b_signed});
        } else {
            reads(i, {cell.in, cell.in + 4});
            if (cell.kind == Cell::read) small[cell.content].reads.push_back(i);
        }
    }
    int node = first_register;
    for (const Register& r : registers) reads(node++, {r.data, r.enable, r.reset});
    for (const Small& s : small) {
        reads(node, {s.write, s.write + 4});
        reads(node++, {s.enable, s.data});
    }
    for (const Block& block : blocks) {
        for (const Port& p : block.ports) {
            reads(node, {p.enable, p.write, p.output_enable});
            reads(node, p.address);
            reads(node, p.data);
            reads(node, p.masks);
        }
        ++node;
    }
}

void all_stale() {
    for (std::size_t i = 0; i < cells.size(); ++i) mark(i);
    for (std::size_t i = first_register; i < first_block + blocks.size(); ++i) mark(i);
}

inline Word any_of(uint32_t content, const int* in) {
    const Word a = net[in[0]], b = net[in[1]], c = net[in[2]], d = net[in[3]];
    const Word of[4] = {0, ~a, a, ~Word(0)};
    Word t[8];
    // Bit pairs of the table choose 0, not A, A or 1.
    for (int i = 0; i < 8; ++i) t[i] = of[content >> (2 * i) & 3];
    for (int i = 0; i < 4; ++i) t[i] = t[2 * i] ^ (b & (t[2 * i] ^ t[2 * i + 1]));
    const Word low = t[0] ^ (c & (t[0] ^ t[1])), high = t[2] ^ (c & (t[2] ^ t[3]));
    return low ^ (d & (low ^ high));
}

inline Word chosen(const Small& memory, const int* in) {
    Word t[16];
    for (int i = 0; i < 16; ++i) t[i] = memory.bits[i];
    for (int level = 0, left = 8; level < 4; ++level, left /= 2) {
        const Word choose = net[in[level]];
        for (int i = 0; i < left; ++i) t[i] = t[2 * i] ^ (choose & (t[2 * i] ^ t[2 * i + 1]));
    }
    return t[0];
}

uint32_t number(const std::vector<int>& nets, int board) {
    uint32_t found = 0;
    for (std::size_t i = 0; i < nets.size(); ++i) found |= static_cast<uint32_t>(net[nets[i]] >> board & 1) << i;
    return found;
}

struct Reader {
    std::ifstream file;
    explicit Reader(const char* name) : file(name) {}
    int number() {
        int found = 0;
        if (!(file >> found)) std::exit(3);
        return found;
    }
    std::vector<int> numbers() {
        std::vector<int> found(number());
        for (int& one : found) one = number();
        return found;
    }
    void read(int& input, int& output) {
        std::string kind;
        while (file >> kind) {
            if (kind == "nets") {
                net.assign(number(), 0);
                input = number();
                output = number();
            } else if (kind == "table" || kind == "read") {
                Cell t{};
                t.kind = kind == "read" ? Cell::read : Cell::table;
                t.content = number();
                for (int& in : t.in) in = number();
                t.out = number();
                cells.push_back(t);
            } else if (kind == "multiplier") {
                Cell t{};
                t.kind = Cell::product;
                t.content = multipliers.size();
                cells.push_back(t);
                Multiplier m;
                m.a_signed = number(), m.b_signed = number();
                m.a = numbers(), m.b = numbers(), m.out = numbers();
                multipliers.push_back(std::move(m));
            } else if (kind == "register") {
                Register r{};
                r.data = number(), r.enable = number(), r.reset = number();
                r.start = number();
                r.out = number();
                registers.push_back(r);
            } else if (kind == "small") {
                Small s{};
                const int content = number();
                for (int i = 0; i < 16; ++i) s.bits[i] = content >> i & 1 ? ~Word(0) : 0;
                for (int& in : s.write) in = number();
                s.enable = number(), s.data = number();
                small.push_back(s);
            } else if (kind == "block") {
                Block b;
                const std::size_t size = number();
                std::string bits;
                file >> bits;
                if (bits.size() != size) std::exit(3);
                for (auto& content : b.content)
                    for (const char digit : bits) content.push_back(digit == '1');
                blocks.push_back(std::move(b));
            } else if (kind == "port") {
                Port p;
                p.width = number(), p.enable = number(), p.write = number();
                p.output_enable = number(), p.registered = number(), p.mode = number();
                p.address = numbers(), p.data = numbers(), p.out = numbers(), p.masks = numbers();
                p.first.assign(p.out.size(), 0);
                p.last.assign(p.out.size(), 0);
                blocks.back().ports.push_back(std::move(p));
            } else
                std::exit(3);
        }
    }
};

void multiply(const Multiplier& m) {
    const int na = m.a.size(), nb = m.b.size(), no = m.out.size();
    Words made(no);
    for (int board = 0; board < BOARDS; ++board) {
        int64_t a = number(m.a, board), b = number(m.b, board);
        if ((net[m.a_signed] >> board & 1) && (a >> (na - 1) & 1)) a -= int64_t(1) << na;
        if ((net[m.b_signed] >> board & 1) && (b >> (nb - 1) & 1)) b -= int64_t(1) << nb;
        const uint64_t product = a * b;
        for (int i = 0; i < no; ++i) made[i] |= (product >> i & 1) << board;
    }
    for (int i = 0; i < no; ++i) set(m.out[i], made[i]);
}

// Computes the stale cells. What a cell changes is read by later cells only.
void compute() {
    for (int word = 0; word < first_register / 64; ++word)
        while (const Word left = stale[word]) {
            stale[word] = left & (left - 1);
            const Cell& cell = cells[64 * word + __builtin_ctzll(left)];
            if (cell.kind == Cell::table)
                set(cell.out, any_of(cell.content, cell.in));
            else if (cell.kind == Cell::read)
                set(cell.out, chosen(small[cell.content], cell.in));
            else
                multiply(multipliers[cell.content]);
        }
}

// The first bit of what an address means in a memory of words of 18 bits, or of 16, 40 or 80 where a port is as wide.
uint32_t place_of(const Port& port, uint32_t address) {
    if (port.width == 16 || port.width >= 40) return address * port.width;
    if (port.width >= 9) return address / (8 * (port.width / 9)) * port.width;
    const uint32_t bit = address / port.width * port.width & 15;
    return (address >> 4) * 18 + bit + (bit >= 8);
}

// All ports read what was there; then they write. Returns whether anything in the block changed.
bool tick(Block& block) {
    bool changed = false;
    const auto put = [&changed](auto& place, auto value) {
        changed |= place != value;
        place = value;
    };
    for (Port& p : block.ports) {
        if (p.registered)
            for (std::size_t i = 0; i < p.out.size(); ++i)
                put(p.last[i], p.last[i] ^ (net[p.output_enable] & (p.first[i] ^ p.last[i])));
        const Word enable = net[p.enable], write = net[p.write];
        for (int board = 0; board < BOARDS; ++board) {
            if (!(enable >> board & 1) || ((write >> board & 1) && p.mode < 2)) continue;
            const uint8_t* from = &block.content[board][place_of(p, number(p.address, board))];
            for (std::size_t i = 0; i < p.out.size(); ++i)
                put(p.first[i], (p.first[i] & ~(Word(1) << board)) | Word(from[i]) << board);
        }
    }
    for (Port& p : block.ports) {
        const Word writes = net[p.enable] & net[p.write];
        if (!writes || p.data.empty()) continue;
        for (int board = 0; board < BOARDS; ++board) {
            if (!(writes >> board & 1)) continue;
            const uint32_t address = number(p.address, board);
            uint8_t* to = &block.content[board][place_of(p, address)];
            for (std::size_t i = 0; i < p.data.size(); ++i) {
                // The lowest address bits of two bytes or four enable one each.
                if ((p.width == 18 || p.width == 36) && !(address >> (i / 9) & 1)) continue;
                if (!p.masks.empty() && (net[p.masks[i]] >> board & 1)) continue;
                put(to[i], uint8_t(net[p.data[i]] >> board & 1));
                if ((p.mode == 1 || p.mode == 3) && i < p.out.size())
                    put(p.first[i], (p.first[i] & ~(Word(1) << board)) | Word(to[i]) << board);
            }
        }
    }
    return changed;
}

void tick(Small& s) {
    const Word enable = net[s.enable], data = net[s.data];
    bool changed = false;
    for (int i = 0; i < 16; ++i) {
        Word here = enable;
        for (int bit = 0; bit < 4; ++bit) here &= i >> bit & 1 ? net[s.write[bit]] : ~net[s.write[bit]];
        const Word now = (s.bits[i] & ~here) | (data & here);
        changed |= now != s.bits[i];
        s.bits[i] = now;
    }
    if (changed)
        for (const int cell : s.reads) mark(cell);
}

// A clock edge. With the same inputs a register or a small memory does not change again; a block may, as long as the
// edge before changed it.
void tick() {
    static std::vector<std::pair<int, Word>> next;
    static std::vector<int> active;
    next.clear();
    active.clear();
    for (std::size_t word = first_register / 64; word < stale.size(); ++word)
        while (const Word left = stale[word]) {
            stale[word] = left & (left - 1);
            const int node = 64 * word + __builtin_ctzll(left);
            if (node < first_small) {
                const Register& r = registers[node - first_register];
                const Word enable = net[r.enable], reset = net[r.reset];
                next.emplace_back(r.out, (reset & net[r.start]) | (~reset & ((enable & net[r.data]) | (~enable & net[r.out]))));
            } else if (node < first_block)
                tick(small[node - first_small]);
            else if (tick(blocks[node - first_block]) || every)
                active.push_back(node);
        }
    for (const int node : active) {
        mark(node);
        for (Port& p : blocks[node - first_block].ports)
            for (std::size_t i = 0; i < p.out.size(); ++i) set(p.out[i], p.registered ? p.last[i] : p.first[i]);
    }
    for (const auto& [out, value] : next) set(out, value);
}

// A serial line: one bit after another, 10 for a byte, each `bit` long; times are in 1/65536 cycles.
struct Line {
    std::size_t sent = 0, came = 0;
    int64_t begun = -1, heard = -1;  // when the byte on its way began, out and in
    uint64_t quiet = 0;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 10) return 2;
    int input = 0, output = 0;
    Reader(argv[1]).read(input, output);
    connect();
    const std::size_t samples = std::strtoull(argv[4], nullptr, 10), in_bytes = std::strtoull(argv[5], nullptr, 10),
                      out_bytes = std::strtoull(argv[6], nullptr, 10);
    const int64_t bit = std::strtoll(argv[7], nullptr, 10);
    const uint64_t patience = std::strtoull(argv[8], nullptr, 10);
    const Word open = argv[9][0] == '1' ? ~Word(0) : 0;
    std::vector<uint8_t> sent(samples * in_bytes), came(samples * out_bytes);
    std::ifstream(argv[2], std::ios::binary).read(reinterpret_cast<char*>(sent.data()), sent.size());
    const auto small_start = small;
    const auto blocks_start = blocks;
    uint64_t cycles = 0;
    for (std::size_t first = 0; first < samples; first += BOARDS) {
        const int boards = std::min<std::size_t>(BOARDS, samples - first);
        // Each round begins with freshly configured boards.
        small = small_start;
        blocks = blocks_start;
        for (Word& word : net) word = 0;
        net[1] = ~Word(0);
        net[2] = open;
        for (const Register& r : registers) net[r.out] = net[r.start];
        all_stale();
        std::vector<Line> lines(boards);
        Word level = ~Word(0);
        int waiting = boards;
        int64_t tail = -1;
        for (int64_t now = 0;; now += 65536, ++cycles) {
            set(input, level);
            if (every) all_stale();
            compute();
            const Word out = net[output];
            for (int board = 0; board < boards; ++board) {
                Line& line = lines[board];
                const std::size_t sample = first + board;
                // What comes back is read in the middle of each bit.
                if (line.heard < 0) {
                    if (!(out >> board & 1) && now > 64 * 65536) line.heard = now;
                } else {
                    const int64_t since = now - line.heard;
                    const int64_t which = (since - bit / 2) / bit;
                    const bool middle = since >= bit / 2 && (since - bit / 2) % bit < 65536;
                    if (middle && which >= 1 && which <= 8) {
                        if (line.came >= out_bytes) return 6;
                        came[sample * out_bytes + line.came] |= (out >> board & 1) << (which - 1);
                    }
                    if (middle && which == 9) {
                        if (!(out >> board & 1)) return 7;
                        line.heard = -1;
                        line.quiet = 0;
                        if (++line.came == out_bytes && !--waiting) tail = now + 40 * bit;
                    }
                }
                // The next byte goes out when the one before is through, the first after a moment.
                if (line.begun < 0 && line.sent < in_bytes && now > 200 * 65536) line.begun = now;
                if (line.begun >= 0) {
                    const int64_t which = (now - line.begun) / bit;
                    const uint8_t byte = sent[sample * in_bytes + line.sent];
                    const bool high = which == 0 ? false : which <= 8 ? byte >> (which - 1) & 1 : true;
                    level = (level & ~(Word(1) << board)) | Word(high) << board;
                    line.quiet = 0;
                    if (now - line.begun >= 10 * bit) line.begun = -1, ++line.sent;
                } else if (line.came < out_bytes && ++line.quiet > patience)
                    return 5;
            }
            if (tail >= 0 && now > tail) break;
            tick();
        }
    }
    std::ofstream(argv[3], std::ios::binary).write(reinterpret_cast<char*>(came.data()), came.size());
    std::cout << cycles << " cycles\n";
}
