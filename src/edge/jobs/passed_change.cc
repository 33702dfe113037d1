#include "edge/jobs/passed_change.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "foundation/json/bounded_json.h"

namespace foliot {
namespace {

using PassedJson = nlohmann::ordered_json;

constexpr std::array kAnswerCodes{
    StatusCode::kInvalidArgument, StatusCode::kNotFound,    StatusCode::kAlreadyExists, StatusCode::kResourceExhausted,
    StatusCode::kUnimplemented,   StatusCode::kUnavailable, StatusCode::kInternal};

constexpr JsonBounds kPassedBounds{.bytes_max = 4 << 20, .depth_max = 64};

std::string passed_text(const PassedJson& json) {
  return json.dump(-1, ' ', false, PassedJson::error_handler_t::replace);
}

}  // namespace

std::string to_json(const PassedChange& change) {
  PassedJson json = {{"id", change.id}};
  if (change.request) {
    json["kind"] = change.request->kind;
    json["owner"] = change.request->owner;
    json["request"] = change.request->request;
    json["webhook"] = change.request->webhook;
  } else {
    json["cancel"] = change.job;
  }
  return passed_text(json);
}

Result<PassedChange> passed_change_from_json(std::string_view text) {
  FOLIOT_RETURN_IF_ERROR(check_json_bounds(text, kPassedBounds));
  const PassedJson json = PassedJson::parse(text, nullptr, false);
  try {
    PassedChange change{.id = json.at("id")};
    if (json.contains("cancel")) {
      change.job = json.at("cancel");
    } else {
      change.request = JobRequest{.kind = json.at("kind"),
                                  .owner = json.at("owner"),
                                  .request = json.at("request"),
                                  .webhook = json.at("webhook")};
    }
    return change;
  } catch (const std::exception& error) {
    return Status::invalid_argument(fmt::format("no change of jobs: {}", error.what()));
  }
}

std::string answer_json(const Result<Job>& answer) {
  if (answer.ok()) return to_json(*answer);
  return passed_text({{"refused", to_string(answer.status().code())}, {"message", answer.status().message()}});
}

Result<Job> answer_from_json(std::string_view text) {
  if (const Status status = check_json_bounds(text, kPassedBounds); !status.ok()) {
    return Status::internal(status.message());
  }
  const PassedJson json = PassedJson::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("refused")) {
    Result<Job> job = job_from_json(text);
    return job.ok() ? std::move(job) : Status::internal(job.status().message());
  }
  const std::string message = json.contains("message") && json["message"].is_string() ? json["message"] : "";
  for (const StatusCode code : kAnswerCodes) {
    if (json["refused"] == to_string(code)) return Status(code, message);
  }
  return Status::internal(message);
}

}  // namespace foliot
