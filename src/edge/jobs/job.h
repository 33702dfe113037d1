// Job: work that a client submits and does not wait for, such as an inference over all rows of a file.
//
//   queued --> running --> succeeded, failed
//     |           |
//     +-----------+------> cancelled
//
// A job that was running when its process ended is queued again (JobTable::recover()).
#ifndef FOLIOT_EDGE_JOBS_JOB_H_
#define FOLIOT_EDGE_JOBS_JOB_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

enum class JobState : uint8_t { kQueued, kRunning, kSucceeded, kFailed, kCancelled };
// "queued", "running", "succeeded", "failed", "cancelled".
std::string_view to_string(JobState state);
std::optional<JobState> job_state_named(std::string_view name);

// A notification of the end of a job: a POST of its JSON.
struct JobWebhook {
  enum class State : uint8_t { kPending, kDelivered, kFailed };
  std::string url;
  State state = State::kPending;
  uint32_t tries = 0;
  std::string error;  // of the last try; empty: none
  TimePoint next_try{};

  bool operator==(const JobWebhook&) const = default;
};
// "pending", "delivered", "failed".
std::string_view to_string(JobWebhook::State state);

// Instants are those of the wall clock, since 1970, whole milliseconds. Zero: not yet.
struct Job {
  std::string id;
  uint64_t number = 0;  // in the order of submission; of no two jobs the same
  std::string kind;     // what runs it: "offline", "register"
  std::string owner;    // the name of the key that submitted it; empty: without keys
  std::string request;  // what was asked, as a JSON object
  std::string inputs;   // of what it reads, a text that changes with it; empty: unknown
  JobState state = JobState::kQueued;
  uint64_t done = 0;                           // units, such as rows, whose results last
  uint64_t total = 0;                          // 0: not known yet
  std::map<std::string, uint64_t> variants{};  // of `done`, by the variant that answered; empty: no task was asked
  uint64_t bytes = 0;                          // of the disk, that its outputs take
  std::map<std::string, double> accuracies{};  // of a registration: of the variants that are measured, by model
  std::string waiting;                         // why it does not advance now, or its step; empty: it does
  std::string error;                           // of a failed job
  bool cancel_requested = false;
  uint32_t starts = 0;  // since it last advanced
  TimePoint created{};
  TimePoint started{};  // first
  TimePoint ended{};
  std::optional<JobWebhook> webhook{};

  bool has_ended() const { return state != JobState::kQueued && state != JobState::kRunning; }
  bool operator==(const Job&) const = default;
};

// What a client posts.
struct JobRequest {
  std::string kind;
  std::string owner;
  std::string request;  // all of it but kind and webhook, as a JSON object
  std::string webhook;  // empty: none
};

inline constexpr size_t kJobRequestBytesMax = 16 << 10;

// Jobs of this kind change the repository: a submission needs the scope `admin` beside `jobs`.
inline constexpr std::string_view kRegistrationKind = "register";

// A job as one JSON object: for clients, webhooks and stores alike.
std::string to_json(const Job& job);
// Errors: kInvalidArgument, if it is no job's, naming what is wrong.
Result<Job> job_from_json(std::string_view json);

// The body of a submission: {"kind": "offline", "webhook": "http://...", ...}; the kind decides on the rest. Errors:
// kInvalidArgument.
Result<JobRequest> parse_job_request(std::string_view body);

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_JOB_H_
