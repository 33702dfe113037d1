#include "edge/grpc/grpc_jobs.h"

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "edge/jobs/job.h"
#include "edge/jobs/job_service.h"
#include "edge/requests/job_viewer.h"

namespace foliot {
namespace {

// Calls of one method that can be accepted at the same instant.
constexpr int kJobCallsAcceptedAtOnce = 4;

int64_t milliseconds_since_1970(TimePoint instant) { return (instant - TimePoint()).nanoseconds() / 1'000'000; }

void encode_job(const Job& job, jobs::Job& to) {
  to.set_id(job.id);
  to.set_number(job.number);
  to.set_kind(job.kind);
  to.set_owner(job.owner);
  to.set_state(std::string(to_string(job.state)));
  to.set_done(job.done);
  to.set_total(job.total);
  for (const auto& [variant, rows] : job.variants) (*to.mutable_variants())[variant] = rows;
  for (const auto& [model, accuracy] : job.accuracies) (*to.mutable_accuracies())[model] = accuracy;
  to.set_bytes(job.bytes);
  to.set_waiting(job.waiting);
  to.set_error(job.error);
  to.set_cancel_requested(job.cancel_requested);
  to.set_created_ms(milliseconds_since_1970(job.created));
  to.set_started_ms(milliseconds_since_1970(job.started));
  to.set_ended_ms(milliseconds_since_1970(job.ended));
  to.set_request(job.request);
  if (!job.webhook) return;
  to.mutable_webhook()->set_url(job.webhook->url);
  to.mutable_webhook()->set_state(std::string(to_string(job.webhook->state)));
  to.mutable_webhook()->set_tries(job.webhook->tries);
  to.mutable_webhook()->set_error(job.webhook->error);
}

// A message whose members are those of the JSON that HTTP takes, of which it leaves out what is empty.
Result<std::string> request_json(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(message, &json, options);
  if (!status.ok()) return Status::invalid_argument(std::string(status.message()));
  if (json.size() <= kJobRequestBytesMax) return json;
  return Status::invalid_argument(
      fmt::format("a job's request has {} bytes; at most {} are allowed", json.size(), kJobRequestBytesMax));
}

// What a method reads and does. `done` may be called at once; the answer comes by mail.
struct SubmitMethod {
  using Request = jobs::SubmitRequest;
  using Response = jobs::Job;
  static constexpr const char* kName = "Submit";

  static Result<JobRequest> read(const Request& request) {
    JobRequest job{.kind = "offline", .owner = {}, .request = {}, .webhook = request.webhook()};
    switch (request.job_case()) {
      case Request::kOffline: {
        FOLIOT_ASSIGN_OR_RETURN(job.request, request_json(request.offline()));
        return job;
      }
      case Request::kRegistration: {
        job.kind = kRegistrationKind;
        FOLIOT_ASSIGN_OR_RETURN(job.request, request_json(request.registration()));
        return job;
      }
      case Request::JOB_NOT_SET: break;
    }
    return Status::invalid_argument("'job' is missing: 'offline' or 'registration'");
  }
  static std::optional<Scope> scope(const Request& request) {
    return request.has_registration() ? scope_of_job_kind(kRegistrationKind) : std::nullopt;
  }
  static Status start(const Request& request, const JobViewer& viewer, JobService& service, JobService::Done done) {
    FOLIOT_ASSIGN_OR_RETURN(JobRequest job, read(request));
    job.owner = viewer.key();
    service.submit(std::move(job), std::move(done));
    return Status();
  }
};

struct ShowMethod {
  using Request = jobs::ShowRequest;
  using Response = jobs::Job;
  static constexpr const char* kName = "Show";

  static std::optional<Scope> scope(const Request&) { return std::nullopt; }
  static Status start(const Request& request, const JobViewer& viewer, JobService& service,
                      const JobService::Done& done) {
    done(viewer.find(service, request.id()));
    return Status();
  }
};

struct CancelMethod {
  using Request = jobs::CancelRequest;
  using Response = jobs::Job;
  static constexpr const char* kName = "Cancel";

  static std::optional<Scope> scope(const Request&) { return std::nullopt; }
  static Status start(const Request& request, const JobViewer& viewer, JobService& service, JobService::Done done) {
    FOLIOT_RETURN_IF_ERROR(viewer.find(service, request.id()).status());
    service.cancel(request.id(), std::move(done));
    return Status();
  }
};

// Of one job.
template <typename Method>
class GrpcJobCall final : public GrpcCall {
 public:
  GrpcJobCall(GrpcCalls& calls, JobsProtocol& protocol) : GrpcCall(calls), protocol_(protocol) {
    protocol_.accept(Method::kName, &context_, &sent_, &writer_, calls.queue(), accepted_.pointer());
  }

