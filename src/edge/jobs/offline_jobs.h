// OfflineJobs: jobs of the kind "offline": inference over all rows of files, in the class `offline`, whose outputs
// become files in the order of the rows (INFaaS, Section 3: offline queries).
//
// Rows are sent in calls of a batch, of which a bounded number is under way. What is refused for now (429, 503, 504) is
// sent again, after a time that doubles up to `wait_most`; what is refused for good fails the job. Progress is the
// number of first rows that are on disk: so a job that goes on after a crash computes those behind it again, in their
// places, and none is lost or there twice.
//
// Calls count for the key that submitted the job, with its limits and its share.
#ifndef FOLIOT_EDGE_JOBS_OFFLINE_JOBS_H_
#define FOLIOT_EDGE_JOBS_OFFLINE_JOBS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "answer/inference/inference.h"
#include "answer/inference/served_names.h"
#include "edge/jobs/answer_inbox.h"
#include "edge/jobs/input_file.h"
#include "edge/jobs/job_folder.h"
#include "edge/jobs/job_kind.h"
#include "edge/jobs/offline_request.h"
#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/core/catalog.h"
#include "foundation/platform/descriptor.h"

namespace foliot {

struct OfflineOptions {
  uint32_t calls_max = 4;                         // of a job, under way at a time
  uint32_t rows_max = 32;                         // of a call; a batch, if that is smaller
  uint64_t call_bytes_max = uint64_t{8} << 20;    // of a call's inputs, but for a single row
  Duration keep_interval = Duration::seconds(1);  // between two times at which progress is kept
  Duration wait_first = Duration::milliseconds(100);
  Duration wait_most = Duration::seconds(10);
  // The clock of the Inference; any thread.
  std::function<TimePoint()> now;
  // Of the key of this name. Errors: kNotFound, if there is none any more. Any thread.
  std::function<Result<std::shared_ptr<Tenant>>(const std::string& owner)> tenant_of;
  // All jobs that are known.
  std::function<std::vector<Job>()> list_jobs = [] { return std::vector<Job>(); };
  // Of the disk, for the outputs of all known jobs of one key; those that were removed do not count. nullopt: no limit.
  std::optional<uint64_t> owner_bytes_max{};
};

class OfflineJobs final : public JobKind {
 public:
  // All references outlive this, which outlives the threads that answer calls.
  OfflineJobs(OfflineOptions options, const JobFolder& folder, const Catalog& catalog, Inference& inference)
      : options_(std::move(options)), folder_(folder), catalog_(catalog), names_(catalog), inference_(inference) {}

  std::string_view name() const override { return "offline"; }
  Status accept(Job& job) override;
  void discard(const Job& job) override;
  Status run(const Job& job, JobContext& context) override;
  // The same for rows that lie elsewhere: of `job` only the owner and the progress count.
  struct RowFiles {
    std::map<std::string, InputFile> inputs;            // by name; all have as many rows
    Descriptor output;                                  // the folder
    std::function<Result<Descriptor>()> find_output{};  // by its name, as it is found now; null: it is not moved
  };
  Status answer(OfflineRequest request, RowFiles files, const Job& job, JobContext& context);

 private:
  Status check_name(const OfflineRequest& request) const;
  Status claim_output(const std::string& path) const;
  // By the outputs of other jobs of this one's key.
  uint64_t bytes_of_others(const Job& job) const;
  Status check_room(const Job& job, uint64_t bytes) const;
  // Before the room is taken.
  Status claim_room(const Job& job, uint64_t bytes, JobContext& context);
  // What runs it, once that is ready; null: the run is over before. Errors: kNotFound.
  Result<std::shared_ptr<const ModelInfo>> wait_until_served(const std::string& name, JobContext& context) const;
  std::unique_ptr<AnswerInbox> borrow_inbox();
  void give_back(std::unique_ptr<AnswerInbox> inbox);

  const OfflineOptions options_;
  const JobFolder& folder_;
  const Catalog& catalog_;
  const ServedNames names_;
  Inference& inference_;

  Mutex room_mutex_;  // one job at a time claims room
  Mutex mutex_;
  std::vector<std::unique_ptr<AnswerInbox>> idle_inboxes_ GUARDED_BY(mutex_);  // as many as jobs ran at a time
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_OFFLINE_JOBS_H_
