// A delay line for kernels without netem: joins each host's TAP device to a port of the switch, and holds every packet
// back for a while. Usage: delay_line DELAY_NS JITTER_NS SWITCH_PID HOST_PID...
//
// One thread: epoll over all devices and one timer. Packets keep their virtio header, so the large ones that TCP makes
// (GSO) pass whole. Says "ready fifo" (or "ready") when all devices are there; ends with its parent or by a signal.
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <deque>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr long long kSecond = 1000000000LL;
constexpr long long kEarly = 5000;             // due so soon that setting the timer would take longer
constexpr long long kMostWakeup = 60000;       // later than that is a stolen core, not a wake-up
constexpr size_t kMostQueued = 64u << 20;      // bytes a direction; beyond it packets are lost, as on a real link
constexpr int kReadsInTurn = 64;               // of one device before the others get their turn

struct Packet {
  long long due;
  std::string bytes;
};

struct Direction {
  int in, out;
  std::deque<Packet> queue;
  size_t queued = 0;
  long long last_due = 0;
};

[[noreturn]] void fail(const std::string& what) {
  printf("%s: %s\n", what.c_str(), strerror(errno));
  exit(1);
}

long long now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * kSecond + t.tv_nsec;
}

int make_tap(const char* pid, const std::string& name) {
  const std::string path = std::string("/proc/") + pid + "/ns/net";
  const int space = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (space < 0 || setns(space, CLONE_NEWNET) != 0) fail(path);
  close(space);
  const int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (tap < 0) fail("/dev/net/tun");
  ifreq request = {};
  request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  strncpy(request.ifr_name, name.c_str(), IFNAMSIZ - 1);
  if (ioctl(tap, TUNSETIFF, &request) != 0) fail("TUNSETIFF " + name);
  if (ioctl(tap, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN) != 0) fail("TUNSETOFFLOAD");
  return tap;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    printf("usage: delay_line DELAY_NS JITTER_NS SWITCH_PID HOST_PID...\n");
    return 2;
  }
  // A packet waits for this process to wake up twice, to be read and to be written. How long a wake-up takes is seen at
  // the timer, and taken off the delay.
  long long wakeup = 0, armed = 0;
  const long long delay = atoll(argv[1]), jitter = atoll(argv[2]);
  std::vector<Direction> directions;
  for (int i = 4; i < argc; ++i) {
    const int port = make_tap(argv[3], "p" + std::to_string(i - 4));
    const int host = make_tap(argv[i], "eth0");
    directions.push_back({host, port});
    directions.push_back({port, host});
  }
  const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  if (timer < 0 || epoll < 0) fail("epoll");
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = directions.size();
  epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &event);
  for (size_t i = 0; i < directions.size(); ++i) {
    event.data.u64 = i;
    epoll_ctl(epoll, EPOLL_CTL_ADD, directions[i].in, &event);
  }
  sched_param priority = {};
  priority.sched_priority = 10;
  const bool fifo = sched_setscheduler(0, SCHED_FIFO, &priority) == 0;
  printf(fifo ? "ready fifo\n" : "ready\n");
  fflush(stdout);

  std::minstd_rand dice(1);
  std::uniform_int_distribution<long long> spread(-jitter, jitter);
  std::vector<char> buffer(1 << 17);
  std::vector<epoll_event> events(directions.size() + 1);
  while (true) {
    const int count = epoll_wait(epoll, events.data(), events.size(), -1);
    if (count < 0 && errno != EINTR) fail("epoll_wait");
    for (int e = 0; e < count; ++e) {
      if (events[e].data.u64 == directions.size()) {
        unsigned long long ticks;
        if (read(timer, &ticks, sizeof ticks) > 0 && armed) {
          const long long late = now() - armed;
          wakeup += ((late < kMostWakeup ? late : kMostWakeup) - wakeup) / 16;
        }
        continue;
      }
      Direction& d = directions[events[e].data.u64];
      for (int k = 0; k < kReadsInTurn; ++k) {
        const ssize_t size = read(d.in, buffer.data(), buffer.size());
        if (size <= 0) break;
        if (d.queued + size > kMostQueued) continue;
        long long due = now() + delay - 2 * wakeup + (jitter ? spread(dice) : 0);
        if (due < d.last_due) due = d.last_due;  // a wire does not change the order
        d.last_due = due;
        d.queued += size;
        d.queue.push_back({due, std::string(buffer.data(), size)});
      }
    }
    long long next = 0;
    for (Direction& d : directions) {
      while (!d.queue.empty() && d.queue.front().due <= now() + kEarly) {
        const std::string& bytes = d.queue.front().bytes;
        if (write(d.out, bytes.data(), bytes.size()) < 0 && errno == EBADFD) fail("a device is gone");
        d.queued -= bytes.size();
        d.queue.pop_front();
      }
      if (!d.queue.empty() && (next == 0 || d.queue.front().due < next)) next = d.queue.front().due;
    }
    armed = next;
    itimerspec wake = {};
    wake.it_value.tv_sec = next / kSecond;
    wake.it_value.tv_nsec = next % kSecond;
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &wake, nullptr);
  }
}
