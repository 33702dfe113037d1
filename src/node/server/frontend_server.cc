#include "node/server/frontend_server.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "answer/personal/service/personal_metrics.h"
#include "answer/personal/service/personal_models.h"
#include "cluster/sessions/controller_addresses.h"
#include "cluster/sessions/frontend_link.h"
#include "cluster/transport/link_loop.h"
#include "edge/requests/server_info.h"
#include "foundation/core/catalog.h"
#include "foundation/platform/clock.h"
#include "foundation/platform/thread.h"
#include "models/training/retrainer.h"
#include "node/files/definition_files.h"
#include "node/server/application_folder.h"
#include "node/server/inference_stack.h"
#include "node/server/job_metrics.h"
#include "node/server/label_folder.h"
#include "node/server/personal_repository.h"
#include "node/server/shared_personal.h"
#include "node/server/shared_retraining.h"

namespace foliot {
namespace {

// Memory for so many of the largest frames that are partly received.
constexpr uint64_t kFrontendFramesAtOnce = 16;

// Workers have the repositories.
class NoRepository : public ModelRepository {
 public:
  void load(const std::string& /*name*/, std::function<void(Status)> done) override { done(refusal()); }
  void unload(const std::string& /*name*/, std::function<void(Status)> done) override { done(refusal()); }

 private:
  static Status refusal() {
    return Status::unimplemented("a front end has no repository: its models are those of the workers");
  }
};

LinkLoopOptions link_loop_options(const FrontendServerOptions& options, std::shared_ptr<const TlsContext> tls) {
  return {.connection = {.role = Role::kClient,
                         .frame_bytes_max = options.frame_bytes_max,
                         .unsent_bytes_max = 4 * options.frame_bytes_max},
          .received_bytes_max = kFrontendFramesAtOnce * options.frame_bytes_max,
          .tls = std::move(tls)};
}

std::string home_name(const FrontendServerOptions& options) {
  if (!options.name.empty()) return options.name;
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {"frontend"};
  return host.data() + options.home_listen.substr(options.home_listen.rfind(':'));
}

// The users of personal models that this front end keeps.
struct KeptUsers {
  KeptUsers(const FrontendServerOptions& options, Catalog& catalog, ModelRepository& others, Logger& log)
      : models({.threads = options.personal_threads,
                .seed = static_cast<uint64_t>((monotonic_now() - TimePoint()).nanoseconds()),
                .is_shared = true,
                .now = monotonic_now,
                .on_failure = [&log](const std::string& line) { log.write(Severity::kWarning, line); }},
               catalog),
        links(home_name(options), [&log](Severity level, const std::string& line) { log.write(level, line); }),
        shared(models, links, home_name(options), monotonic_now),
        other_frontends(links, shared.shards()),
        retrainer({.now = monotonic_now,
                   .wall = wall_now,
                   .log =
                       [&log](bool is_failure, const std::string& line) {
                         log.write(is_failure ? Severity::kWarning : Severity::kInfo, line);
                       },
                   .peers = &other_frontends},
                  models),
        repository(others, models) {}

  Status open(const FrontendServerOptions& options) {
    FOLIOT_ASSIGN_OR_RETURN(std::vector<PersonalSpec> specs, scan_personal(options.personal));
    FOLIOT_RETURN_IF_ERROR(models.open(
        std::move(specs), options.observations.empty() ? options.personal / ".observations" : options.observations));
    shared.open();
    retrainer.open();
    return Status();
  }