 private:
  void on_accepted(bool ok) {
    if (!ok || calls_.stopping()) return calls_.remove(*this);
    calls_.add<GrpcJobCall>(protocol_);
    const std::string& what = Method::Request::descriptor()->name();
    if (const auto refusal = turned_away(Scope::kJobs, what)) return finish(*refusal);
    if (!sent_.status.ok()) return finish(to_grpc(sent_.status));
    if (const auto refusal = turned_away(Method::scope(sent_.message), what)) return finish(*refusal);
    JobService* const service = calls_.parts().jobs;
    if (const Status status = check_served(service); !status.ok()) return finish(to_grpc(status));
    // The call stays until it is finished; a mailbox delivers nothing after the server.
    const Status started = Method::start(sent_.message, JobViewer(calls_.parts().gate, authorization()), *service,
                                         [mailbox = calls_.mailbox(), this](Result<Job> job) {
                                           mailbox->post([this, job = std::move(job)] { on_result(job); });
                                         });
    if (!started.ok()) finish(to_grpc(started));
  }
  void on_result(const Result<Job>& job) {
    if (!job.ok()) return finish(to_grpc(job.status()));
    encode_job(*job, response_);
    finish(grpc::Status::OK);
  }
  void finish(const grpc::Status& status) {
    if (calls_.stopping()) return;
    const grpc::Status ending = within_budget(status, response_);
    writer_.Finish(response_, ending, finished_.pointer());
  }
  void on_finished(bool /*ok*/) { calls_.remove(*this); }

  JobsProtocol& protocol_;
  GrpcMessage<typename Method::Request> sent_{calls_.message_bytes_max()};
  typename Method::Response response_;
  grpc::ServerAsyncResponseWriter<typename Method::Response> writer_{&context_};
  GrpcTag<GrpcJobCall> accepted_{*this, &GrpcJobCall::on_accepted};
  GrpcTag<GrpcJobCall> finished_{*this, &GrpcJobCall::on_finished};
};

class GrpcJobListCall final : public GrpcCall {
 public:
  GrpcJobListCall(GrpcCalls& calls, JobsProtocol& protocol) : GrpcCall(calls), protocol_(protocol) {
    protocol_.accept("List", &context_, &sent_, &writer_, calls.queue(), accepted_.pointer());
  }

 private:
  void on_accepted(bool ok) {
    if (!ok || calls_.stopping()) return calls_.remove(*this);
    calls_.add<GrpcJobListCall>(protocol_);
    if (const auto refusal = turned_away(Scope::kJobs, "ListRequest")) return finish(*refusal);
    if (!sent_.status.ok()) return finish(to_grpc(sent_.status));
    const JobService* const service = calls_.parts().jobs;
    if (const Status status = check_served(service); !status.ok()) return finish(to_grpc(status));
    const JobViewer viewer(calls_.parts().gate, authorization());
    for (const Job& job : service->list()) {
      if (viewer.sees(job)) encode_job(job, *response_.add_jobs());
    }
    finish(grpc::Status::OK);
  }
  void finish(const grpc::Status& status) {
    const grpc::Status ending = within_budget(status, response_);
    writer_.Finish(response_, ending, finished_.pointer());
  }
  void on_finished(bool /*ok*/) { calls_.remove(*this); }

  JobsProtocol& protocol_;
  GrpcMessage<jobs::ListRequest> sent_{calls_.message_bytes_max()};
  jobs::ListResponse response_;
  grpc::ServerAsyncResponseWriter<jobs::ListResponse> writer_{&context_};
  GrpcTag<GrpcJobListCall> accepted_{*this, &GrpcJobListCall::on_accepted};
  GrpcTag<GrpcJobListCall> finished_{*this, &GrpcJobListCall::on_finished};
};

}  // namespace

void serve_jobs(JobsProtocol& protocol, GrpcCalls& calls) {
  for (int i = 0; i < kJobCallsAcceptedAtOnce; ++i) {
    calls.add<GrpcJobCall<SubmitMethod>>(protocol);
    calls.add<GrpcJobCall<ShowMethod>>(protocol);
    calls.add<GrpcJobCall<CancelMethod>>(protocol);
    calls.add<GrpcJobListCall>(protocol);
  }
}

}  // namespace foliot
