#include "virtual/cluster/virtual_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "cluster/transport/link_timeouts.h"
#include "foundation/base/check.h"

namespace foliot {
namespace {

// Of a turn that wants to be the next one at once.
constexpr Duration kTurnMin = Duration::microseconds(1);
// One piece in so many is cut somewhere; what is cut arrives in two parts.
constexpr uint64_t kCutEvery = 8;
// One reset in so many is seen late by one end.
constexpr uint64_t kLateEvery = 4;
constexpr Duration kLateMax = Duration::seconds(3);

std::pair<std::string, uint16_t> parse(const std::string& address) {
  const size_t colon = address.rfind(':');
  FOLIOT_CHECK(colon != std::string::npos);
  return {address.substr(0, colon), static_cast<uint16_t>(std::stoul(address.substr(colon + 1)))};
}

}  // namespace

VirtualNetwork::VirtualNetwork(VirtualLoop& loop, const NetworkOptions& options, uint64_t seed, LinkTap* tap)
    : loop_(loop), options_(options), random_(seed), tap_(tap) {}
VirtualNetwork::~VirtualNetwork() = default;

HostId VirtualNetwork::add_host(std::string name) {
  hosts_.push_back({.name = std::move(name), .up = true, .extra_delay = {}, .listeners = {}});
  return static_cast<HostId>(hosts_.size() - 1);
}

Duration VirtualNetwork::delay(HostId from, HostId to) {
  return options_.delay + options_.jitter.scaled(random_.exponential()) + hosts_[from].extra_delay +
         hosts_[to].extra_delay;
}

// ---- What goes wrong ----

bool VirtualNetwork::blocked(HostId from, HostId to) const { return blocks_.contains({from, to}); }

void VirtualNetwork::block(HostId from, HostId to) { ++blocks_[{from, to}]; }

void VirtualNetwork::unblock(HostId from, HostId to) {
  const auto found = blocks_.find({from, to});
  FOLIOT_CHECK(found != blocks_.end());
  if (--found->second > 0) return;
  blocks_.erase(found);
  for (size_t i = 0; i < links_.size(); ++i) {
    Link& link = *links_[i];
    for (const int side : {0, 1}) {
      if (link.ends[side].loop->host() == from && link.ends[1 - side].loop->host() == to) deliver(link, side);
    }
  }
}

bool VirtualNetwork::reset_some_link() {
  std::vector<Link*> open;
  for (const auto& link : links_) {
    if (link->ends[0].open && link->ends[1].open) open.push_back(link.get());
  }
  if (open.empty()) return false;
  ++resets_;
  Link& link = *open[random_.below(open.size())];
  for (const int side : {0, 1}) {
    Pipe& pipe = link.pipes[side];
    if (pipe.ended) continue;
    size_t left = pipe.bytes == 0 ? 0 : random_.below(pipe.bytes + 1);
    pipe.bytes = left;
    for (auto segment = pipe.segments.begin(); segment != pipe.segments.end(); ++segment) {
      if (segment->bytes.size() > left) segment->bytes.resize(left);
      left -= segment->bytes.size();
    }
    const bool late = random_.below(kLateEvery) == 0;
    end_pipe(link, side, Ending::kReset, late ? kLateMax.scaled(random_.uniform()) : Duration());
  }
  return true;
}

// ---- Links ----

// The answer, or that there is none, comes after the way there and back.
void VirtualNetwork::connect(VirtualLinkLoop& from, uint64_t dial, const std::string& address) {
  const auto [name, port] = parse(address);
  const auto host = std::ranges::find(hosts_, name, &Host::name);
  FOLIOT_CHECK(host != hosts_.end());
  const auto to = static_cast<HostId>(host - hosts_.begin());
  struct Call {
    VirtualNetwork* network;
    VirtualLinkLoop* from;
    uint64_t dial;
    HostId to;
    uint16_t port;
    void operator()() const {
      VirtualNetwork& net = *network;
      if (!net.hosts_[to].up || net.blocked(from->host(), to) || net.blocked(to, from->host())) {
        net.loop_.at(net.loop_.now() + kLinkTimeouts.connect, [loop = from, number = dial] {
          loop->post([loop, number] { loop->dial_failed(number, "no answer"); });
        });
        return;
      }
      const TimePoint back = net.loop_.now() + net.delay(to, from->host());
      const auto listener = net.hosts_[to].listeners.find(port);
      if (listener == net.hosts_[to].listeners.end()) {
        net.loop_.at(back, [loop = from, number = dial] {
          loop->post([loop, number] { loop->dial_failed(number, "connection refused"); });
        });
        return;
      }
      Link& link = *net.links_.emplace_back(std::make_unique<Link>());
      link.number = net.links_.size();
      link.dial = dial;
      link.ends[0].loop = from;
      link.ends[1].loop = listener->second;
      link.pipes[1].last_arrival = back;
      VirtualLinkLoop* acceptor = listener->second;
      acceptor->post([acceptor, &link] { acceptor->open(link, 1); });
      net.loop_.at(back, [loop = from, made = &link] {
        if (!loop->running()) return loop->network_.end_pipe(*made, 0, Ending::kReset);
        loop->post([loop, made] { loop->open(*made, 0); });
      });
    }
  };
  loop_.at(loop_.now() + delay(from.host(), to), Call{this, &from, dial, to, port});
}

LinkEnd VirtualNetwork::end_of(const Link& link, int side) const {
  return {link.number, link.ends[side].loop->process(), link.ends[1 - side].loop->process()};
}

void VirtualNetwork::push(Link& link, int side, std::span<const std::byte> bytes) {
  Pipe& pipe = link.pipes[side];
  if (tap_ != nullptr) {
    cut(pipe.sent, bytes, [&](const Frame& frame) { tap_->on_sent(end_of(link, side), frame); });
  }
  while (!bytes.empty()) {
    size_t size = std::min<size_t>(bytes.size(), 65536);
    if (size > 1 && random_.below(kCutEvery) == 0) size = 1 + random_.below(size);
    push_segment(link, side,
                 {.arrival = {}, .bytes = WireBytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size))});
    bytes = bytes.subspan(size);
  }
}

