#include "edge/http/http_jobs.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>

#include "edge/http/http_responses.h"
#include "edge/requests/job_viewer.h"
#include "foundation/access/scope.h"

namespace foliot {
namespace {

// A change of jobs under way. It is not undone when the client goes away.
class HttpJobChange : public HttpPending {
 public:
  void on_client_gone() override {}
};

HttpResponse job_response(const Result<Job>& job, unsigned status) {
  if (!job.ok()) return error_response(job.status());
  HttpResponse response = foliot::json_response(to_json(*job));
  response.status = status;
  if (status == 202) response.headers.emplace_back("Location", "/v2/jobs/" + job->id);
  return response;
}

// The exchange stays until it has its response; a mailbox outlives its server, but delivers nothing after it.
JobService::Done respond_later(HttpExchange& exchange, const std::shared_ptr<Mailbox>& mailbox, unsigned status) {
  exchange.keep(std::make_unique<HttpJobChange>());
  return [mailbox, &exchange, status](Result<Job> job) {
    mailbox->post([&exchange, status, job = std::move(job)] { exchange.respond(job_response(job, status)); });
  };
}

void submit_job(HttpExchange& exchange, const JobViewer& viewer, const Gate& gate, JobService& jobs,
                const std::shared_ptr<Mailbox>& mailbox) {
  Result<JobRequest> request = parse_job_request(exchange.body());
  if (!request.ok()) return exchange.respond(error_response(request.status()));
  if (const std::optional<Scope> scope = scope_of_job_kind(request->kind); scope && !gate.open()) {
    const auto refusal = gate.turn_away(exchange.header("Authorization"), *scope, exchange.peer(),
                                        fmt::format("POST /v2/jobs of the kind {}", request->kind));
    if (refusal) return exchange.respond(error_response(*refusal));
  }
  request->owner = viewer.key();
  jobs.submit(std::move(request).value(), respond_later(exchange, mailbox, 202));
}

HttpResponse list_of_jobs(const JobViewer& viewer, const JobService& jobs) {
  std::string json = "{\"jobs\":[";
  for (const Job& job : jobs.list()) {
    if (!viewer.sees(job)) continue;
    if (json.back() != '[') json += ',';
    json += to_json(job);
  }
  return foliot::json_response(json + "]}");
}

void serve_one_job(HttpExchange& exchange, const std::vector<std::string>& path, const JobViewer& viewer,
                   JobService& jobs, const std::shared_ptr<Mailbox>& mailbox) {
  const std::string& id = path[2];
  const bool cancels = path.size() == 4;
  if (!method_is(exchange, cancels ? "POST" : "GET")) return;
  const Result<Job> job = viewer.find(jobs, id);
  if (!job.ok() || !cancels) return exchange.respond(job_response(job, 200));
  if (!exchange.body().empty() && exchange.body() != "{}") {
    return exchange.respond(
        error_response(Status::invalid_argument("the body of a cancellation must be empty, or {}")));
  }
  jobs.cancel(id, respond_later(exchange, mailbox, 200));
}

}  // namespace

bool is_jobs_path(const std::vector<std::string>& path) {
  return path.size() >= 2 && path[0] == "v2" && path[1] == "jobs";
}

bool serve_jobs_path(HttpExchange& exchange, const std::vector<std::string>& path, const ProtocolParts& parts,
                     const std::shared_ptr<Mailbox>& mailbox) {
  if (path.size() > 4 || (path.size() == 4 && path[3] != "cancel")) return false;
  const auto refuse = [&](const Status& status) {
    exchange.respond(error_response(status));
    return true;
  };
  if (const Status status = check_served(parts.jobs); !status.ok()) return refuse(status);
  if (exchange.target().find('?') != std::string_view::npos) {
    return refuse(Status::invalid_argument("paths of jobs take no query ('?')"));
  }
  const JobViewer viewer(parts.gate, exchange.header("Authorization"));
  if (path.size() > 2) {
    serve_one_job(exchange, path, viewer, *parts.jobs, mailbox);
  } else if (exchange.method() == "POST") {
    submit_job(exchange, viewer, parts.gate, *parts.jobs, mailbox);
  } else if (method_is(exchange, "GET")) {
    exchange.respond(list_of_jobs(viewer, *parts.jobs));
  }
  return true;
}

}  // namespace foliot
