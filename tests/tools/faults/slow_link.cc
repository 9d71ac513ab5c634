// usage: rhizome_slow_link DELAY_US NAMESPACE DEVICE OTHER_NAMESPACE OTHER_DEVICE
// A network link with latency: frames sent by one of two TAP devices arrive at the other after a
// delay, in both directions. The devices must exist (ip tuntap add), each in its network namespace.
// The process remains in the second namespace and runs until it is killed.

#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

/// The maximum size of a packet, including one that the kernel has not segmented yet, with its
/// headers.
constexpr std::size_t kMaxFrameBytes = 65536 + 64;
constexpr int kFramesAtOnce = 64;

struct Frame {
  Clock::time_point due;
  std::size_t length = 0;
  std::vector<char> bytes;  // kMaxFrameBytes
};

[[noreturn]] void Stop(const std::string& what) {
  std::fprintf(stderr, "rhizome_slow_link: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

/// Enters a network namespace of `ip netns`, and opens a device there. Packets arrive as the kernel
/// has them: unsegmented, up to the size of many frames, and without checksums. A header says so,
/// and the other device accepts them with this header.
int OpenDevice(const std::string& space, const std::string& device) {
  const std::string path = "/run/netns/" + space;
  const int entered = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (entered < 0 || setns(entered, CLONE_NEWNET) != 0) Stop(path);
  close(entered);
  const int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (tap < 0) Stop("/dev/net/tun");
  ifreq request = {};
  request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  device.copy(request.ifr_name, IFNAMSIZ - 1);
  if (ioctl(tap, TUNSETIFF, &request) != 0) Stop(device);
  if (ioctl(tap, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) != 0) Stop(device);
  return tap;
}

/// One direction of the link.
class Way {
 public:
  Way(int from, int to, nanoseconds delay) : from_(from), to_(to), delay_(delay) {}

  /// Reads the frames that were sent. The kernel queues those that are not read yet, and drops any
  /// excess.
  void Take() {
    for (int n = 0; n < kFramesAtOnce; ++n) {
      if (spare_.empty()) spare_.emplace_back().bytes.resize(kMaxFrameBytes);
      Frame& frame = spare_.back();
      const ssize_t length = read(from_, frame.bytes.data(), frame.bytes.size());
      if (length < 0 && errno != EAGAIN && errno != EINTR && errno != EIO) Stop("reading a frame");
      if (length <= 0) return;
      frame.length = static_cast<std::size_t>(length);
      frame.due = Clock::now() + delay_;
      frames_.push_back(std::move(frame));
      spare_.pop_back();
    }
  }

  /// Delivers the frames that are due. Returns the time at which the next one is due. A device that
  /// is down accepts none; its frames are lost, as on a cut wire.
  std::optional<Clock::time_point> Give() {
    for (; !frames_.empty() && frames_.front().due <= Clock::now(); frames_.pop_front()) {
      Frame& frame = frames_.front();
      if (write(to_, frame.bytes.data(), frame.length) < 0 && errno != EIO && errno != EAGAIN)
        Stop("writing a frame");
      spare_.push_back(std::move(frame));
    }
    if (frames_.empty()) return std::nullopt;
    return frames_.front().due;
  }

 private:
  const int from_, to_;
  const nanoseconds delay_;
  std::deque<Frame> frames_;  // in the order in which they arrived and are due
  std::vector<Frame> spare_;  // memory for reuse
};

/// Sleeps until a device has sent something, or until `then`.
void Await(int one, int other, std::optional<Clock::time_point> then) {
  std::array<pollfd, 2> devices = {{{one, POLLIN, 0}, {other, POLLIN, 0}}};
  timespec wait = {};
  if (then) {
    const nanoseconds left = std::max<nanoseconds>(*then - Clock::now(), nanoseconds(0));
    wait = {left.count() / 1'000'000'000, left.count() % 1'000'000'000};
  }
  if (ppoll(devices.data(), devices.size(), then ? &wait : nullptr, nullptr) < 0 && errno != EINTR)
    Stop("waiting for frames");
}

[[noreturn]] void Relay(int one, int other, nanoseconds delay) {
  Way there(one, other, delay), back(other, one, delay);
  while (true) {
    there.Take();
    back.Take();
    const std::optional<Clock::time_point> first = there.Give(), second = back.Give();
    Await(one, other, first && second ? std::min(*first, *second) : first ? first : second);
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 6) return 64;
  const nanoseconds delay(static_cast<long>(1e3 * std::strtod(arguments[1], nullptr)));
  prctl(PR_SET_TIMERSLACK, 1000UL);  // wake up within microseconds, not 50 us late
  const int one = OpenDevice(arguments[2], arguments[3]);
  const int other = OpenDevice(arguments[4], arguments[5]);
  Relay(one, other, delay);
}