void VirtualNetwork::push_segment(Link& link, int side, Segment segment, Duration extra) {
  Pipe& pipe = link.pipes[side];
  if (pipe.ended) return;
  const HostId from = link.ends[side].loop->host();
  const HostId to = link.ends[1 - side].loop->host();
  pipe.last_arrival = std::max(pipe.last_arrival, loop_.now() + delay(from, to) + extra);
  segment.arrival = pipe.last_arrival;
  pipe.bytes += segment.bytes.size();
  pipe.ended = segment.ending != Ending::kNone;
  pipe.segments.push_back(std::move(segment));
  loop_.at(pipe.last_arrival, [this, it = &link, side] { deliver(*it, side); });
}

void VirtualNetwork::end_pipe(Link& link, int side, Ending ending, Duration extra) {
  push_segment(link, side, {.arrival = {}, .bytes = {}, .ending = ending}, extra);
}

void VirtualNetwork::deliver(Link& link, int side) {
  Pipe& pipe = link.pipes[side];
  const VirtualLinkLoop& sender = *link.ends[side].loop;
  VirtualLinkLoop& receiver = *link.ends[1 - side].loop;
  if (blocked(sender.host(), receiver.host()) || receiver.frozen_) return;
  bool opened_window = false;
  while (!pipe.segments.empty() && pipe.segments.front().arrival <= loop_.now()) {
    const Segment segment = std::move(pipe.segments.front());
    pipe.segments.pop_front();
    pipe.bytes -= segment.bytes.size();
    opened_window = true;
    if (link.ends[1 - side].open) {
      receiver.receive(link, 1 - side, segment);
    } else if (segment.ending == Ending::kNone && hosts_[receiver.host()].up) {
      end_pipe(link, 1 - side, Ending::kReset);  // no process reads there any more
    }
  }
  if (!opened_window || !link.ends[side].open || link.ends[side].connection->unsent_bytes() == 0) return;
  VirtualLinkLoop* loop = link.ends[side].loop;
  loop->post([loop, it = &link, side] {
    if (it->ends[side].open) loop->on_unsent(*it->ends[side].connection);
    loop->schedule_turn();
  });
}

