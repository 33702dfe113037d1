// VirtualNetwork: hosts, and the links between processes on them, under a VirtualLoop. It
// carries the bytes of Connections as TCP does: in order within a link, cut anywhere, each
// link with delays of its own, so that links overtake one another.
//
// What can go wrong: a link is reset in the middle of a frame, and its ends see that at
// different times; a host's bytes are late; nothing passes between two hosts, one way or
// both; a process stands still while the kernel still takes bytes for it; it ends, and its
// peers see the end of the stream, or, if its machine has crashed, nothing.
//
// Simplified against TCP: bytes in flight on a link are limited by one window, which opens
// when the receiver reads; there is no slow start and no loss but a reset.
#ifndef FOLIOT_VIRTUAL_CLUSTER_VIRTUAL_NETWORK_H_
#define FOLIOT_VIRTUAL_CLUSTER_VIRTUAL_NETWORK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cluster/transport/connection.h"
#include "cluster/transport/link_handler.h"
#include "foundation/base/random.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "virtual/world/node_clock.h"
#include "virtual/world/virtual_loop.h"

namespace foliot {

class VirtualLinkLoop;
class VirtualNetwork;

using HostId = uint32_t;
using LinkNumber = uint64_t;

// One process's end of a link, as a tap sees it.
struct LinkEnd {
  LinkNumber link = 0;
  uint64_t process = 0;  // VirtualLinkLoop::process() of this end
  uint64_t peer = 0;     // and of the other
};

// LinkTap: sees the frames of all links: those that a process has sent when they enter the
// network, and those that it receives just before it does.
class LinkTap {
 public:
  virtual ~LinkTap() = default;
  virtual void on_sent(const LinkEnd& from, const Frame& frame) = 0;
  virtual void on_received(const LinkEnd& to, const Frame& frame) = 0;
  // The process has closed its end, or ended.
  virtual void on_closed(const LinkEnd& end) = 0;
  // A turn of this process is over, and what it sent has been seen.
  virtual void on_turn(uint64_t process) = 0;
};

struct NetworkOptions {
  // Bytes take `delay` plus an exponential `jitter`.
  Duration delay = Duration::microseconds(100);
  Duration jitter = Duration::microseconds(50);
  size_t window_bytes = size_t{256} << 10;
};

class VirtualNetwork {
 public:
  // `tap` sees all frames; null: none. Both outlive the network.
  VirtualNetwork(VirtualLoop& loop, const NetworkOptions& options, uint64_t seed, LinkTap* tap = nullptr);
  ~VirtualNetwork();

  // A machine whose addresses are NAME:PORT.
  HostId add_host(std::string name);

  void set_extra_delay(HostId host, Duration delay) { hosts_[host].extra_delay = delay; }
  // What is sent this way arrives when it is unblocked. Blocks of one way add up.
  void block(HostId from, HostId to);
  void unblock(HostId from, HostId to);
  // A machine that is down answers nothing, not even that no process listens.
  void set_up(HostId host, bool up) { hosts_[host].up = up; }
  // Resets one of the links that are open, drawn at random; false: there is none.
  bool reset_some_link();

  // Links that were made; of these, how many were reset.
  uint64_t links() const { return links_.size(); }
  uint64_t resets() const { return resets_; }

 private:
  friend class VirtualLinkLoop;
  enum class Ending : uint8_t { kNone, kClosed, kReset };
  struct Segment {
    TimePoint arrival;
    WireBytes bytes;
    Ending ending = Ending::kNone;  // else there are no bytes, and nothing follows
  };
  // Cuts a stream of bytes into frames, for the tap.
  struct Cutter {
    WireBytes bytes;
    bool greeted = false;
  };
  // Bytes from one end to the other.
  struct Pipe {
    std::deque<Segment> segments;
    TimePoint last_arrival;
    size_t bytes = 0;
    bool ended = false;
    Cutter sent;
    Cutter received;
  };
  struct End {
    VirtualLinkLoop* loop = nullptr;
    std::unique_ptr<Connection> connection;  // null: not yet open, or over
    bool open = false;
    bool has_unsent = false;
    TimePoint received_at;  // on its own clock; when it was opened, until the peer's greeting came
  };
  struct Link {
    LinkNumber number = 0;
    std::array<End, 2> ends;    // [0] has dialed
    std::array<Pipe, 2> pipes;  // [i]: from ends[i]
    uint64_t dial = 0;          // of ends[0].loop
  };
  struct Host {
    std::string name;
    bool up = true;
    Duration extra_delay;
    std::map<uint16_t, VirtualLinkLoop*> listeners;
  };

