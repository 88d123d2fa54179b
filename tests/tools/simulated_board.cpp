// A board in Verilator behind a pseudo-terminal: bytes that come from the terminal go to the pin serial_in, bit by bit,
// and what the pin serial_out says goes back.
//
// board DIVIDER: prints the name of the terminal, and runs until its standard input ends. While nothing moves and no
// answer is awaited, it still runs: a pause within a sample is told by the board's own clock.
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <deque>

#include "Vboard.h"
#include "verilated.h"

double sc_time_stamp() { return 0; }

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    const int divider = std::atoi(argv[1]);
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0 || grantpt(terminal) || unlockpt(terminal)) return 3;
    // The other end is held open, so that the terminal stays when a sender goes.
    const int other = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    termios raw;
    tcgetattr(other, &raw);
    cfmakeraw(&raw);
    tcsetattr(other, TCSANOW, &raw);
    std::printf("%s\n", ptsname(terminal));
    std::fflush(stdout);

    Vboard board;
    board.serial_in = 1;
    std::deque<uint8_t> waiting;
    int in_bit = 0, in_wait = 0, out_bit = 0, out_wait = 0;
    uint8_t out_byte = 0;
    bool receiving = false;
    for (uint64_t clock = 0;; ++clock) {
        if (clock % 512 == 0 && waiting.empty()) {
            pollfd asked[2] = {{terminal, POLLIN, 0}, {0, POLLIN, 0}};
            poll(asked, 2, 0);
            if (asked[1].revents) return 0;
            if (asked[0].revents & POLLIN) {
                uint8_t bytes[4096];
                const ssize_t count = read(terminal, bytes, sizeof bytes);
                for (ssize_t i = 0; i < count; ++i) waiting.push_back(bytes[i]);
            }
        }
        // To the board: a start bit, eight bits, the lowest first, a stop bit.
        if (in_wait) --in_wait;
        else if (in_bit || !waiting.empty()) {
            board.serial_in = in_bit == 0 ? 0 : in_bit == 9 ? 1 : waiting.front() >> (in_bit - 1) & 1;
            in_wait = divider - 1;
            if (++in_bit == 10) {
                in_bit = 0;
                waiting.pop_front();
            }
        }
        board.clk = 0;
        board.eval();
        board.clk = 1;
        board.eval();
        // From the board: each bit is read in its middle.
        if (!receiving) {
            if (!board.serial_out && clock > 32) receiving = true, out_bit = 0, out_wait = divider / 2;
        } else if (out_wait) --out_wait;
        else {
            out_wait = divider - 1;
            if (out_bit == 9) {
                receiving = false;
                if (!board.serial_out || write(terminal, &out_byte, 1) != 1) return 4;
            } else if (out_bit) out_byte = static_cast<uint8_t>(out_byte >> 1 | board.serial_out << 7);
            ++out_bit;
        }
    }
}
