#include "cluster/transport/link_loop.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio.hpp>
#include <chrono>
#include <csignal>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "foundation/base/check.h"
#include "foundation/base/idle_evictions.h"
#include "foundation/base/units.h"
#include "foundation/platform/clock.h"

namespace foliot {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr size_t kEvictablePart = 16;  // one of so many may be evicted until the next check
// Of silent connections, closed in a turn: each takes some 10 us, and thousands may be due at once.
constexpr size_t kSilentPerTurn = 8;
// Of TLS: read from a socket, and made into records, at a time.
constexpr size_t kTlsBytes = size_t{256} << 10;
// Between two attempts to accept a connection, where one failed.
constexpr std::chrono::milliseconds kAcceptPause{50};

struct Address {
  std::string host;
  std::string port;
};

Result<Address> parse_address(const std::string& text) {
  const size_t colon = text.rfind(':');
  Address address;
  if (colon != std::string::npos) {
    address = {text.substr(0, colon), text.substr(colon + 1)};
    if (address.host.size() > 2 && address.host.front() == '[' && address.host.back() == ']') {
      address.host = address.host.substr(1, address.host.size() - 2);  // IPv6
    }
  }
  const bool digits = !address.port.empty() && address.port.size() <= 5 &&
                      address.port.find_first_not_of("0123456789") == std::string::npos;
  if (address.host.empty() || !digits || std::stoul(address.port) > 65535) {
    return Status::invalid_argument(fmt::format("'{}' is not an address: write HOST:PORT, as 127.0.0.1:8100", text));
  }
  return address;
}

std::chrono::nanoseconds to_chrono(Duration duration) { return std::chrono::nanoseconds(duration.nanoseconds()); }

// steady_clock is CLOCK_MONOTONIC, as monotonic_now().
std::chrono::steady_clock::time_point to_steady(TimePoint instant) {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(instant.nanoseconds()));
}

}  // namespace