void VirtualNetwork::cut(Cutter& cutter, std::span<const std::byte> bytes,
                         const std::function<void(const Frame&)>& on_frame) {
  cutter.bytes.insert(cutter.bytes.end(), bytes.begin(), bytes.end());
  size_t begin = 0;
  if (!cutter.greeted && cutter.bytes.size() >= kGreetingBytes) {
    cutter.greeted = true;
    begin = kGreetingBytes;
  }
  while (cutter.greeted && cutter.bytes.size() - begin > kFrameLengthBytes) {
    uint32_t length;
    std::memcpy(&length, cutter.bytes.data() + begin, sizeof(length));
    if (cutter.bytes.size() - begin < kFrameLengthBytes + length) break;
    const auto content = std::span(cutter.bytes).subspan(begin + kFrameLengthBytes, length);
    on_frame({static_cast<MessageType>(content[0]), content.subspan(1)});
    begin += kFrameLengthBytes + length;
  }
  cutter.bytes.erase(cutter.bytes.begin(), cutter.bytes.begin() + static_cast<std::ptrdiff_t>(begin));
}

// ---- The loop of a process ----

VirtualLinkLoop::VirtualLinkLoop(VirtualNetwork& network, HostId host, const NodeClock& clock,
                                 const ConnectionOptions& options, LinkHandler& handler)
    : network_(network),
      host_(host),
      clock_(clock),
      options_(options),
      handler_(handler),
      process_(++network.processes_),
      swept_(now()) {
  schedule_turn();
}
VirtualLinkLoop::~VirtualLinkLoop() = default;

void VirtualLinkLoop::listen(uint16_t port) {
  FOLIOT_CHECK(network_.hosts_[host_].listeners.emplace(port, this).second);
  ports_.push_back(port);
}

Status VirtualLinkLoop::keep(const std::string& address) {
  const auto [place, added] = dials_.try_emplace(address, Dial{next_dial_, kLinkTimeouts.reconnect_min, {}});
  if (!added) return Status();
  // A connection that was released in this turn is still to be closed; another one comes after that.
  const bool closing = std::ranges::any_of(
      open_, [&](const OpenEnd& end) { return end.link->ends[end.side].connection->ends().dialed == address; });
  if (!closing) dial(next_dial_);
  ++next_dial_;
  return Status();
}

void VirtualLinkLoop::release(const std::string& address) {
  if (dials_.erase(address) == 0) return;
  for (const OpenEnd& end : open_) {
    Connection& connection = *end.link->ends[end.side].connection;
    if (connection.ends().dialed == address)
      connection.request_close(Status::unavailable("connection no longer needed"));
  }
}

VirtualLinkLoop::Dials::iterator VirtualLinkLoop::find_dial(uint64_t number) {
  return std::ranges::find_if(dials_, [&](const auto& entry) { return entry.second.number == number; });
}

void VirtualLinkLoop::dial(uint64_t number) {
  const auto found = find_dial(number);
  if (found != dials_.end()) network_.connect(*this, number, found->first);
}

void VirtualLinkLoop::dial_failed(uint64_t number, const std::string& reason) {
  const auto found = find_dial(number);
  if (found == dials_.end()) return;
  handler_.on_no_greeting(found->first, Status::unavailable(fmt::format("cannot connect: {}", reason)));
  dial_later(found->second);
  schedule_turn();
}

void VirtualLinkLoop::dial_later(Dial& later) {
  const Duration pause = std::exchange(later.pause, std::min(later.pause * 2, kLinkTimeouts.reconnect_max));
  network_.loop_.at(network_.loop_.now() + pause,
                    [this, number = later.number] { post([this, number] { dial(number); }); });
}

