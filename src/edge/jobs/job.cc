#include "edge/jobs/job.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "foundation/base/check.h"
#include "foundation/json/bounded_json.h"

namespace foliot {
namespace {

using JobJson = nlohmann::ordered_json;

constexpr std::array kJobStates{JobState::kQueued, JobState::kRunning, JobState::kSucceeded, JobState::kFailed,
                                JobState::kCancelled};
constexpr std::array kWebhookStates{JobWebhook::State::kPending, JobWebhook::State::kDelivered,
                                    JobWebhook::State::kFailed};

// Members of a job stay in their order, and are searched for one by one.
constexpr JsonBounds kJobRequestBounds{.bytes_max = kJobRequestBytesMax, .values_max = 1024};
// What is kept of a job has its request in it, and counts by model.
constexpr JsonBounds kJobBounds{.bytes_max = 4 << 20, .depth_max = kJobRequestBounds.depth_max + 4};

int64_t milliseconds(TimePoint instant) { return instant.nanoseconds() / 1'000'000; }
TimePoint instant_of(int64_t milliseconds) { return TimePoint() + Duration::milliseconds(milliseconds); }

std::string dump(const JobJson& json) { return json.dump(-1, ' ', false, JobJson::error_handler_t::replace); }

JobJson webhook_json(const JobWebhook& webhook) {
  JobJson json = {{"url", webhook.url}, {"state", to_string(webhook.state)}, {"tries", webhook.tries}};
  if (!webhook.error.empty()) json["error"] = webhook.error;
  if (webhook.next_try != TimePoint()) json["next_try_ms"] = milliseconds(webhook.next_try);
  return json;
}

// Throws what nlohmann's accessors throw.
JobWebhook webhook_of(const JobJson& json) {
  JobWebhook webhook{.url = json.at("url"),
                     .tries = json.at("tries"),
                     .error = json.value("error", ""),
                     .next_try = instant_of(json.value("next_try_ms", int64_t{0}))};
  for (const JobWebhook::State state : kWebhookStates) {
    if (json.at("state") == to_string(state)) webhook.state = state;
  }
  return webhook;
}

Job job_of(const JobJson& json) {
  const std::optional<JobState> state = job_state_named(json.at("state").get<std::string>());
  if (!state) throw std::out_of_range("its state is unknown");
  const JobJson& progress = json.at("progress");
  Job job{.id = json.at("id"),
          .number = json.at("number"),
          .kind = json.at("kind"),
          .owner = json.value("owner", ""),
          .request = dump(json.at("request")),
          .inputs = json.value("inputs", ""),
          .state = *state,
          .done = progress.at("done"),
          .total = progress.at("total"),
          .bytes = progress.value("bytes", uint64_t{0}),
          .waiting = progress.value("waiting", ""),
          .error = json.value("error", ""),
          .cancel_requested = json.value("cancel_requested", false),
          .starts = json.value("starts", 0U),
          .created = instant_of(json.at("created_ms")),
          .started = instant_of(json.value("started_ms", int64_t{0})),
          .ended = instant_of(json.value("ended_ms", int64_t{0}))};
  if (progress.contains("variants")) job.variants = progress.at("variants").get<std::map<std::string, uint64_t>>();
  if (progress.contains("accuracies")) job.accuracies = progress.at("accuracies").get<std::map<std::string, double>>();
  if (json.contains("webhook")) job.webhook = webhook_of(json.at("webhook"));
  return job;
}

}  // namespace

std::string_view to_string(JobState state) {
  switch (state) {
    case JobState::kQueued: return "queued";
    case JobState::kRunning: return "running";
    case JobState::kSucceeded: return "succeeded";
    case JobState::kFailed: return "failed";
    case JobState::kCancelled: return "cancelled";
  }
  FOLIOT_CHECK(false);
}

std::optional<JobState> job_state_named(std::string_view name) {
  for (const JobState state : kJobStates) {
    if (name == to_string(state)) return state;
  }
  return std::nullopt;
}

std::string_view to_string(JobWebhook::State state) {
  switch (state) {
    case JobWebhook::State::kPending: return "pending";
    case JobWebhook::State::kDelivered: return "delivered";
    case JobWebhook::State::kFailed: return "failed";
  }
  FOLIOT_CHECK(false);
}

std::string to_json(const Job& job) {
  JobJson json = {{"id", job.id}, {"number", job.number}, {"kind", job.kind}, {"state", to_string(job.state)}};
  if (!job.owner.empty()) json["owner"] = job.owner;
  json["progress"] = {{"done", job.done}, {"total", job.total}};
  if (!job.variants.empty()) json["progress"]["variants"] = job.variants;
  if (job.bytes > 0) json["progress"]["bytes"] = job.bytes;
  if (!job.accuracies.empty()) json["progress"]["accuracies"] = job.accuracies;
  if (!job.waiting.empty()) json["progress"]["waiting"] = job.waiting;
  if (!job.error.empty()) json["error"] = job.error;
  if (job.cancel_requested) json["cancel_requested"] = true;
  if (job.starts > 0) json["starts"] = job.starts;
  json["created_ms"] = milliseconds(job.created);
  if (job.started != TimePoint()) json["started_ms"] = milliseconds(job.started);
  if (job.ended != TimePoint()) json["ended_ms"] = milliseconds(job.ended);
  if (job.webhook) json["webhook"] = webhook_json(*job.webhook);
  if (!job.inputs.empty()) json["inputs"] = job.inputs;
  // What is JSON already is not parsed again: a list has a thousand of them.
  std::string text = dump(json);
  text.back() = ',';
  return text + "\"request\":" + (job.request.empty() ? "null" : job.request) + "}";
}

Result<Job> job_from_json(std::string_view text) {
  FOLIOT_RETURN_IF_ERROR(check_json_bounds(text, kJobBounds));
  const JobJson json = JobJson::parse(text, nullptr, false);
  if (!json.is_object()) return Status::invalid_argument("a job must be a JSON object");
  try {
    return job_of(json);
  } catch (const std::exception& error) {
    return Status::invalid_argument(fmt::format("no job: {}", error.what()));
  }
}

Result<JobRequest> parse_job_request(std::string_view body) {
  if (body.size() > kJobRequestBytesMax) {
    return Status::invalid_argument(
        fmt::format("a job's request has {} bytes; at most {} are allowed", body.size(), kJobRequestBytesMax));
  }
  FOLIOT_RETURN_IF_ERROR(check_json_bounds(body, kJobRequestBounds));
  JobJson json = JobJson::parse(body, nullptr, false);
  if (!json.is_object()) return Status::invalid_argument("the body must be a JSON object, such as {\"kind\": ...}");
  JobRequest request;
  const auto take = [&json](const char* name, std::string& to) {
    const auto found = json.find(name);
    if (found == json.end()) return Status();
    if (!found->is_string()) return Status::invalid_argument(fmt::format("'{}' must be a text", name));
    to = found->get<std::string>();
    json.erase(found);
    return Status();
  };
  FOLIOT_RETURN_IF_ERROR(take("kind", request.kind));
  FOLIOT_RETURN_IF_ERROR(take("webhook", request.webhook));
  if (request.kind.empty()) return Status::invalid_argument("'kind' is missing: \"offline\" or \"register\"");
  request.request = dump(json);
  return request;
}

}  // namespace foliot
