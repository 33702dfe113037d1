// GrpcServer: the Open Inference Protocol v2 and the standard health check over
// gRPC, on one completion queue with one thread (edge/grpc/grpc_calls.h), or several for
// inferences. Another takes connections in (edge/grpc/grpc_acceptor.h).
//
// A stream (ModelStreamInfer) carries many requests at once, answered as they
// complete; one that has too many unanswered is not read from until it catches up.
//
// Limits: RESOURCE_EXHAUSTED for a message or metadata over its limit. A connection
// without a completed handshake for some seconds, or without a call for the idle
// timeout, is closed. At the limit of connections a new one evicts an idle one, or is
// closed. Where the bytes of all messages under way would exceed their memory, gRPC
// closes connections, idle ones first.
#ifndef FOLIOT_EDGE_GRPC_GRPC_SERVER_H_
#define FOLIOT_EDGE_GRPC_GRPC_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "edge/requests/protocol_parts.h"
#include "foundation/access/tls.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

struct GrpcServerOptions {
  std::string address;
  uint16_t port = 0;              // 0: any free one
  uint64_t body_bytes_max = 0;    // of one message
  uint64_t bodies_bytes_max = 0;  // of all that are being read or answered
  uint32_t header_bytes_max = 0;  // of a call's metadata
  uint32_t connections_max = 0;
  Duration idle_timeout;                // of connections without a call
  Duration request_timeout;             // for a message to come, where others want its connection's place
  uint32_t requests_in_flight_max = 0;  // of the whole front end
  uint32_t threads = 1;                 // that read and answer inferences, each with a queue; the first all other calls
  bool repository_api = true;           // models can be listed, loaded and unloaded, and jobs submitted
  std::optional<TlsIdentity> tls;
};

class GrpcServer {
 public:
  // `now`: the clock of what answers.
  GrpcServer(GrpcServerOptions options, const ProtocolParts& parts, const std::function<TimePoint()>& now);
  ~GrpcServer();
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;

  // Errors: kAlreadyExists if the port is in use, kInvalidArgument for an address that
  // is not this machine's.
  Status start();
  // Ends every call and joins the threads. REQUIRES: no completion follows.
  void stop();
  uint16_t port() const;
  // For connections from now on. REQUIRES: options.tls. Any thread.
  void use_tls(const TlsIdentity& identity);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_GRPC_GRPC_SERVER_H_
