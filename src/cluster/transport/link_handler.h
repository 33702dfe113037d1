// LinkHandler and LinkControl: the two sides of a loop over connections. The loop hands
// its handler connections and turns; the handler asks the loop for connections.
//
// cluster/transport/link_loop.h is the loop over TCP; virtual/cluster/virtual_network.h is one in virtual time.
#ifndef FOLIOT_CLUSTER_TRANSPORT_LINK_HANDLER_H_
#define FOLIOT_CLUSTER_TRANSPORT_LINK_HANDLER_H_

#include <cstdint>
#include <string>

#include "cluster/transport/connection.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

// Threading: all calls come from the loop's thread.
class LinkHandler : public ConnectionHandler {
 public:
  // Ends a turn, even one without frames. Returns when the next turn begins at the
  // latest.
  virtual TimePoint on_turn_end(TimePoint now) = 0;
};

// Threading: wake() from any thread; the rest belongs to the loop's thread.
class LinkControl {
 public:
  virtual ~LinkControl() = default;
  // Connects to this address, HOST:PORT, without blocking, and again whenever that fails
  // or the connection ends, until release(); Connection::ends().dialed says which it is.
  // The handler is called for every failure (on_no_greeting()). Errors: kInvalidArgument.
  virtual Status keep(const std::string& address) = 0;
  // No longer; a connection to it ends with this turn.
  virtual void release(const std::string& address) = 0;
  // Begins a turn soon, if there is none under way. Neither locks nor allocates.
  virtual void wake() = 0;
};

// Bytes through all of a loop's sockets since it was made.
struct LinkTraffic {
  uint64_t received = 0;
  uint64_t sent = 0;
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_TRANSPORT_LINK_HANDLER_H_