void VirtualLinkLoop::open(Link& link, int side) {
  VirtualNetwork::End& end = link.ends[side];
  std::string dialed;
  if (side == 0) {
    const auto found = find_dial(link.dial);
    if (found == dials_.end()) return network_.end_pipe(link, side, VirtualNetwork::Ending::kReset);
    dialed = found->first;
    found->second.connected = now();
  }
  const std::string& peer = network_.hosts_[link.ends[1 - side].loop->host()].name;
  ConnectionDriver& driver = *this;
  end.connection = std::make_unique<Connection>(
      options_, ConnectionEnds{fmt::format("{}#{}", peer, link.number), dialed, network_.hosts_[host_].name}, handler_,
      driver);
  end.open = true;
  end.has_unsent = true;
  end.received_at = now();
  open_.push_back({&link, side});
  unsent_.push_back({&link, side});
  schedule_turn();
  network_.deliver(link, 1 - side);
}

void VirtualLinkLoop::receive(Link& link, int side, const VirtualNetwork::Segment& segment) {
  VirtualNetwork::End& end = link.ends[side];
  schedule_turn();
  if (segment.ending != VirtualNetwork::Ending::kNone) {
    const bool closed = segment.ending == VirtualNetwork::Ending::kClosed;
    return close(link, side,
                 Status::unavailable(closed ? "the peer closed the connection" : "connection reset by peer"), false);
  }
  if (network_.tap_ != nullptr) {
    network_.cut(link.pipes[1 - side].received, segment.bytes,
                 [&](const Frame& frame) { network_.tap_->on_received(network_.end_of(link, side), frame); });
  }
  for (std::span<const std::byte> bytes = segment.bytes; !bytes.empty();) {
    const std::span<std::byte> space = end.connection->space();
    const size_t size = std::min(space.size(), bytes.size());
    std::copy_n(bytes.begin(), size, space.begin());
    bytes = bytes.subspan(size);
    if (const Status status = end.connection->received(size, now()); !status.ok()) {
      return close(link, side, status, true);
    }
  }
  if (end.connection->greeted()) end.received_at = now();
}

void VirtualLinkLoop::on_unsent(Connection& connection) {
  const auto found = std::ranges::find_if(
      open_, [&](const OpenEnd& end) { return end.link->ends[end.side].connection.get() == &connection; });
  if (found == open_.end()) return;  // it is being closed
  VirtualNetwork::End& end = found->link->ends[found->side];
  if (std::exchange(end.has_unsent, true)) return;
  unsent_.push_back(*found);
}

void VirtualLinkLoop::flush_all() {
  for (const OpenEnd& unsent : std::exchange(unsent_, {})) {
    unsent.link->ends[unsent.side].has_unsent = false;
    if (unsent.link->ends[unsent.side].open) flush(*unsent.link, unsent.side);
  }
}

void VirtualLinkLoop::flush(Link& link, int side) {
  Connection& connection = *link.ends[side].connection;
  if (const Status status = connection.check(); !status.ok()) return close(link, side, status, true);
  const size_t in_flight = link.pipes[side].bytes;
  const size_t window = network_.options_.window_bytes;
  const size_t size = std::min(connection.unsent_bytes(), window - std::min(window, in_flight));
  network_.push(link, side, connection.unsent().first(size));
  connection.sent(size);
}

void VirtualLinkLoop::close(Link& link, int side, const Status& reason, bool notify_peer) {
  VirtualNetwork::End& end = link.ends[side];
  std::erase_if(open_, [&](const OpenEnd& other) { return other.link == &link && other.side == side; });
  end.open = false;
  if (network_.tap_ != nullptr) network_.tap_->on_closed(network_.end_of(link, side));
  end.connection->close(reason, notify_peer, now());
  ++closed_;
  if (notify_peer) network_.push(link, side, end.connection->unsent());
  network_.end_pipe(link, side, VirtualNetwork::Ending::kClosed);
  const std::string address = end.connection->ends().dialed;
  end.connection.reset();
  const auto dialed = dials_.find(address);
  if (dialed == dials_.end()) return;
  if (now() - dialed->second.connected > kLinkTimeouts.reconnect_reset)
    dialed->second.pause = kLinkTimeouts.reconnect_min;
  dial_later(dialed->second);
}

