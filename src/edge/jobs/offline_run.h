// OfflineRun: one run of an offline job: calls under way, those to be sent again, and what is on disk.
//
//   input files -> calls (a window of ranges of rows, in order) -> output files -> progress
//
// Threading: the thread that runs the job, which is the one of its inbox.
#ifndef FOLIOT_EDGE_JOBS_OFFLINE_RUN_H_
#define FOLIOT_EDGE_JOBS_OFFLINE_RUN_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "answer/inference/inference.h"
#include "edge/jobs/answer_inbox.h"
#include "edge/jobs/input_file.h"
#include "edge/jobs/job_kind.h"
#include "edge/jobs/offline_jobs.h"
#include "edge/jobs/offline_request.h"
#include "edge/jobs/output_file.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/core/model_info.h"

namespace foliot {

class OfflineRun final : public AnswerSink {
 public:
  struct Parts {
    const OfflineOptions& options;
    Inference& inference;
    JobContext& context;
    AnswerInbox& inbox;  // outlives all calls
    std::shared_ptr<const ModelInfo> model;
    std::shared_ptr<Tenant> tenant;  // null: without limits
    std::map<std::string, InputFile> inputs;
    Descriptor output;  // the folder
    // That its outputs take, before they do; or why not.
    std::function<Status(uint64_t bytes)> claim_room;
    // The folder that has the output's name now, which may be another one; null: clients cannot change it.
    std::function<Result<Descriptor>()> find_output;
  };
  OfflineRun(Parts parts, OfflineRequest request, const Job& job);

  // Returns when all rows are on disk, when it has failed, or when the context is over; no call is under way then.
  Status run();

 private:
  // A range of rows in the window.
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
    std::vector<std::vector<std::byte>> inputs{};  // in the order of `parts_.inputs`
    enum class State : uint8_t { kToSend, kSent, kWritten } state = State::kToSend;
    CallId call{};
    TimePoint send_at{};  // of one to be sent again
    Duration wait{};      // before that
    std::string variant{};
  };

  bool is_finished() const { return window_.empty() && next_ == rows_; }
  Status fill_window();
  Status send_due(TimePoint now);
  Status send(Range& range, TimePoint now);
  Status send_again_or_fail(Range& range, const CallError& error, TimePoint now);
  void on_answer(CallId call, std::unique_ptr<Answer> answer) override;
  Status take(Range& range, Answer& answer);
  Status write(const Range& range, Answer& answer, uint32_t output);
  Status open_output(const TensorSpec& spec, const Shape& row_shape);
  void advance();
  Status check_files() const;
  Status keep();
  void wait_for_answers(TimePoint now);
  void end_calls();
  uint64_t rows_of_a_call() const;

  const Parts parts_;
  const OfflineRequest request_;
  const uint64_t rows_;
  const bool is_begun_;  // by an earlier run
  const uint64_t per_call_;
  uint64_t next_ = 0;  // the first row that is not in the window
  uint64_t done_ = 0;  // rows before the window
  uint64_t kept_ = 0;
  TimePoint kept_at_{};
  std::map<std::string, uint64_t> variants_;  // of the rows that are done
  std::deque<Range> window_;                  // in the order of rows, without gaps
  uint32_t under_way_ = 0;
  Status failed_;
  std::map<std::string, OutputFile> outputs_;
  uint64_t output_bytes_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_OFFLINE_RUN_H_