class LinkLoop::Loop : private ConnectionDriver {
 public:
  Loop(const LinkLoopOptions& options, LinkHandler& host)
      : options_(options),
        host_(host),
        acceptor_(context_),
        timer_(context_),
        accept_timer_(context_),
        signals_(context_),
        tls_(options.tls),
        tls_bytes_(tls_ ? kTlsBytes : 0),
        waker_(context_, eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
        evictions_(options.timeouts.eviction_check, options.connections_max / kEvictablePart + 1) {
    wait_for_wake();
  }
  ~Loop() override {
    dials_.clear();
    close_all();
  }

  Result<uint16_t> listen(const std::string& address);
  Status connect(const std::string& address);
  Status keep(const std::string& address);
  void release(const std::string& address);
  void run();
  void stop() {
    stopping_.store(true);
    wake();
  }
  void wake() {
    if (awake_.exchange(true)) return;
    FOLIOT_CHECK(eventfd_write(waker_.native_handle(), 1) == 0);
  }
  void use_tls(std::shared_ptr<const TlsContext> tls) {
    FOLIOT_CHECK(options_.tls != nullptr);
    asio::post(context_, [this, tls = std::move(tls)]() mutable { tls_ = std::move(tls); });
  }
  size_t connections() const { return links_.size(); }
  const LinkTraffic& traffic() const { return traffic_; }

 private:
  // A peer that is connected to again and again.
  struct Dial {
    Dial(asio::io_context& context, std::string where)
        : address(std::move(where)), resolver(context), socket(context), timer(context) {}
    const std::string address;
    tcp::resolver resolver;
    tcp::socket socket;        // while it connects
    asio::steady_timer timer;  // how long that may take, or the pause before the next time
    Duration pause;
    TimePoint connected;
  };
  using DialPointer = std::shared_ptr<Dial>;

  // A socket and its connection. Shared, because an operation of asio that was
  // cancelled still reports to it after it was closed.
  struct Link {
    Link(tcp::socket socket_of_peer, ConnectionEnds ends, Loop& loop)
        : socket(std::move(socket_of_peer)),
          connection(loop.options_.connection, std::move(ends), loop.host_, loop),
          last_message(monotonic_now()) {
      if (!loop.tls_) return;
      tls.emplace(*loop.tls_, connection.ends().dialed.empty() ? TlsEnd::kCalled : TlsEnd::kCaller);
    }
    bool has_to_send() const { return connection.unsent_bytes() > 0 || (tls && !tls->unsent().empty()); }

    tcp::socket socket;
    Connection connection;
    std::optional<TlsSession> tls;
    TimePoint last_message;     // when it came; until its greeting, when it was made
    size_t received_bytes = 0;  // taken of the loop's
    bool has_unsent = true;
    bool waits_to_write = false;
    bool closed = false;
  };
  using LinkPointer = std::shared_ptr<Link>;

  Result<tcp::resolver::results_type> resolve(const std::string& address, tcp::resolver::flags flags);
  void accept();
  void accept_later();
  void dial(const DialPointer& dial);
  void dial_resolved(const DialPointer& dial, const tcp::resolver::results_type& endpoints);
  void dial_failed(const DialPointer& dial, const std::string& reason);
  void dial_later(const DialPointer& dial);
  bool kept(const DialPointer& dial) const;
  void wait_for_wake();
  Status add(tcp::socket socket, std::string dialed);
  bool make_room();
  bool evict_silent();
  void find_evictable();
  void sweep(TimePoint now);
  bool silent_too_long(const Link& link, TimePoint now) const;
  void close_silent(TimePoint now);
  void read(const LinkPointer& link);
  void read_plain(const LinkPointer& link);
  void read_tls(const LinkPointer& link);
  Status received_tls(const LinkPointer& link);
  Status received(const LinkPointer& link, size_t bytes);
  static Status ended(const Link& link, const error_code& error);
  void flush_all();
  void flush(const LinkPointer& link);
  Result<std::span<const std::byte>> to_send(Link& link);
  void sent(Link& link, size_t bytes);
  void close(const LinkPointer& link, const Status& reason, bool notify_peer);
  void close_all();
  // True if the handler wants its next turn at once.
  bool end_turn();
  void on_unsent(Connection& connection) override;

  const LinkLoopOptions options_;
  LinkHandler& host_;
  asio::io_context context_{1};  // one thread
  tcp::acceptor acceptor_;
  asio::steady_timer timer_;
  asio::steady_timer accept_timer_;
  asio::signal_set signals_;
  std::shared_ptr<const TlsContext> tls_;  // null: plain
  std::vector<std::byte> tls_bytes_;       // of whichever socket is being read
  asio::posix::stream_descriptor waker_;
  std::atomic<bool> awake_{false};  // the loop was woken, and will see it
  TimePoint timer_at_ = TimePoint::infinite_future();
  std::unordered_map<const Connection*, LinkPointer> links_;
  std::unordered_map<std::string, DialPointer> dials_;  // by address
  std::vector<LinkPointer> unsent_;                     // links with has_unsent
  LinkTraffic traffic_;
  TimePoint swept_;
  std::vector<LinkPointer> silent_;               // too long at the last sweep, and not looked at since
  IdleEvictions<std::weak_ptr<Link>> evictions_;  // by how long they are silent
  uint64_t received_bytes_ = 0;                   // room for them in all connections
  uint64_t closed_ = 0;
  std::atomic<bool> stopping_{false};
};

Result<tcp::resolver::results_type> LinkLoop::Loop::resolve(const std::string& text, tcp::resolver::flags flags) {
  FOLIOT_ASSIGN_OR_RETURN(const Address address, parse_address(text));
  error_code error;
  const auto found =
      tcp::resolver(context_).resolve(address.host, address.port, flags | tcp::resolver::numeric_service, error);
  if (error) return Status::invalid_argument(fmt::format("'{}': {}", text, error.message()));
  return found;
}

Result<uint16_t> LinkLoop::Loop::listen(const std::string& address) {
  FOLIOT_ASSIGN_OR_RETURN(const auto endpoints, resolve(address, tcp::resolver::passive));
  const tcp::endpoint endpoint = endpoints.begin()->endpoint();
  error_code error;
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(tcp::acceptor::max_listen_connections, error);
  if (error == asio::error::address_in_use) {
    return Status::already_exists(fmt::format("{}: the port is in use", address));
  }
  if (error) return Status::invalid_argument(fmt::format("cannot listen on {}: {}", address, error.message()));
  accept();
  return acceptor_.local_endpoint(error).port();
}

void LinkLoop::Loop::accept() {
  acceptor_.async_accept([this](const error_code& error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (error) return accept_later();
    // What cannot be taken is closed by its destructor; the peer may try again.
    if (make_room()) static_cast<void>(add(std::move(socket), {}).ok());
    accept();
  });
}

// Out of descriptors, most likely, which a silent connection may have; at once, it would fail again.
void LinkLoop::Loop::accept_later() {
  evict_silent();
  accept_timer_.expires_after(kAcceptPause);
  accept_timer_.async_wait([this](const error_code& cancelled) {
    if (!cancelled) accept();
  });
}

Status LinkLoop::Loop::connect(const std::string& address) {
  FOLIOT_ASSIGN_OR_RETURN(const auto endpoints, resolve(address, tcp::resolver::flags()));
  tcp::socket socket(context_);
  error_code error;
  asio::connect(socket, endpoints, error);
  if (!error) return add(std::move(socket), address).with_context(address);
  return Status::unavailable(fmt::format("cannot connect to {}: {}", address, error.message()));
}

Status LinkLoop::Loop::keep(const std::string& address) {
  FOLIOT_RETURN_IF_ERROR(parse_address(address).status());
  const auto [place, added] = dials_.try_emplace(address, nullptr);
  if (!added) return Status();
  place->second = std::make_shared<Dial>(context_, address);
  place->second->pause = options_.timeouts.reconnect_min;
  // A connection that was released in this turn is still to be closed; another one comes after that.
  const bool closing =
      std::ranges::any_of(links_, [&](const auto& entry) { return entry.first->ends().dialed == address; });
  if (!closing) dial(place->second);
  return Status();
}

void LinkLoop::Loop::release(const std::string& address) {
  const auto found = dials_.find(address);
  if (found == dials_.end()) return;
  const DialPointer released = found->second;
  dials_.erase(found);
  error_code ignored;  // there may be nothing under way
  released->resolver.cancel();
  released->socket.close(ignored);
  released->timer.cancel();
  for (const auto& [connection, link] : links_) {
    if (connection->ends().dialed == address) {
      link->connection.request_close(Status::unavailable("the connection is no longer needed"));
    }
  }
}

bool LinkLoop::Loop::kept(const DialPointer& dial) const {
  const auto found = dials_.find(dial->address);
  return found != dials_.end() && found->second == dial;
}

void LinkLoop::Loop::dial(const DialPointer& dial) {
  const Address address = parse_address(dial->address).value();
  dial->timer.expires_after(to_chrono(options_.timeouts.connect));
  dial->timer.async_wait([dial](const error_code& cancelled) {
    if (cancelled) return;
    error_code ignored;
    dial->resolver.cancel();
    dial->socket.close(ignored);
  });
  dial->resolver.async_resolve(address.host, address.port, tcp::resolver::numeric_service,
                               [this, dial](const error_code& error, const tcp::resolver::results_type& endpoints) {
                                 if (!kept(dial)) return;
                                 if (error) return dial_failed(dial, error.message());
                                 dial_resolved(dial, endpoints);
                               });
}

void LinkLoop::Loop::dial_resolved(const DialPointer& dial, const tcp::resolver::results_type& endpoints) {
  asio::async_connect(dial->socket, endpoints, [this, dial](const error_code& error, const tcp::endpoint&) {
    if (!kept(dial)) return;
    if (error == asio::error::operation_aborted) return dial_failed(dial, "no answer");
    if (error) return dial_failed(dial, error.message());
    dial->timer.cancel();
    dial->connected = monotonic_now();
    const Status added = add(std::move(dial->socket), dial->address);
    dial->socket = tcp::socket(context_);
    if (!added.ok()) dial_failed(dial, added.message());
  });
}

void LinkLoop::Loop::dial_failed(const DialPointer& dial, const std::string& reason) {
  host_.on_no_greeting(dial->address, Status::unavailable(fmt::format("cannot connect: {}", reason)));
  dial_later(dial);
}

void LinkLoop::Loop::dial_later(const DialPointer& dial) {
  dial->timer.expires_after(to_chrono(dial->pause));
  dial->pause = std::min(dial->pause * 2, options_.timeouts.reconnect_max);
  dial->timer.async_wait([this, dial](const error_code& cancelled) {
    if (!cancelled && kept(dial)) this->dial(dial);
  });
}

// What was written before wake() is seen by the turn that ends after this.
void LinkLoop::Loop::wait_for_wake() {
  waker_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const error_code& error) {
    if (error) return;
    eventfd_t count = 0;
    eventfd_read(waker_.native_handle(), &count);
    awake_.exchange(false);
    wait_for_wake();
  });
}

