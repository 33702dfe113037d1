// GrpcAcceptor: accepts connections for a gRPC server, which by itself accepts without
// limit, up to a limit.
//
// At the limit a new connection evicts the one that has been idle longest, if for some
// seconds, and is closed at once otherwise; clients of gRPC try again, later and later.
// A connection is idle if it has no call and nothing was received or sent on it, or
// nothing was sent for so long that what it sends will not become a message in time. A
// stream without an unanswered request is idle, too, but only after as long as a
// connection may be silent anyway.
//
// gRPC owns a connection once it has it, and does not report when it closes it. So the
// acceptor remembers the kernel's identifier of each (SO_COOKIE). When the limit seems
// reached, at most once every FrontendTimeouts::eviction_check, it checks which descriptors still have
// theirs: a closed connection costs nothing until then, and a descriptor that was
// reused is recognised. Idle connections are determined just as often.
//
// Between two connections there is a pause, so that a flood of them leaves time to the
// serving threads; new ones meanwhile wait in the kernel. They also wait there while
// descriptors, or memory for them, are lacking.
//
// Threading: one thread, from start() to stop(), accepts.
#ifndef FOLIOT_EDGE_GRPC_GRPC_ACCEPTOR_H_
#define FOLIOT_EDGE_GRPC_GRPC_ACCEPTOR_H_

#include <grpcpp/server_builder.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "edge/grpc/turn.h"
#include "edge/requests/frontend_timeouts.h"
#include "edge/requests/spare_descriptor.h"
#include "foundation/base/idle_evictions.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

struct GrpcAcceptorOptions {
  uint32_t connections_max = 0;
  Duration idle_before_eviction = kFrontendTimeouts.idle_before_eviction;
  Duration idle_timeout;     // how long a stream may be idle before it can be evicted
  Duration request_timeout;  // for a message to come
  std::function<TimePoint()> now;
  // Ports of clients that have calls under way, whatever their addresses. Asked on the
  // acceptor's thread; it may wait.
  std::function<std::unordered_map<uint16_t, Turn>()> calling_ports;
};

class GrpcAcceptor {
 public:
  using Server = grpc::experimental::ExternalConnectionAcceptor;

  explicit GrpcAcceptor(GrpcAcceptorOptions options)
      : options_(std::move(options)), evictions_(kFrontendTimeouts.eviction_check, options_.connections_max) {}
  ~GrpcAcceptor() { stop(); }
  GrpcAcceptor(const GrpcAcceptor&) = delete;
  GrpcAcceptor& operator=(const GrpcAcceptor&) = delete;

  // Connections can be made from now on, and wait. Returns the port. Errors: as
  // listen_at().
  Result<uint16_t> listen(const std::string& address, uint16_t port);
  // Passes them to `server`, which has been started. REQUIRES: it listens.
  void start(std::unique_ptr<Server> server);
  // Passes no more from here on, and closes those that wait.
  void stop();
  // How often it could not accept a connection, for want of descriptors or memory. Any thread.
  uint64_t failures() const { return failures_.load(); }

 private:
  void run();
  void take(int descriptor);
  void find_descriptor();
  bool set_blocking(bool blocks);
  bool make_room();
  bool evict_idle();
  void find_idle();
  // For how long a connection has been idle, unless it has a call.
  Duration idleness_of(int descriptor) const;
  bool end_if_idle(int descriptor);

  const GrpcAcceptorOptions options_;
  int listener_ = -1;  // a descriptor; -1: it does not listen
  std::unique_ptr<Server> server_;
  // By descriptor: the kernel's name of what it was when it was given away. Of the thread.
  std::unordered_map<int, uint64_t> given_;
  IdleEvictions<int> evictions_;  // by descriptor
  SpareDescriptor spare_;         // of the thread
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> failures_{0};
  std::thread thread_;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_GRPC_GRPC_ACCEPTOR_H_
