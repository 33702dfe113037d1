// Frontend: the Open Inference Protocol v2 over HTTP and gRPC, and Prometheus
// metrics. Decodes, stamps arrival, and writes the answers that an Inference gives.
//
// Authorization: with a key ring, every call but health needs a key of its scope
// (foundation/access/scope.h). The metrics and, over HTTP, the repository API with jobs may have addresses
// of their own; the latter are then nowhere else. TLS covers all of them.
//
// Threading: start() makes the threads, which call the Inference given to it. stop()
// joins.
#ifndef FOLIOT_EDGE_FRONTEND_FRONTEND_H_
#define FOLIOT_EDGE_FRONTEND_FRONTEND_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "answer/inference/inference.h"
#include "answer/inference/personal_service.h"
#include "answer/inference/served_names.h"
#include "answer/inference/statistics.h"
#include "answer/inference/tensor_limits.h"
#include "edge/jobs/job_service.h"
#include "edge/requests/server_settings.h"
#include "foundation/access/key_ring.h"
#include "foundation/access/tls.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/core/catalog.h"
#include "observe/metrics/metrics_source.h"
#include "observe/monitor/feed.h"

namespace foliot {

struct FrontendOptions {
  std::string address = "127.0.0.1";
  uint16_t http_port = 8000;  // 0: any free one, see Frontend::http_port()
  uint16_t grpc_port = 8001;
  uint16_t metrics_port = 8002;
  uint32_t grpc_threads = 1;           // that read and answer calls
  std::string metrics_address;         // empty: `address`
  std::optional<uint16_t> admin_port;  // of the repository API; nullopt: with all else
  std::string admin_address = "127.0.0.1";
  uint64_t body_bytes_max = uint64_t{64} << 20;   // of one request
  uint64_t bodies_bytes_max = uint64_t{1} << 30;  // of all at a time, each for HTTP and for gRPC
  TensorLimits tensors;
  uint32_t header_bytes_max = 64 << 10;
  uint32_t connections_max = 10240;  // each for HTTP and for gRPC
  // Rows, among which classes and keys have their shares (answer/model_calls/payload_table.h).
  uint32_t requests_in_flight_max = 16384;
  uint64_t prediction_cache_bytes = uint64_t{64} << 20;  // of models with `cache = true`
  Duration idle_timeout = Duration::seconds(60);         // of connections between requests
  Duration request_timeout = Duration::seconds(60);      // for all of a request to come
  bool strict_readiness = false;                         // ready only while all models are served, not one at least
  std::optional<TlsIdentity> tls;
  LogLevels log_levels;                 // of the process, as clients see it
  TraceExport traces;                   // likewise
  std::shared_ptr<const KeyRing> keys;  // null: no authentication
  // Called for every call that was refused for its key, from any thread; must not
  // block.
  std::function<void(const std::string&)> on_denial = [](const std::string&) {};
  // Called once for each unknown name in requests, which is ignored; likewise.
  std::function<void(const std::string&)> on_unknown_name = [](const std::string&) {};
};

class Frontend {
 public:
  virtual ~Frontend() = default;
  // Before start(): what the metrics port shows. It outlives the front end.
  virtual void add_metrics(const MetricsSource& source) = 0;
  // Likewise: the metrics port has the monitor page. REQUIRES: no other thread asks the feed.
  virtual void show_monitor(MonitorFeed& feed) = 0;
  // Binds the ports and starts to serve. Errors: kAlreadyExists naming the port
  // in use and the flag that changes it.
  virtual Status start() = 0;
  // The holders of keys, and what their calls came to. Any thread.
  virtual std::vector<TenantStatistics> tenants() const = 0;
  // As Gate::tenant_named(). Any thread.
  virtual Result<std::shared_ptr<Tenant>> tenant_named(std::string_view name) const = 0;
  // Instead of those that it began with. Any thread. REQUIRES: it has keys.
  virtual void use_keys(std::shared_ptr<const KeyRing> keys) = 0;
  // For connections from now on. Any thread. REQUIRES: it speaks TLS, and asks clients
  // for certificates or not as before. Errors: kInvalidArgument, and those before are
  // kept.
  virtual Status use_tls(const TlsIdentity& identity) = 0;
  // Closes everything and joins all threads; answers that come later are dropped.
  virtual void stop() = 0;
  virtual uint16_t http_port() const = 0;
  virtual uint16_t grpc_port() const = 0;
  virtual uint16_t metrics_port() const = 0;
  virtual std::optional<uint16_t> admin_port() const = 0;
};

// What a front end stands on; all references outlive it.
struct FrontendParts {
  Inference& inference;
  const ServedNames& names;
  CallStatistics& statistics;
  ModelRepository& repository;
  // Counts a name in a request that is unknown and ignored, as UnknownNames does.
  std::function<void(std::string_view place, std::string_view name)> count_unknown_name;
  // The clock of deadlines; any thread.
  std::function<TimePoint()> now;
  PersonalService* personal = nullptr;  // null: there are no personal models
  JobService* jobs = nullptr;           // null: no jobs are kept
};

std::unique_ptr<Frontend> make_frontend(const FrontendOptions& options, const FrontendParts& parts);

}  // namespace foliot

#endif  // FOLIOT_EDGE_FRONTEND_FRONTEND_H_