Status LinkLoop::Loop::add(tcp::socket socket, std::string dialed) {
  error_code error;
  const tcp::endpoint peer = socket.remote_endpoint(error);
  const tcp::endpoint own = error ? tcp::endpoint() : socket.local_endpoint(error);
  if (!error) socket.set_option(tcp::no_delay(true), error);
  if (!error) socket.non_blocking(true, error);
  if (error) return Status::unavailable(error.message());
  auto link =
      std::make_shared<Link>(std::move(socket),
                             ConnectionEnds{.peer = fmt::format("{}:{}", peer.address().to_string(), peer.port()),
                                            .dialed = std::move(dialed),
                                            .own_host = own.address().to_string()},
                             *this);
  links_.emplace(&link->connection, link);
  unsent_.push_back(link);
  read(link);
  return Status();
}

bool LinkLoop::Loop::make_room() { return links_.size() < options_.connections_max || evict_silent(); }

// The connection that has been silent longest.
bool LinkLoop::Loop::evict_silent() {
  if (evictions_.due(monotonic_now())) find_evictable();
  return evictions_.evict([this](const std::weak_ptr<Link>& silent) {
    const LinkPointer link = silent.lock();
    if (link == nullptr || link->closed || link->connection.greeted()) return false;
    close(link,
          Status::resource_exhausted(fmt::format("evicted without a greeting: the limit of {} connections is reached",
                                                 options_.connections_max)),
          false);
    return true;
  });
}