  PersonalModels models;
  HomeLinks links;
  SharedPersonal shared;
  SharedRetraining other_frontends;
  Retrainer retrainer;
  PersonalMetrics metrics{models};
  PersonalRepository repository;
};

}  // namespace

class FrontendServer::Parts {
 public:
  Parts(const FrontendServerOptions& options, const FrontendOptions& frontend,
        std::shared_ptr<const TlsContext> link_tls, std::unique_ptr<KeptJobs> jobs, Logger& log)
      : jobs_(std::move(jobs)),
        users_(options.personal.empty() ? nullptr : std::make_unique<KeptUsers>(options, catalog_, repository_, log)),
        link_(catalog_, frontend.requests_in_flight_max,
              {.log = [&log](Severity level, const std::string& line) { log.write(level, line); },
               .on_ready = options.on_ready}),
        loop_(link_loop_options(options, std::move(link_tls)), link_),
        inference_(frontend, catalog_, link_, models(), monotonic_now, users_ ? &users_->shared : nullptr,
                   jobs_ ? &jobs_->service() : nullptr) {
    inference_.log_rollbacks([&log](const std::string& line) { log.write(Severity::kError, line); });
    if (jobs_ != nullptr && jobs_->is_shared()) {
      job_metrics_.emplace(*jobs_);
      inference_.frontend().add_metrics(*job_metrics_);
    }
  }

  Status start(const FrontendServerOptions& options, Logger& log);
  Status serve_applications(const FrontendServerOptions& options, Logger& log);
  void stop(Duration drain_timeout);
  Frontend& frontend() { return inference_.frontend(); }
  uint64_t in_flight() const { return inference_.in_flight(); }

 private:
  ModelRepository& models() {
    if (users_ != nullptr) return users_->repository;
    return repository_;
  }
  Status keep_users(const FrontendServerOptions& options);

  // In the order in which they are made; each uses those before it.
  Catalog catalog_;
  NoRepository repository_;
  std::unique_ptr<KeptJobs> jobs_;         // null: none are kept
  std::optional<JobMetrics> job_metrics_;  // nullopt: none are shared
  std::unique_ptr<KeptUsers> users_;       // null: there are no personal models
  std::unique_ptr<Tracing> tracing_;       // null: nothing is traced
  FrontendLink link_;
  LinkLoop loop_;
  InferenceStack inference_;
  std::unique_ptr<ApplicationFolder> applications_;  // null: there are none
  std::unique_ptr<LabelFolder> labels_;              // likewise
  std::unique_ptr<FileWatch> definition_watch_;      // null: nothing is watched
  std::unique_ptr<FileWatch> watch_;
  Thread thread_;
};

Status FrontendServer::Parts::start(const FrontendServerOptions& options, Logger& log) {
  inference_.describe(info_metrics("frontend"));
  if (options.tracing.on()) {
    FOLIOT_ASSIGN_OR_RETURN(tracing_, Tracing::start(options.tracing));
    inference_.trace(*tracing_);
  }
  link_.start(inference_.origin(), loop_);
  if (users_ != nullptr) FOLIOT_RETURN_IF_ERROR(keep_users(options));
  FOLIOT_RETURN_IF_ERROR(keep_controllers(loop_, options.controller));
  if (!options.applications.empty()) FOLIOT_RETURN_IF_ERROR(serve_applications(options, log));
  FOLIOT_RETURN_IF_ERROR(inference_.start());
  std::vector<WatchedFiles> watched = reloads(options.access, frontend(), log);
  std::ranges::move(link_tls_reloads(options.link_tls, loop_, log), std::back_inserter(watched));
  watch_ = std::make_unique<FileWatch>(std::move(watched));
  FOLIOT_RETURN_IF_ERROR(watch_->start(kReloadInterval));
  FOLIOT_ASSIGN_OR_RETURN(thread_, Thread::start({.name = "links"}, [this] { loop_.run(); }));
  if (users_ != nullptr) FOLIOT_RETURN_IF_ERROR(users_->retrainer.start());
  return jobs_ == nullptr ? Status() : jobs_->start(catalog_, inference_.inference(), frontend());
}

Status FrontendServer::Parts::serve_applications(const FrontendServerOptions& options, Logger& log) {
  applications_ = std::make_unique<ApplicationFolder>(
      ApplicationFolder::Options{options.applications,
                                 options.state,
                                 nullptr,
                                 {options.container_command, options.python_package, options.containers}},
      inference_.applications(), catalog_,
      ApplicationFolder::Reports{options.on_failure, options.on_failure,
                                 [&log](const std::string& line) { log.write(Severity::kInfo, line); }});
  // It knows the files as they are read by start().
  labels_ = std::make_unique<LabelFolder>(options.applications, inference_.versions());
  if (options.watch_interval) {
    definition_watch_ = std::make_unique<FileWatch>(std::vector<WatchedFiles>{
        applications_->definitions(),
        definition_files(
            options.applications, "model.toml", [this] { return labels_->read(); }, options.on_failure)});
  }
  FOLIOT_RETURN_IF_ERROR(applications_->start());
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<std::string> notes, labels_->read());
  for (const std::string& note : notes) options.on_failure(note);
  return definition_watch_ == nullptr ? Status() : definition_watch_->start(*options.watch_interval);
}