  Duration delay(HostId from, HostId to);
  bool blocked(HostId from, HostId to) const;
  void connect(VirtualLinkLoop& from, uint64_t dial, const std::string& address);
  void answer(VirtualLinkLoop& from, uint64_t dial);
  void push(Link& link, int side, std::span<const std::byte> bytes);
  void push_segment(Link& link, int side, Segment segment, Duration extra = Duration());
  void end_pipe(Link& link, int side, Ending ending, Duration extra = Duration());
  void deliver(Link& link, int side);
  void cut(Cutter& cutter, std::span<const std::byte> bytes, const std::function<void(const Frame&)>& on_frame);
  LinkEnd end_of(const Link& link, int side) const;

  VirtualLoop& loop_;
  const NetworkOptions options_;
  Random random_;
  LinkTap* tap_;
  std::vector<Host> hosts_;
  std::map<std::pair<HostId, HostId>, int> blocks_;
  std::vector<std::unique_ptr<Link>> links_;
  uint64_t processes_ = 0;
  uint64_t resets_ = 0;
};

// VirtualLinkLoop: the loop over one process's links, in virtual time, with the rules of
// LinkLoop: turns, dials that are repeated, time-outs for greetings and silence. It has no
// TLS and no limit of connections.
//
// The loop outlives its process: kill() and stop() end what it does, not what the
// VirtualLoop still has to call.
class VirtualLinkLoop : public LinkControl, private ConnectionDriver {
 public:
  // All references outlive it.
  VirtualLinkLoop(VirtualNetwork& network, HostId host, const NodeClock& clock, const ConnectionOptions& options,
                  LinkHandler& handler);
  ~VirtualLinkLoop() override;

  void listen(uint16_t port);
  Status keep(const std::string& address) override;
  void release(const std::string& address) override;
  void wake() override;

  // Stands still: nothing is called until resume(), and then all that is due.
  void freeze() { frozen_ = true; }
  void resume();
  // Calls this now, or, while the process stands still, when it goes on; never if it has
  // ended.
  void post(std::function<void()> call);
  // The process ends. Peers see that their links are closed, unless its machine crashes.
  void kill(bool machine_crashes);
  // The process closes its links and ends.
  void stop();

  uint64_t process() const { return process_; }
  HostId host() const { return host_; }
  bool running() const { return !dead_; }
  TimePoint now() const { return clock_.local(network_.loop_.now()); }
  size_t connections() const { return open_.size(); }

 private:
  friend class VirtualNetwork;
  using Link = VirtualNetwork::Link;
  struct OpenEnd {
    Link* link;
    int side;
  };
  struct Dial {
    uint64_t number = 0;
    Duration pause;
    TimePoint connected;
  };
  using Dials = std::map<std::string, Dial>;  // by address

  Dials::iterator find_dial(uint64_t number);  // dials_.end(): it was released
  void dial(uint64_t number);
  void dial_failed(uint64_t number, const std::string& reason);
  void dial_later(Dial& dial);
  void open(Link& link, int side);
  void receive(Link& link, int side, const VirtualNetwork::Segment& segment);
  void on_unsent(Connection& connection) override;
  void flush_all();
  void flush(Link& link, int side);
  void close(Link& link, int side, const Status& reason, bool notify_peer);
  void schedule_turn();
  void turn();
  void sweep();

  VirtualNetwork& network_;
  const HostId host_;
  const NodeClock clock_;
  const ConnectionOptions options_;
  LinkHandler& handler_;
  const uint64_t process_;
  std::vector<uint16_t> ports_;
  Dials dials_;
  uint64_t next_dial_ = 1;
  std::vector<OpenEnd> open_;
  std::vector<OpenEnd> unsent_;
  std::vector<std::function<void()>> posted_;  // while it stands still
  bool frozen_ = false;
  bool dead_ = false;
  bool turn_scheduled_ = false;
  uint64_t turns_ = 0;
  uint64_t closed_ = 0;
  TimePoint swept_;
};

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_CLUSTER_VIRTUAL_NETWORK_H_