void LinkLoop::Loop::find_evictable() {
  std::vector<IdleEvictions<std::weak_ptr<Link>>::Idle> silent;
  for (const auto& [connection, link] : links_) {
    if (!connection->greeted()) silent.emplace_back(link->last_message, link);
  }
  evictions_.set_candidates(std::move(silent));
}

// If this process itself was stopped meanwhile, all timeouts restart.
void LinkLoop::Loop::sweep(TimePoint now) {
  if (now - swept_ < options_.timeouts.silence_check) return;
  const bool was_away = now - std::exchange(swept_, now) > options_.timeouts.silence_check * 3;
  silent_.clear();
  for (const auto& [connection, link] : links_) {
    if (was_away) link->last_message = now;
    if (silent_too_long(*link, now)) silent_.push_back(link);
  }
}

bool LinkLoop::Loop::silent_too_long(const Link& link, TimePoint now) const {
  const LinkTimeouts& timeouts = options_.timeouts;
  return now - link.last_message > (link.connection.greeted() ? timeouts.silence : timeouts.greeting);
}

void LinkLoop::Loop::close_silent(TimePoint now) {
  for (size_t i = 0; i < kSilentPerTurn && !silent_.empty(); ++i) {
    const LinkPointer link = std::move(silent_.back());
    silent_.pop_back();
    if (link->closed || !silent_too_long(*link, now)) continue;
    const bool greeted = link->connection.greeted();
    const std::string limit = format_duration(greeted ? options_.timeouts.silence : options_.timeouts.greeting);
    close(link, Status::unavailable(fmt::format("no {} within {}", greeted ? "message" : "greeting", limit)), greeted);
  }
}

void LinkLoop::Loop::read(const LinkPointer& link) { link->tls ? read_tls(link) : read_plain(link); }

void LinkLoop::Loop::read_plain(const LinkPointer& link) {
  const std::span<std::byte> space = link->connection.space();
  link->socket.async_read_some(asio::buffer(space.data(), space.size()),
                               [this, link](const error_code& error, size_t bytes) {
                                 traffic_.received += bytes;
                                 if (link->closed) return;
                                 if (error) {
                                   return close(link, ended(*link, error), false);
                                 }
                                 if (const Status status = received(link, bytes); !status.ok())
                                   return close(link, status, true);
                                 read_plain(link);
                               });
}

