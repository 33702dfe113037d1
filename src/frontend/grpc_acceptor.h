// GrpcAcceptor: takes in connections for a gRPC server, which by itself takes in
// all that come, and no more than there may be at a time.
//
// One more than that takes the place of one that has been idle longest, if that has
// been for some seconds, and else is closed at once; clients of gRPC try again, later and
// later. Idle is a connection without a call on which nothing came or went, or nothing
// went for so long that what comes will not become a message in time; and a stream on
// which no answer is owed, but only after as long as a connection may be silent anyway.
//
// gRPC owns a connection once it has it, and does not tell when it closes it. So the
// acceptor remembers the kernel's name of each (SO_COOKIE) and, when there seem to be
// too many, looks which descriptors still have theirs, every kLookInterval at most: what
// is closed costs nothing until then, and a descriptor that is another's by now is told
// apart. Just as often it looks who is idle.
//
// Between two connections there is a pause, so that a flood of them leaves the threads
// that serve their turn; what comes meanwhile waits in the kernel. Without descriptors,
// or memory for them, it does too.
//
// Threading: one thread, from start() to stop(), accepts.
#ifndef FOLIOT_FRONTEND_GRPC_ACCEPTOR_H_
#define FOLIOT_FRONTEND_GRPC_ACCEPTOR_H_

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

#include "base/status.h"
#include "base/time.h"
#include "frontend/turn.h"

namespace foliot {

struct GrpcAcceptorOptions {
  uint32_t connections_max = 0;
  // What has been idle for less is somebody's who is about to ask again.
  Duration idle_before_others = Duration::seconds(2);
  Duration idle_timeout;     // what a stream may be idle before others
  Duration request_timeout;  // for a message to come
  std::function<TimePoint()> now;
  // Ports of clients that have calls under way, whatever their addresses. Asked on the
  // acceptor's thread; it may wait.
  std::function<std::unordered_map<uint16_t, Turn>()> calling_ports;
};

class GrpcAcceptor {
 public:
  using Server = grpc::experimental::ExternalConnectionAcceptor;

  explicit GrpcAcceptor(GrpcAcceptorOptions options) : options_(std::move(options)) {}
  ~GrpcAcceptor() { stop(); }
  GrpcAcceptor(const GrpcAcceptor&) = delete;
  GrpcAcceptor& operator=(const GrpcAcceptor&) = delete;

  // Connections can be made from now on, and wait. Returns the port. Errors: as listen_at().
  Result<uint16_t> listen(const std::string& address, uint16_t port);
  // Gives them to `server`, which has been started. REQUIRES: it listens.
  void start(std::unique_ptr<Server> server);
  // Gives it no more from here on, and closes those that wait.
  void stop();

 private:
  void run();
  void take(int descriptor);
  bool make_room();
  void look();
  // For how long a connection has been idle, unless it has a call.
  Duration idleness_of(int descriptor) const;
  bool end_if_idle(int descriptor);

  const GrpcAcceptorOptions options_;
  int listener_ = -1;  // a descriptor; -1: it does not listen
  std::unique_ptr<Server> server_;
  // By descriptor: the kernel's name of what it was when it was given away. Of the thread.
  std::unordered_map<int, uint64_t> given_;
  std::vector<int> idle_;  // when it last looked, who had been for longest last
  TimePoint next_look_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace foliot

#endif  // FOLIOT_FRONTEND_GRPC_ACCEPTOR_H_