Status FrontendServer::Parts::keep_users(const FrontendServerOptions& options) {
  FOLIOT_RETURN_IF_ERROR(users_->open(options));
  FOLIOT_ASSIGN_OR_RETURN(const uint16_t port, loop_.listen(options.home_listen));
  const std::string host = options.home_listen.substr(0, options.home_listen.rfind(':'));
  users_->links.start(users_->shared.shards(), loop_, fmt::format("{}:{}", host, port));
  link_.use(users_->links);
  frontend().add_metrics(users_->metrics);
  frontend().add_metrics(users_->retrainer);
  return options.watch_interval ? users_->models.watch(*options.watch_interval) : Status();
}

void FrontendServer::Parts::stop(Duration drain_timeout) {
  if (definition_watch_ != nullptr) definition_watch_->stop();
  if (jobs_ != nullptr) jobs_->stop();
  if (users_ != nullptr) users_->retrainer.stop();
  inference_.drain();
  if (users_ != nullptr) users_->shared.drain();
  inference_.wait_until_answered(drain_timeout);
  if (users_ != nullptr) users_->shared.wait_until_answered(drain_timeout);
  loop_.stop();  // what is still in flight is refused
  thread_.join();
  link_.refuse_waiting(monotonic_now());
  if (users_ != nullptr) users_->shared.stop();
  frontend().stop();
  if (applications_ != nullptr) applications_->stop();
  if (users_ != nullptr) users_->models.stop();
}

FrontendServer::FrontendServer(FrontendServerOptions options, Logger& log) : options_(std::move(options)), log_(log) {}
FrontendServer::~FrontendServer() { stop(); }

Status FrontendServer::start() {
  FrontendOptions frontend = options_.frontend;
  frontend.traces = {.on = options_.tracing.on(), .share = options_.tracing.share};
  FOLIOT_RETURN_IF_ERROR(open_access(options_.access, log_, frontend));
  FOLIOT_ASSIGN_OR_RETURN(auto link_tls, open_link_tls(options_.link_tls));
  std::unique_ptr<KeptJobs> jobs;
  if (!options_.jobs.folder.empty()) {
    FOLIOT_ASSIGN_OR_RETURN(jobs,
                            KeptJobs::open(options_.jobs, nullptr, options_.on_failure,
                                           [this](const std::string& line) { log_.write(Severity::kInfo, line); }));
  }
  auto parts = std::make_unique<Parts>(options_, frontend, std::move(link_tls), std::move(jobs), log_);
  FOLIOT_RETURN_IF_ERROR(parts->start(options_, log_));
  parts_ = std::move(parts);
  return Status();
}

void FrontendServer::stop() {
  if (parts_ == nullptr) return;
  parts_->stop(options_.drain_timeout);
  parts_.reset();
}

Frontend& FrontendServer::frontend() { return parts_->frontend(); }

uint64_t FrontendServer::in_flight() const { return parts_->in_flight(); }

std::string FrontendServer::ports() const {
  const Frontend& frontend = parts_->frontend();
  return fmt::format("http {}:{}, grpc :{}, metrics :{}/metrics", options_.frontend.address, frontend.http_port(),
                     frontend.grpc_port(), frontend.metrics_port());
}

}  // namespace foliot