// A peer with TLS sends nothing to one without.
Status LinkLoop::Loop::ended(const Link& link, const error_code& error) {
  if (error != asio::error::eof) return Status::unavailable(error.message());
  if (link.connection.greeted()) return Status::unavailable("the peer closed the connection");
  return Status::unavailable(link.tls ? "the peer closed the connection before its greeting"
                                      : "the peer closed the connection before its greeting; does it use TLS?");
}

void LinkLoop::Loop::read_tls(const LinkPointer& link) {
  link->socket.async_wait(tcp::socket::wait_read, [this, link](const error_code& /*shown by the read*/) {
    if (link->closed) return;
    error_code error;
    const size_t bytes = link->socket.read_some(asio::buffer(tls_bytes_), error);
    traffic_.received += bytes;
    if (error && error != asio::error::would_block) {
      return close(link, ended(*link, error), false);
    }
    Status status = link->tls->receive(std::span(tls_bytes_).first(bytes));
    if (status.ok()) status = received_tls(link);
    if (!status.ok()) return close(link, status, true);
    if (link->has_to_send()) on_unsent(link->connection);
    read_tls(link);
  });
}

Status LinkLoop::Loop::received_tls(const LinkPointer& link) {
  while (true) {
    FOLIOT_ASSIGN_OR_RETURN(const size_t bytes, link->tls->read(link->connection.space()));
    if (bytes == 0) return Status();
    FOLIOT_RETURN_IF_ERROR(received(link, bytes));
  }
}

Status LinkLoop::Loop::received(const LinkPointer& link, size_t bytes) {
  const TimePoint now = monotonic_now();
  FOLIOT_RETURN_IF_ERROR(link->connection.received(bytes, now));
  if (link->connection.greeted()) link->last_message = now;
  received_bytes_ += link->connection.received_bytes() - link->received_bytes;
  link->received_bytes = link->connection.received_bytes();
  if (received_bytes_ <= options_.received_bytes_max) return Status();
  return Status::resource_exhausted(
      fmt::format("partly received frames of all connections exceed {} bytes", options_.received_bytes_max));
}

void LinkLoop::Loop::on_unsent(Connection& connection) {
  const auto found = links_.find(&connection);
  if (found == links_.end()) return;  // it is being closed
  const LinkPointer& link = found->second;
  if (link->has_unsent) return;
  link->has_unsent = true;
  unsent_.push_back(link);
}

void LinkLoop::Loop::flush_all() {
  for (const LinkPointer& link : std::exchange(unsent_, {})) {
    link->has_unsent = false;
    if (!link->closed) flush(link);
  }
}

// As much as the socket takes; the rest when it takes more.
void LinkLoop::Loop::flush(const LinkPointer& link) {
  if (const Status status = link->connection.check(); !status.ok()) return close(link, status, true);
  while (!link->waits_to_write) {
    const auto bytes = to_send(*link);
    if (!bytes.ok()) return close(link, bytes.status(), false);
    if (bytes->empty()) return;
    error_code error;
    sent(*link, link->socket.write_some(asio::buffer(bytes->data(), bytes->size()), error));
    if (error == asio::error::would_block) {
      link->waits_to_write = true;
      link->socket.async_wait(tcp::socket::wait_write, [this, link](const error_code& /*shown by the next write*/) {
        link->waits_to_write = false;
        if (!link->closed) flush(link);
      });
    } else if (error) {
      return close(link, Status::unavailable(error.message()), false);
    }
  }
}

// Bytes for the socket. TLS gets more only when its last records are sent, so that what
// a peer does not read waits in its connection, which has limits.
Result<std::span<const std::byte>> LinkLoop::Loop::to_send(Link& link) {
  if (!link.tls) return link.connection.unsent();
  if (link.tls->unsent().empty() && link.tls->established() && link.connection.unsent_bytes() > 0) {
    const auto bytes = link.connection.unsent().first(std::min(link.connection.unsent_bytes(), kTlsBytes));
    FOLIOT_RETURN_IF_ERROR(link.tls->write(bytes));
    link.connection.sent(bytes.size());
  }
  return link.tls->unsent();
}

