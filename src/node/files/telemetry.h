// Telemetry: the metrics of a controller or a worker, over HTTP, and its log of requests
// and actions on disk. Flags and errors are those of `foliot serve`; but there is no port
// for metrics unless one is given, since several of these processes may run on one machine.
#ifndef FOLIOT_NODE_FILES_TELEMETRY_H_
#define FOLIOT_NODE_FILES_TELEMETRY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "edge/http/metrics_server.h"
#include "edge/requests/gate.h"
#include "foundation/base/status.h"
#include "foundation/logging/logger.h"
#include "node/files/access_files.h"
#include "node/files/file_watch.h"
#include "observe/monitor/feed.h"
#include "observe/request_log/log_writer.h"
#include "observe/request_log/recorder.h"
#include "observe/tracing/tracing.h"

namespace foliot {

struct TelemetryOptions {
  std::optional<uint16_t> metrics_port;
  std::string metrics_address;
  AccessFiles access;  // of the metrics
  LogOptions log;
  TracingOptions tracing;  // of a controller

  bool metrics() const { return metrics_port.has_value(); }
  bool any() const { return metrics() || !log.folder.empty(); }
};

// Threading: belongs to one thread; recorder() to the loop that it observes.
class Telemetry {
 public:
  // `page` makes what /metrics serves. `listen`: HOST:PORT, at whose address the metrics
  // listen unless they have one. `feed`, if there is one, is asked by the metrics' thread alone. `log`
  // and `feed` outlive this. Errors: kInvalidArgument, kAlreadyExists naming the flag.
  static Result<std::unique_ptr<Telemetry>> open(const TelemetryOptions& options, const std::string& listen,
                                                 std::function<std::string()> page, Logger& log,
                                                 MonitorFeed* feed = nullptr);

  // Null: nothing is recorded.
  Recorder* recorder() { return recorder_.get(); }
  // Null: nothing is traced.
  Tracing* tracing() { return tracing_.get(); }
  // "; metrics :8102/metrics", or nothing.
  std::string description() const;
  // Keys and certificates. This outlives the watch.
  std::vector<WatchedFiles> watched(Logger& log);

 private:
  Telemetry(const TelemetryOptions& options, std::shared_ptr<const KeyRing> keys, Logger& log);

  const TelemetryOptions options_;
  Gate gate_;
  std::unique_ptr<Tracing> tracing_;
  std::unique_ptr<MetricsServer> server_;  // null: no metrics are served
  std::unique_ptr<Recorder> recorder_;
};

}  // namespace foliot

#endif  // FOLIOT_NODE_FILES_TELEMETRY_H_
