// Connection: one end of a link as a state machine over bytes. It sends a greeting,
// cuts received bytes into frames, and gathers what is sent until the driver takes it.
// It knows no sockets: cluster/transport/link_loop.h drives it over TCP, and a test or a
// simulator can carry the bytes itself.
//
//   peer's bytes -> space(), received() -> Session::on_frame()
//   send()       -> unsent(), sent()    -> peer's bytes
//
// Greeting: each side first sends magic, version, role and Standing, so that a difference of versions is reported as
// such. Until the peer's greeting has come, nothing else is read.
//
// Limits: a frame of more than `frame_bytes_max`, or more than `unsent_bytes_max` that
// the peer does not read, ends the connection. Memory for received bytes grows with the
// frames, up to the limit.
//
// Threading: belongs to one thread.
#ifndef FOLIOT_CLUSTER_TRANSPORT_CONNECTION_H_
#define FOLIOT_CLUSTER_TRANSPORT_CONNECTION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cluster/transport/codec.h"
#include "cluster/transport/message.h"
#include "cluster/transport/wire.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

class Connection;

// The handler of one connection's frames, once both greetings have come.
class Session {
 public:
  virtual ~Session() = default;
  // An error ends the connection; its message is sent to the peer.
  virtual Status on_frame(const Frame& frame, TimePoint now) = 0;
  // The connection is over; nothing can be sent any more, and the session is
  // destroyed after this. `reason` is ok if this side has stopped.
  virtual void on_close(const Status& reason, TimePoint now) = 0;
};

inline constexpr size_t kGreetingBytes = 16;

// What a process says in its greeting of the choice of a leader among controllers.
struct Standing {
  // Of a controller: with which it leads, 0 where there is no choice. Of others: the highest that they have obeyed.
  uint64_t epoch = 0;
  bool stands_by = false;  // a controller that does not lead
};

// The owner of connections. None of the calls may block.
class ConnectionHandler {
 public:
  virtual ~ConnectionHandler() = default;
  // For the greeting of a connection that is made now.
  virtual Standing standing() const { return {}; }
  // The peer's greeting has come. Errors: the connection is refused.
  virtual Result<std::unique_ptr<Session>> on_open(Connection& connection, Role peer, TimePoint now) = 0;
  // A connection ended before on_open().
  virtual void on_no_greeting(const std::string& peer, const Status& reason) = 0;
};

// Called when there is something to take from unsent().
class ConnectionDriver {
 public:
  virtual ~ConnectionDriver() = default;
  virtual void on_unsent(Connection& connection) = 0;
};

// Where whole rows travel.
inline constexpr size_t kDataFrameBytesMax = size_t{128} << 20;

struct ConnectionOptions {
  Role role = Role::kController;  // of this side
  size_t frame_bytes_max = size_t{16} << 20;
  size_t unsent_bytes_max = size_t{64} << 20;
};

// The two ends of a connection.
struct ConnectionEnds {
  std::string peer;      // names it in errors
  std::string dialed;    // the address that this side connected to; empty: the peer connected
  std::string own_host;  // where this side is, as the peer sees it
};

class Connection {
 public:
  // `host` and `driver` outlive the connection.
  Connection(const ConnectionOptions& options, ConnectionEnds ends, ConnectionHandler& host, ConnectionDriver& driver);
  // With a peer that connected to this side.
  Connection(const ConnectionOptions& options, std::string peer, ConnectionHandler& host, ConnectionDriver& driver)
      : Connection(options, ConnectionEnds{std::move(peer), {}, {}}, host, driver) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  const std::string& peer() const { return ends_.peer; }
  const ConnectionEnds& ends() const { return ends_; }
  // As the greetings had them; the peer's once that has come.
  const Standing& standing() const { return standing_; }
  const Standing& peer_standing() const { return peer_standing_; }

  // ---- For the session ----

  // Appends a frame to what is unsent. A peer that lets too much pile up is
  // closed at the end of the turn.
  template <typename Message>
  void send(const Message& message) {
    const bool first = unsent_.empty();
    encode(message, unsent_);
    if (first) driver_.on_unsent(*this);
  }
  size_t unsent_bytes() const { return unsent_.size() - sent_; }
  // Ends the connection at the end of the turn, for this reason, which is sent to the
  // peer. No frame is handled until on_close(). REQUIRES: !reason.ok().
  void request_close(Status reason);

  // ---- For the driver ----

  // Where the next bytes from the peer belong; never empty. Valid until received().
  std::span<std::byte> space();
  // So many of them have come. Errors: the connection must be closed, for this reason.
  Status received(size_t bytes, TimePoint now);

  std::span<const std::byte> unsent() const { return std::span(unsent_).subspan(sent_); }
  void sent(size_t bytes);
  bool greeted() const { return session_ != nullptr; }
  // Memory for what has come.
  size_t received_bytes() const { return received_.size(); }
  // Errors: it must be closed, for this reason: request_close(), or kResourceExhausted if the
  // peer does not read.
  Status check() const;

  // Ends the session. Unless the peer closed first, the reason is sent to it: unsent()
  // then holds the rest.
  void close(const Status& reason, bool notify_peer, TimePoint now);

 private:
  Status open(TimePoint now);
  Status handle_frames(TimePoint now);

  const ConnectionOptions options_;
  const ConnectionEnds ends_;
  ConnectionHandler& host_;
  const Standing standing_;
  Standing peer_standing_;
  ConnectionDriver& driver_;
  std::unique_ptr<Session> session_;  // once the peer's greeting has come
  Status hung_up_;                    // ok: it has not been
  bool closed_ = false;

  WireBytes received_;  // [begin_, end_) has not been handled yet
  size_t begin_ = 0;
  size_t end_ = 0;
  WireBytes unsent_;
  size_t sent_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_TRANSPORT_CONNECTION_H_