// ---- Turns ----

void VirtualLinkLoop::wake() { schedule_turn(); }

void VirtualLinkLoop::post(std::function<void()> call) {
  if (dead_) return;
  if (!frozen_) return call();
  posted_.push_back(std::move(call));
}

void VirtualLinkLoop::schedule_turn() {
  if (dead_ || frozen_ || turn_scheduled_) return;
  turn_scheduled_ = true;
  network_.loop_.at(network_.loop_.now(), [this] { turn(); });
}

void VirtualLinkLoop::turn() {
  turn_scheduled_ = false;
  if (dead_ || frozen_) return;
  TimePoint wake;
  uint64_t closed = 0;
  do {
    closed = closed_;
    sweep();
    wake = handler_.on_turn_end(now());
    if (dead_) return;
    if (!open_.empty()) wake = std::min(wake, swept_ + kLinkTimeouts.silence_check);
    flush_all();
  } while (closed != closed_);
  if (network_.tap_ != nullptr) network_.tap_->on_turn(process_);
  const uint64_t this_turn = ++turns_;
  const TimePoint next = clock_.instant(wake);
  if (next.is_infinite()) return;
  network_.loop_.at(std::max(next, network_.loop_.now() + kTurnMin), [this, this_turn] {
    if (this_turn == turns_) schedule_turn();
  });
}

void VirtualLinkLoop::sweep() {
  const TimePoint time = now();
  if (time - swept_ < kLinkTimeouts.silence_check) return;
  const bool was_away = time - std::exchange(swept_, time) > kLinkTimeouts.silence_check * 3;
  std::vector<OpenEnd> silent;
  for (const OpenEnd& open : open_) {
    VirtualNetwork::End& end = open.link->ends[open.side];
    if (was_away) end.received_at = time;
    if (time - end.received_at > (end.connection->greeted() ? kLinkTimeouts.silence : kLinkTimeouts.greeting))
      silent.push_back(open);
  }
  for (const OpenEnd& open : silent) {
    const bool greeted = open.link->ends[open.side].connection->greeted();
    close(*open.link, open.side,
          Status::unavailable(greeted ? "it has gone silent" : "it has not sent its greeting in time"), greeted);
  }
}

// ---- Processes ----

void VirtualLinkLoop::resume() {
  frozen_ = false;
  for (const auto& call : std::exchange(posted_, {})) post(call);
  for (size_t i = 0; i < network_.links_.size(); ++i) {
    Link& link = *network_.links_[i];
    for (const int side : {0, 1}) {
      if (link.ends[side].loop == this) network_.deliver(link, 1 - side);
    }
  }
  schedule_turn();
}

void VirtualLinkLoop::kill(bool machine_crashes) {
  dead_ = true;
  frozen_ = false;
  posted_.clear();
  for (const uint16_t port : ports_) network_.hosts_[host_].listeners.erase(port);
  for (const OpenEnd& open : std::exchange(open_, {})) {
    VirtualNetwork::End& end = open.link->ends[open.side];
    end.open = false;
    end.connection.reset();
    if (network_.tap_ != nullptr) network_.tap_->on_closed(network_.end_of(*open.link, open.side));
    if (machine_crashes) continue;
    const bool reset = network_.random_.below(2) == 0;
    network_.end_pipe(*open.link, open.side, reset ? VirtualNetwork::Ending::kReset : VirtualNetwork::Ending::kClosed);
  }
  if (machine_crashes) network_.set_up(host_, false);
}

void VirtualLinkLoop::stop() {
  dials_.clear();
  while (!open_.empty()) close(*open_.front().link, open_.front().side, Status(), true);
  kill(false);
}

}  // namespace foliot