void LinkLoop::Loop::sent(Link& link, size_t bytes) {
  traffic_.sent += bytes;
  link.tls ? link.tls->sent(bytes) : link.connection.sent(bytes);
}

// What can be sent without waiting is still sent.
void LinkLoop::Loop::close(const LinkPointer& link, const Status& reason, bool notify_peer) {
  link->connection.close(reason, notify_peer, monotonic_now());
  link->closed = true;
  ++closed_;
  received_bytes_ -= link->received_bytes;
  error_code error;
  while (notify_peer && !error) {
    const auto rest = to_send(*link);
    if (!rest.ok() || rest->empty()) break;
    sent(*link, link->socket.write_some(asio::buffer(rest->data(), rest->size()), error));
  }
  error_code ignored;  // the link is over in any case
  link->socket.shutdown(tcp::socket::shutdown_send, ignored);
  link->socket.close(ignored);
  links_.erase(&link->connection);
  const auto dialed = dials_.find(link->connection.ends().dialed);
  if (dialed == dials_.end()) return;
  if (monotonic_now() - dialed->second->connected > options_.timeouts.reconnect_reset) {
    dialed->second->pause = options_.timeouts.reconnect_min;
  }
  dial_later(dialed->second);
}

void LinkLoop::Loop::close_all() {
  while (!links_.empty()) close(LinkPointer(links_.begin()->second), Status(), true);
}

void LinkLoop::Loop::run() {
  if (options_.stop_on_signals) {
    error_code error;
    for (const int signal : {SIGINT, SIGTERM}) {
      signals_.add(signal, error);
      FOLIOT_CHECK(!error);
    }
    signals_.async_wait([this](const error_code& failed, int) {
      if (!failed) stopping_ = true;
    });
  }
  const auto work = asio::make_work_guard(context_);
  while (!stopping_) {
    if (end_turn()) {
      context_.poll_one();
    } else {
      context_.run_one();
    }
    for (uint32_t reads = 1; reads < options_.reads_per_turn_max && context_.poll_one() > 0; ++reads) {
    }
  }
  end_turn();
  dials_.clear();
  close_all();
}

bool LinkLoop::Loop::end_turn() {
  TimePoint wake;
  uint64_t closed = 0;
  sweep(monotonic_now());
  close_silent(monotonic_now());
  do {  // what ends with the turn may be more work for the handler
    closed = closed_;
    wake = host_.on_turn_end(monotonic_now());
    if (!links_.empty()) wake = std::min(wake, swept_ + options_.timeouts.silence_check);
    flush_all();
  } while (closed != closed_);
  if (!silent_.empty() || wake <= monotonic_now()) return true;
  // An alarm that comes too soon only costs a turn; moving it costs a system call.
  if (wake >= timer_at_) return false;
  timer_at_ = wake;
  timer_.expires_at(to_steady(wake));
  timer_.async_wait([this](const error_code& error) {
    if (!error) timer_at_ = TimePoint::infinite_future();
  });
  return false;
}

LinkLoop::LinkLoop(const LinkLoopOptions& options, LinkHandler& host) : loop_(std::make_unique<Loop>(options, host)) {}
LinkLoop::~LinkLoop() = default;

Result<uint16_t> LinkLoop::listen(const std::string& address) { return loop_->listen(address); }
Status LinkLoop::connect(const std::string& address) { return loop_->connect(address); }
void LinkLoop::run() { loop_->run(); }
void LinkLoop::stop() { loop_->stop(); }
void LinkLoop::wake() { loop_->wake(); }
Status LinkLoop::keep(const std::string& address) { return loop_->keep(address); }
void LinkLoop::release(const std::string& address) { loop_->release(address); }
size_t LinkLoop::connections() const { return loop_->connections(); }
void LinkLoop::use_tls(std::shared_ptr<const TlsContext> tls) { loop_->use_tls(std::move(tls)); }
const LinkTraffic& LinkLoop::traffic() const { return loop_->traffic(); }

}  // namespace foliot
