// RequestLoad: load for a controller's request link: requests without inputs, due
// by a Poisson process or as a trace has them, whatever the controller does. Latency counts from the
// instant a request was due until its answer was here.
//
// Threading: belongs to the loop that drives it.
#ifndef FOLIOT_VIRTUAL_EMULATION_REQUEST_LOAD_H_
#define FOLIOT_VIRTUAL_EMULATION_REQUEST_LOAD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/transport/link_loop.h"
#include "cluster/transport/link_timeouts.h"
#include "foundation/base/random.h"
#include "foundation/base/status.h"
#include "load/workload/arrivals.h"
#include "load/workload/azure_like_trace.h"
#include "load/workload/load_report.h"
#include "load/workload/popularity.h"

namespace foliot {

struct RequestLoadOptions {
  double rate = 1000;  // requests per second, above 0
  double zipf = 0;     // popularity of the models; 0: uniform
  // Not 0: instead, a trace like that of Azure Functions with so many functions
  // (load/workload/azure_like_trace.h), where function f asks model f modulo their number.
  uint32_t functions = 0;
  std::optional<Duration> deadline = Duration::milliseconds(100);  // nullopt: best effort
  TenantId tenant;
  Duration warm_up = Duration::seconds(2);  // at the beginning, not counted; the rate grows
  Duration duration = Duration::seconds(5);
  uint64_t seed = 1;
  Duration pong_timeout = kLinkTimeouts.pong;  // after which the controller is given up
};

struct RequestLoadResult {
  LoadReport load;
  uint64_t cold_starts = 0;  // answered, and loaded nowhere when they came
  Statistics controller;     // during the same time
};

class RequestLoad : public LinkHandler {
 public:
  // `on_end` is called once, when there is a result or the link has failed.
  RequestLoad(const RequestLoadOptions& options, std::function<void()> on_end);
  ~RequestLoad() override;

  Result<std::unique_ptr<Session>> on_open(Connection& connection, Role peer, TimePoint now) override;
  void on_no_greeting(const std::string& peer, const Status& reason) override;
  TimePoint on_turn_end(TimePoint now) override;

  // After `on_end`. Errors: kUnavailable if the controller was lost, or served no
  // model.
  Result<RequestLoadResult> result() const;

 private:
  class ControllerSession;
  enum class Phase : uint8_t { kConnecting, kWarmUp, kMeasuring, kDraining, kOver };

  void begin(TimePoint now);
  void send_due(TimePoint now);
  void send_one(TimePoint due, uint32_t position, TimePoint now);
  void draw_next();
  bool drawn_from_trace();
  void advance_phase(TimePoint now);
  void on_completion(const Completion& completion, TimePoint now);
  void on_statistics(const Statistics& statistics);
  void end(Status status);

  const RequestLoadOptions options_;
  const std::function<void()> on_end_;
  Random random_;
  std::unique_ptr<ArrivalProcess> arrivals_;
  std::optional<Popularity> popularity_;
  std::optional<AzureLikeTrace> trace_;
  std::unique_ptr<TraceReplay> replay_;
  std::vector<ModelInfo> models_;
  std::vector<uint32_t> positions_;  // by ModelId: its place in models_
  std::optional<LoadReport> report_;
  std::optional<Statistics> statistics_;

  ControllerSession* session_ = nullptr;
  Phase phase_ = Phase::kConnecting;
  Status status_ = Status::unavailable("no controller was found");
  TimePoint begin_;
  TimePoint measure_from_;
  TimePoint measure_until_;
  TimePoint drained_by_;
  std::optional<TimePoint> next_due_;
  uint32_t next_position_ = 0;  // of the model that is asked then
  uint64_t cold_starts_ = 0;
  uint64_t next_request_ = 1;
  RequestId first_measured_;
  uint64_t measured_unanswered_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_EMULATION_REQUEST_LOAD_H_
