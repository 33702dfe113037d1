// LoadReport: the result of a run of load. Counts, latency and goodput, in all, per
// stream and per model, as text and as JSON.
//
// Latency is counted from the instant at which the request was *due* to be sent,
// not from when it was: a generator or a server that falls behind cannot hide it
// (no coordinated omission). A refused request counts as missed.
//
// Threading: not thread-safe; one owner.
#ifndef FOLIOT_LOAD_WORKLOAD_LOAD_REPORT_H_
#define FOLIOT_LOAD_WORKLOAD_LOAD_REPORT_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foundation/base/histogram.h"
#include "foundation/base/time.h"

namespace foliot {

enum class LoadOutcome : uint8_t {
  kAnswered,
  kRefused,  // the server refused it, with a reason
  kFailed,   // an error, or no answer within the client's timeout
  kUnsent,   // the generator itself could not send it: too many in flight
};

struct LoadSample {
  uint32_t model = 0;     // position in the report's models
  uint32_t stream = 0;    // position in the report's streams
  TimePoint scheduled{};  // when it was due to be sent
  TimePoint sent{};
  TimePoint finished{};  // when its end was known
  LoadOutcome outcome = LoadOutcome::kAnswered;
  std::string_view reason{};       // of kRefused: the reason word; of kFailed: what happened
  Duration slo = Duration::max();  // max(): every answer is good
};

// Counts of one model, of one stream, or of all.
struct LoadTally {
  uint64_t offered = 0;  // due to be sent = sent + unsent
  uint64_t sent = 0;
  uint64_t good = 0;  // answered within the deadline
  uint64_t late = 0;  // answered after it
  uint64_t refused = 0;
  uint64_t failed = 0;
  Histogram latency;  // of the answered, good and late

  // Share of the offered that was answered in time, in [0, 1]; 1 if none was offered.
  double attainment() const;
};

struct LoadReportOptions {
  std::vector<std::string> models;  // at least one
  // Names of the streams that are reported separately; empty: none are.
  std::vector<std::string> streams{};
  uint32_t rows_per_request = 1;
  // The settings of the run, for readers of the report: ("url", "127.0.0.1:8001"), ...
  std::vector<std::pair<std::string, std::string>> settings;
};

class LoadReport {
 public:
  explicit LoadReport(LoadReportOptions options);

  void record(const LoadSample& sample);
  // How long requests were offered; rates are per second of it.
  void set_duration(Duration duration) { duration_ = duration; }

  const LoadTally& total() const { return total_; }
  const LoadTally& model(uint32_t index) const { return models_.at(index); }
  const LoadTally& stream(uint32_t index) const { return streams_.at(index); }
  const std::map<std::string, uint64_t>& refusals() const { return refusals_; }
  const std::map<std::string, uint64_t>& failures() const { return failures_; }
  // From due to refused: a good refusal comes early.
  const Histogram& refusal_latency() const { return refusal_latency_; }
  // From due to sent: the generator's lag behind its own schedule.
  const Histogram& send_lag() const { return send_lag_; }

  // Good answers per second.
  double goodput() const { return per_second(total_.good); }
  // True when the generator was late so often (p99 above a tenth of the tightest SLO,
  // or above 1 ms) or left so much unsent that the run measures the generator rather
  // than the server.
  bool generator_lagged() const;

  std::string to_text() const;
  std::string to_json() const;

 private:
  double per_second(uint64_t count) const;

  LoadReportOptions options_;
  Duration duration_;
  LoadTally total_;
  std::vector<LoadTally> models_;
  std::vector<LoadTally> streams_;
  Duration slo_min_ = Duration::max();
  std::map<std::string, uint64_t> refusals_;
  std::map<std::string, uint64_t> failures_;
  Histogram refusal_latency_;
  Histogram send_lag_;
};

}  // namespace foliot

#endif  // FOLIOT_LOAD_WORKLOAD_LOAD_REPORT_H_
