// LinkLoop: connections over TCP, and whatever they feed, on one thread. Socket
// readiness, incoming bytes and one timer are one loop; hundreds of connections
// cost one thread.
//
// The loop works in turns: it reads the sockets that are ready, a bounded number of
// them, handing frames to their sessions; ends the turn; and writes what was
// sent meanwhile, one system call for each connection. Then it sleeps until there
// is something to read or the instant that the turn's end named.
//
// With TLS, both ends show each other certificates (foundation/access/tls_session.h) before
// anything else is sent; a peer without one is refused.
//
// Limits: a peer that sends no greeting in time, or nothing for long (all of Foliot's
// send pings), is closed. At the limit of connections a new one evicts the one that has
// been without a greeting longest, and is closed at once otherwise. A connection whose
// frame makes all partly received frames larger than their memory is closed.
//
// A peer that is to be kept is connected to again whenever it is lost, after pauses
// that grow from 50 ms to 500 ms, since many peers wait for a controller that restarts.
//
// Threading: stop(), wake() and use_tls() from any thread; all else belongs to the thread that
// calls run(), which is also the one that calls the handler.
#ifndef FOLIOT_CLUSTER_TRANSPORT_LINK_LOOP_H_
#define FOLIOT_CLUSTER_TRANSPORT_LINK_LOOP_H_

#include <cstdint>
#include <memory>
#include <string>

#include "cluster/transport/connection.h"
#include "cluster/transport/link_handler.h"
#include "cluster/transport/link_timeouts.h"
#include "foundation/access/tls_session.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

struct LinkLoopOptions {
  ConnectionOptions connection;
  // A turn ends after so many reads though more sockets may be ready, so that a
  // flood cannot hold up the timer.
  uint32_t reads_per_turn_max = 16;
  uint32_t connections_max = 4096;
  uint64_t received_bytes_max = uint64_t{1} << 30;  // of all frames that have come in part
  LinkTimeouts timeouts{};
  std::shared_ptr<const TlsContext> tls;  // null: plain
  // End run() on SIGINT or SIGTERM.
  bool stop_on_signals = false;
};

class LinkLoop : public LinkControl {
 public:
  // `host` outlives the loop.
  LinkLoop(const LinkLoopOptions& options, LinkHandler& host);
  ~LinkLoop() override;

  // Addresses are HOST:PORT. Returns the port, which the system chooses where it is
  // 0. Errors: kInvalidArgument, kAlreadyExists if the port is in use.
  Result<uint16_t> listen(const std::string& address);
  // Blocks until there is a connection. Errors: kInvalidArgument, kUnavailable if no
  // process listens there.
  Status connect(const std::string& address);

  Status keep(const std::string& address) override;
  void release(const std::string& address) override;

  // Returns after stop(); connections are then closed.
  void run();
  void stop();
  // Makes a system call only if no other call has woken the loop before.
  void wake() override;

  // For connections that begin from now on. REQUIRES: it began with TLS.
  void use_tls(std::shared_ptr<const TlsContext> tls);

  size_t connections() const;
  const LinkTraffic& traffic() const;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_TRANSPORT_LINK_LOOP_H_
