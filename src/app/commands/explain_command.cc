#include "app/commands/explain_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/escaped_text.h"
#include "foundation/core/call_label.h"
#include "observe/request_log/explanation.h"
#include "observe/request_log/log.h"

namespace foliot {
namespace {

struct ExplainFlags {
  std::optional<uint64_t> request;
  std::filesystem::path log;
  std::string model;
  std::optional<std::string> client_id;
  bool refused = false;
  bool slowest = false;
  size_t limit = 20;
};

std::string_view status_of(const RequestRecord& request) {
  return request.served() ? "served" : to_string(request.refusal);
}

// `id` is the client's id, or its escaped form in a list.
bool is_called(const RequestRecord& request, const std::string& id) {
  if (request.label == nullptr || request.label->bytes == 0) return false;
  const CallLabel wanted = call_label(id);
  const bool equal = request.label->text == wanted.text && request.label->bytes == wanted.bytes;
  return equal || escaped(request.label->text) == id;
}

// In the order of their arrival; with --slowest, those that took longest first.
std::vector<const RequestRecord*> select(const Log& log, const ExplainFlags& flags) {
  std::vector<const RequestRecord*> selected;
  for (const RequestRecord& request : log.requests()) {
    if (!flags.model.empty() && request.model != flags.model) continue;
    if (flags.refused && request.served()) continue;
    if (flags.client_id && !is_called(request, *flags.client_id)) continue;
    selected.push_back(&request);
  }
  std::stable_sort(selected.begin(), selected.end(), [&](const RequestRecord* a, const RequestRecord* b) {
    return flags.slowest ? a->latency() > b->latency() : a->arrival < b->arrival;
  });
  return selected;
}

void list(const std::vector<const RequestRecord*>& requests, const ExplainFlags& flags) {
  const size_t shown = std::min(requests.size(), flags.limit);
  size_t width = 5;
  for (size_t i = 0; i < shown; ++i) width = std::max(width, requests[i]->model.size());
  const bool labelled =
      std::any_of(requests.begin(), requests.begin() + static_cast<std::ptrdiff_t>(shown),
                  [](const RequestRecord* request) { return request->label != nullptr && request->label->bytes > 0; });
  fmt::print("{:>20}  {:>12}  {:{}}  {:<11}  {:>10}  {:>6}  {:>5}  {:>4}{}\n", "REQUEST", "ARRIVAL s", "MODEL", width,
             "STATUS", "TOOK ms", "QUEUED", "BATCH", "COLD", labelled ? "  CLIENT ID" : "");
  for (size_t i = 0; i < shown; ++i) {
    const RequestRecord& r = *requests[i];
    fmt::print("{:>20}  {:>12.6f}  {:{}}  {:<11}  {:>10.3f}  {:>6}  {:>5}  {:>4}{}\n", r.id.value(),
               (r.arrival - TimePoint()).to_seconds(), r.model, width, status_of(r), r.latency().to_milliseconds(),
               r.queue_length, r.batch_size > 0 ? std::to_string(r.batch_size) : "-", r.cold_start ? "cold" : "-",
               r.label != nullptr ? "  " + escaped(r.label->text) : "");
  }
  fmt::print("{} of {} requests; `foliot explain REQUEST --log {}` explains one.\n", shown, requests.size(),
             flags.log.string());
}

Status explain_request(const Log& log, const ExplainFlags& flags) {
  const RequestRecord* request = log.request(RequestId(*flags.request));
  if (request == nullptr) {
    return Status::not_found(fmt::format("the log {} has no request {}; without a number, its requests are listed",
                                         flags.log.string(), *flags.request));
  }
  fmt::print("{}", explain(log, *request));
  return Status();
}

Status nothing_found(const Log& log, const ExplainFlags& flags) {
  const std::string folder = flags.log.string();
  if (log.requests().empty() && !log.actions().empty()) {
    return Status::not_found(
        fmt::format("the log {} has actions and no requests, as a worker's has: ask that of its controller", folder));
  }
  const std::string id = flags.client_id ? fmt::format(" that their client calls {}", in_quotes(*flags.client_id)) : "";
  return Status::not_found(
      fmt::format("the log {} has no such requests{} among its {}", folder, id, log.requests().size()));
}

Status run(const ExplainFlags& flags) {
  FOLIOT_ASSIGN_OR_RETURN(const Log log, Log::read(flags.log));
  for (const std::string& gap : log.gaps()) fmt::print(stderr, "note: {}\n", gap);
  if (flags.request) return explain_request(log, flags);
  const std::vector<const RequestRecord*> requests = select(log, flags);
  if (requests.empty()) return nothing_found(log, flags);
  if (flags.slowest || (flags.client_id && requests.size() == 1)) {
    fmt::print("{}", explain(log, *requests.front()));
  } else {
    list(requests, flags);
  }
  return Status();
}

}  // namespace

void add_explain_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("explain", "Explain what happened to a request, and why");
  command->footer(
      "Reads what `foliot serve --log FOLDER` or `foliot controller --log FOLDER` wrote, of one that still runs too.\n"
      "Answers and refusals carry the number: the HTTP header Foliot-Request, gRPC's trailing metadata "
      "foliot-request,\n"
      "the response's parameter foliot_request, and the message of a refusal.\n\n"
      "  foliot explain --log FOLDER --refused             list those that were refused\n"
      "  foliot explain 4294967296 --log FOLDER            explain one\n"
      "  foliot explain --log FOLDER --id order-17         explain one by the id that its client gave the call\n"
      "  foliot explain --log FOLDER --model m --slowest   explain the slowest of a model");
  const auto flags = std::make_shared<ExplainFlags>();
  auto* const request = command->add_option("request", flags->request, "its number in the log; without it, a list");
  command->add_option("--log", flags->log, "folder that holds the log")->type_name("FOLDER")->required();
  command
      ->add_option("--id", flags->client_id,
                   "only requests whose client gave this id; if it is one, explain it: the rows of a call share it")
      ->type_name("CLIENT_ID")
      ->excludes(request);
  command->add_option("--model", flags->model, "only requests of this model")->type_name("NAME")->excludes(request);
  command->add_flag("--refused", flags->refused, "only requests without an answer in time")->excludes(request);
  command->add_flag("--slowest", flags->slowest, "explain the one that took longest")->excludes(request);
  command->add_option("--limit", flags->limit, "length of the list")->capture_default_str();
  command->callback([flags, &exit_code] {
    const Status status = run(*flags);
    if (!status.ok()) fmt::print(stderr, "foliot explain: {}\n", status.message());
    exit_code = status.ok() ? 0 : 1;
  });
}

}  // namespace foliot
