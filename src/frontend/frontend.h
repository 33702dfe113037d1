// Frontend: the Open Inference Protocol v2 over HTTP and gRPC, and Prometheus
// metrics. Decodes, stamps arrival, keeps inputs and outputs while a request is
// in flight (PayloadStore), and turns completions into responses.
//
// Authorization: with a key ring, every call but health needs a key of its scope
// (access/scope.h). The metrics and, over HTTP, the repository API may have addresses
// of their own; the latter is then nowhere else. TLS covers all of them.
//
// Threading: start() makes the threads; submit() of the RequestSink given to it
// is called from them; complete() and the Observer's calls come from the
// controller's loop, input() and output() from executors. stop() joins.
#ifndef FOLIOT_FRONTEND_FRONTEND_H_
#define FOLIOT_FRONTEND_FRONTEND_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "access/key_ring.h"
#include "access/tls.h"
#include "base/status.h"
#include "base/time.h"
#include "core/call_label.h"
#include "core/catalog.h"
#include "core/ports.h"
#include "core/request_origin.h"
#include "frontend/tensor_limits.h"
#include "metrics/metrics_source.h"

namespace foliot {

struct FrontendOptions {
  std::string address = "127.0.0.1";
  uint16_t http_port = 8000;  // 0: any free one, see Frontend::http_port()
  uint16_t grpc_port = 8001;
  uint16_t metrics_port = 8002;
  std::string metrics_address;         // empty: `address`
  std::optional<uint16_t> admin_port;  // of the repository API; nullopt: with all else
  std::string admin_address = "127.0.0.1";
  uint64_t body_bytes_max = uint64_t{64} << 20;   // of one request
  uint64_t bodies_bytes_max = uint64_t{1} << 30;  // of all at a time, each for HTTP and for gRPC
  TensorLimits tensors;
  uint32_t header_bytes_max = 64 << 10;
  uint32_t connections_max = 10240;  // each for HTTP and for gRPC
  // Rows, among which classes and keys have their shares (frontend/payload_table.h).
  uint32_t requests_in_flight_max = 16384;
  Duration idle_timeout = Duration::seconds(60);     // of connections between requests
  Duration request_timeout = Duration::seconds(60);  // for all of a request to come
  bool strict_readiness = false;                     // ready only while all models are served, not one at least
  std::optional<TlsIdentity> tls;
  std::shared_ptr<const KeyRing> keys;  // null: no authentication
  // Called for every call that was refused for its key, from any thread; must not
  // block.
  std::function<void(const std::string&)> on_denial = [](const std::string&) {};
  // Called once for each unknown name in requests, which is ignored; likewise.
  std::function<void(const std::string&)> on_unknown_name = [](const std::string&) {};
};

class Frontend : public RequestOrigin {
 public:
  // Before start(): what the metrics show besides the front end's own. It outlives the
  // front end.
  virtual void add_metrics(const MetricsSource& source) = 0;
  // Binds the ports and starts to serve. Errors: kAlreadyExists naming the port
  // in use and the flag that changes it.
  virtual Status start() = 0;
  // From now on new inferences are refused (kDraining, 503) and readiness is
  // false; what is in flight is answered.
  virtual void drain() = 0;
  // Rows in flight.
  virtual uint64_t in_flight() const = 0;
  // After drain(): waits until no rows are in flight, for at most so long; false if some
  // are.
  virtual bool wait_until_answered(Duration timeout) = 0;
  // Instead of those that it began with. Any thread. REQUIRES: it has keys.
  virtual void use_keys(std::shared_ptr<const KeyRing> keys) = 0;
  // For connections from now on. Any thread. REQUIRES: it speaks TLS, and asks clients
  // for certificates or not as before. Errors: kInvalidArgument, and those before are
  // kept.
  virtual Status use_tls(const TlsIdentity& identity) = 0;
  // Closes everything and joins all threads. REQUIRES: no completion follows.
  virtual void stop() = 0;
  virtual uint16_t http_port() const = 0;
  virtual uint16_t grpc_port() const = 0;
  virtual uint16_t metrics_port() const = 0;
  virtual std::optional<uint16_t> admin_port() const = 0;
};

// All references outlive the front end. `now` is the clock of the controller's
// loop, callable from any thread.
std::unique_ptr<Frontend> make_frontend(const FrontendOptions& options, const Catalog& catalog,
                                        LabelledRequestSink& requests, ModelRepository& repository,
                                        const std::function<TimePoint()>& now);

}  // namespace foliot

#endif  // FOLIOT_FRONTEND_FRONTEND_H_
