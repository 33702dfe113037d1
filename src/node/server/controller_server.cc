#include "node/server/controller_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <iterator>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "cluster/election/stores/leader_store_place.h"
#include "cluster/sessions/controller_service.h"
#include "cluster/transport/link_loop.h"
#include "control/controller/cluster_view_observer.h"
#include "control/policies/registry.h"
#include "edge/requests/server_info.h"
#include "foundation/base/units.h"
#include "foundation/platform/clock.h"
#include "foundation/platform/thread.h"
#include "node/files/target_file.h"
#include "node/server/start_stamp.h"
#include "node/tuning/pipeline_tuning.h"
#include "node/tuning/task_scaling.h"
#include "node/tuning/worker_scaling.h"
#include "observe/metrics/controller_metrics.h"
#include "observe/metrics/cost_metrics.h"
#include "observe/metrics/task_metrics.h"
#include "observe/metrics/tuning_metrics.h"
#include "observe/monitor/feed.h"
#include "observe/monitor/monitor.h"

namespace foliot {
namespace {

// Before executors (node/threads/executor_thread.h), where the process may: every request waits
// for this one thread.
constexpr int kNice = -15;
// Longer than two renewals.
constexpr Duration kLeaderTimeoutMin = Duration::milliseconds(600);

}  // namespace

class ControllerServer::Parts {
 public:
  Parts(const ControllerServerOptions& options, const RegisteredPolicy& policy,
        std::shared_ptr<const TlsContext> link_tls, Logger& log)
      : task_metrics_({options.controller.tasks.hourly_dollars, options.controller.tasks.default_hourly_dollars}),
        cost_metrics_({options.controller.tasks.hourly_dollars, options.controller.tasks.default_hourly_dollars}),
        service_(options.controller, policy.make, monotonic_now,
                 [&log](Severity level, const std::string& line) { log.write(level, line); }),
        loop_({.connection = {.role = Role::kController}, .tls = std::move(link_tls)}, service_) {
    service_.set_processor_time(thread_processor_time);
    service_.set_traffic(loop_.traffic());
    service_.set_drain_watch([this] { drained_.set_value(); });
  }

  // `election`: null: there is none, and it leads at once.
  Status start(const ControllerServerOptions& options, ElectionThread* election, Logger& log);
  void lead(uint64_t epoch, Logger& log);
  // Until all clients have left for another controller. False: they have not within `timeout`.
  bool hand_over(Duration timeout);
  void stop(Duration drain_timeout);
  // Without draining: nothing that it did counts.
  void abandon();
  uint16_t port() const { return port_; }
  std::string observation() const { return telemetry_->description(); }

 private:
  void observe(const TelemetryOptions& options);
  void end();
  Status start_scaling();
  Status open_task_scaling(const ControllerServerOptions& options, Logger& log);
  Status open_pipeline_tuning(const ControllerServerOptions& options, Logger& log);
  Status open_worker_scaling(const ControllerServerOptions& options, Logger& log);
  Result<std::vector<WatchedFiles>> watched_files(const ControllerServerOptions& options, Logger& log);

  // In the order in which they are made; each uses those before it.
  ControllerMetrics metrics_;
  TaskMetrics task_metrics_;
  CostMetrics cost_metrics_;
  TuningMetrics tuning_metrics_;
  Monitor monitor_;
  MonitorFeed monitor_feed_{monitor_, start_stamp(), monotonic_now(), monotonic_now};
  std::unique_ptr<Telemetry> telemetry_;
  std::promise<void> drained_;
  std::future<void> drained_future_ = drained_.get_future();
  ControllerService service_;
  LinkLoop loop_;
  std::unique_ptr<TaskScaling> task_scaling_;           // null: variants are loaded on demand alone
  std::unique_ptr<ClusterViewObserver> scaling_views_;  // likewise
  std::unique_ptr<PipelineTuning> pipeline_tuning_;     // null: no pipeline is tuned
  std::unique_ptr<WorkerScaling> worker_scaling_;       // null: others start workers
  std::unique_ptr<FileWatch> watch_;
  Thread thread_;
  uint16_t port_ = 0;
};

// Metrics are counted only where they can be read.
void ControllerServer::Parts::observe(const TelemetryOptions& options) {
  Controller& controller = service_.controller();
  if (options.metrics()) {
    controller.add_observer(metrics_);
    controller.add_observer(task_metrics_);
    controller.add_observer(cost_metrics_);
    controller.add_observer(monitor_);
    service_.set_turn_watch([this, &controller](Duration decision) {
      metrics_.on_turn(decision, controller.queued_by_class(), controller.actions_outstanding());
    });
  }
  if (Recorder* const recorder = telemetry_->recorder(); recorder != nullptr) {
    controller.add_observer(*recorder);
    service_.add_label_sink(*recorder);
  }
  if (Tracing* const tracing = telemetry_->tracing(); tracing != nullptr) {
    controller.add_observer(tracing->requests());
    service_.add_label_sink(tracing->requests());
  }
}

// Views are made while there are tasks.
Status ControllerServer::Parts::open_task_scaling(const ControllerServerOptions& options, Logger& log) {
  if (options.task_scaling.empty()) return Status();
  FOLIOT_ASSIGN_OR_RETURN(std::unique_ptr<Solver> solver, make_task_solver(options.task_scaling));
  task_scaling_ = std::make_unique<TaskScaling>(
      std::move(solver), options.controller.tasks,
      [this](Targets targets) {
        service_.scale(Autoscaler::kTasks, std::move(targets));
        loop_.wake();
      },
      [&log](const std::string& line) { log.write(Severity::kWarning, line); });
  Controller& controller = service_.controller();
  scaling_views_ = std::make_unique<ClusterViewObserver>(controller.cluster(), *task_scaling_, monotonic_now(),
                                                         TaskScaling::kInterval);
  controller.add_observer(*scaling_views_);
  controller.add_observer(*task_scaling_);
  return Status();
}

// Observes; its thread is to be started.
Status ControllerServer::Parts::open_pipeline_tuning(const ControllerServerOptions& options, Logger& log) {
  if (options.pipeline_tuner.empty() || options.plans.empty()) return Status();
  FOLIOT_ASSIGN_OR_RETURN(const TunerMethod tuner, find_pipeline_tuner(options.pipeline_tuner));
  pipeline_tuning_ = std::make_unique<PipelineTuning>(
      PipelineTuningOptions{options.plans, tuner}, tuning_metrics_,
      [this](Targets targets) {
        service_.scale(Autoscaler::kPipelines, std::move(targets));
        loop_.wake();
      },
      [&log](const std::string& line, bool trouble) {
        log.write(trouble ? Severity::kWarning : Severity::kInfo, line);
      });
  service_.controller().add_observer(*pipeline_tuning_);
  return pipeline_tuning_->open();
}

// After the port is known, by which workers find this controller.
Status ControllerServer::Parts::open_worker_scaling(const ControllerServerOptions& options, Logger& log) {
  if (!options.worker_pools) return Status();
  WorkerPoolFile pools = *options.worker_pools;
  add_worker_flags(pools.processes, options.listen, port_);
  Controller& controller = service_.controller();
  worker_scaling_ = std::make_unique<WorkerScaling>(
      std::move(pools), controller.cluster(), [this](DeviceId device) { return service_.owner(device); },
      [this] {
        return pipeline_tuning_ == nullptr ? std::map<std::string, uint32_t>() : pipeline_tuning_->devices_wanted();
      },
      [&log](const std::string& line, bool trouble) {
        log.write(trouble ? Severity::kWarning : Severity::kInfo, line);
      });
  controller.add_observer(worker_scaling_->observer());
  return Status();
}

// One that stands by has no workers, and would start some.
Status ControllerServer::Parts::start_scaling() {
  if (task_scaling_ != nullptr) FOLIOT_RETURN_IF_ERROR(task_scaling_->start());
  if (pipeline_tuning_ != nullptr) FOLIOT_RETURN_IF_ERROR(pipeline_tuning_->start());
  return worker_scaling_ == nullptr ? Status() : worker_scaling_->start();
}

void ControllerServer::Parts::lead(uint64_t epoch, Logger& log) {
  service_.lead(epoch);
  loop_.wake();
  if (const Status status = start_scaling(); !status.ok()) log.write(Severity::kError, status.message());
}

Result<std::vector<WatchedFiles>> ControllerServer::Parts::watched_files(const ControllerServerOptions& options,
                                                                         Logger& log) {
  std::vector<WatchedFiles> watched = telemetry_->watched(log);
  std::ranges::move(link_tls_reloads(options.tls, loop_, log), std::back_inserter(watched));
  if (options.targets.empty()) return watched;
  FOLIOT_ASSIGN_OR_RETURN(WatchedFiles targets,
                          use_target_file(
                              options.targets,
                              [this](std::shared_ptr<const NamedTargets> named) {
                                service_.set_targets(std::move(named));
                                loop_.wake();
                              },
                              [&log](const std::string& line) { log.write(Severity::kWarning, line); }));
  watched.push_back(std::move(targets));
  return watched;
}

Status ControllerServer::Parts::start(const ControllerServerOptions& options, ElectionThread* election, Logger& log) {
  if (election != nullptr) {
    service_.stand_by();
    service_.set_election_watch([election](uint64_t epoch) { election->on_epoch_seen(epoch); },
                                [election](size_t workers) { election->on_workers(workers); });
  }
  FOLIOT_RETURN_IF_ERROR(open_pipeline_tuning(options, log));
  monitor_feed_.use_log(options.observation.log.folder);
  FOLIOT_ASSIGN_OR_RETURN(telemetry_, Telemetry::open(
                                          options.observation, options.listen,
                                          [this, info = info_metrics("controller", options.policy)] {
                                            return metrics_.text() + task_metrics_.text() + cost_metrics_.text() +
                                                   tuning_metrics_.text() + info;
                                          },
                                          log, &monitor_feed_));
  observe(options.observation);
  // Before anything is started: a file may be wrong.
  FOLIOT_ASSIGN_OR_RETURN(std::vector<WatchedFiles> watched, watched_files(options, log));
  watch_ = std::make_unique<FileWatch>(std::move(watched));
  FOLIOT_RETURN_IF_ERROR(open_task_scaling(options, log));
  FOLIOT_ASSIGN_OR_RETURN(port_, loop_.listen(options.listen));
  FOLIOT_RETURN_IF_ERROR(open_worker_scaling(options, log));
  if (election == nullptr) FOLIOT_RETURN_IF_ERROR(start_scaling());
  FOLIOT_RETURN_IF_ERROR(watch_->start(kReloadInterval));
  FOLIOT_ASSIGN_OR_RETURN(thread_, Thread::start({.name = "controller", .nice = kNice}, [this] { loop_.run(); }));
  return Status();
}

void ControllerServer::Parts::stop(Duration drain_timeout) {
  service_.drain();
  loop_.wake();
  drained_future_.wait_for(std::chrono::nanoseconds(drain_timeout.nanoseconds()));
  end();
}

bool ControllerServer::Parts::hand_over(Duration timeout) {
  service_.hand_over();
  loop_.wake();
  return drained_future_.wait_for(std::chrono::nanoseconds(timeout.nanoseconds())) == std::future_status::ready;
}

void ControllerServer::Parts::abandon() { end(); }

void ControllerServer::Parts::end() {
  if (worker_scaling_ != nullptr) worker_scaling_->stop();
  if (task_scaling_ != nullptr) task_scaling_->stop();
  if (pipeline_tuning_ != nullptr) pipeline_tuning_->stop();
  loop_.stop();  // sends a Goodbye to all peers
  thread_.join();
}

ControllerServer::ControllerServer(ControllerServerOptions options, Logger& log)
    : options_(std::move(options)), log_(log) {}
ControllerServer::~ControllerServer() { stop(); }

Status ControllerServer::start() {
  if (!options_.election.empty()) FOLIOT_RETURN_IF_ERROR(start_election());
  {
    const MutexLock lock(mutex_);
    FOLIOT_RETURN_IF_ERROR(make_parts());
  }
  // It stays the same when the parts are made anew.
  options_.listen = options_.listen.substr(0, options_.listen.rfind(':') + 1) + std::to_string(port());
  return election_ == nullptr ? Status() : election_->start();
}

Status ControllerServer::start_election() {
  if (options_.advertise.empty()) {
    return Status::invalid_argument(
        "--election needs --advertise HOST:PORT, the address in the flag --controller of workers and front ends");
  }
  ElectionOptions options{.address = options_.advertise,
                          .instance = (uint64_t{std::random_device()()} << 32) | std::random_device()(),
                          .leader_timeout = options_.leader_timeout};
  if (options.leader_timeout < kLeaderTimeoutMin) {
    return Status::invalid_argument(
        fmt::format("--leader-timeout {} is too short: a leader renews its record every {}; "
                    "the least is {}",
                    format_duration(options.leader_timeout), format_duration(options.renew_interval),
                    format_duration(kLeaderTimeoutMin)));
  }
  // A slower store counts as one that pauses.
  FOLIOT_ASSIGN_OR_RETURN(auto store, open_leader_store(options_.election, options.leader_timeout / 2));
  election_ = std::make_unique<ElectionThread>(
      std::move(options), std::move(store),
      ElectionThread::Watch{[this](Severity level, const std::string& line) { log_.write(level, line); },
                            [this](uint64_t epoch) { on_lead(epoch); }, [this] { on_stand_by(); }});
  return Status();
}

void ControllerServer::on_lead(uint64_t epoch) {
  const MutexLock lock(mutex_);
  epoch_ = epoch;
  if (parts_ != nullptr && !is_replaced_) parts_->lead(epoch, log_);
}

void ControllerServer::on_stand_by() {
  const MutexLock lock(mutex_);
  epoch_.reset();
  is_replaced_ = true;
}

Status ControllerServer::go_on() {
  const MutexLock lock(mutex_);
  if (!is_replaced_ || parts_ == nullptr) return Status();
  parts_->abandon();
  parts_.reset();
  FOLIOT_RETURN_IF_ERROR(make_parts());
  is_replaced_ = false;
  if (epoch_) parts_->lead(*epoch_, log_);
  return Status();
}

Status ControllerServer::make_parts() {
  FOLIOT_ASSIGN_OR_RETURN(const RegisteredPolicy policy, find_policy(options_.policy));
  FOLIOT_ASSIGN_OR_RETURN(auto link_tls, open_link_tls(options_.tls));
  auto parts = std::make_unique<Parts>(options_, policy, std::move(link_tls), log_);
  FOLIOT_RETURN_IF_ERROR(parts->start(options_, election_.get(), log_));
  parts_ = std::move(parts);
  return Status();
}

void ControllerServer::stop() {
  // Peers leave for the one that takes over, and ask it again.
  const bool led = election_ != nullptr && election_->stop();
  const MutexLock lock(mutex_);
  if (parts_ == nullptr) return;
  if (led && parts_->hand_over(options_.leader_timeout)) {
    parts_->abandon();
  } else {
    parts_->stop(options_.drain_timeout);
  }
  parts_.reset();
}

uint16_t ControllerServer::port() const {
  const MutexLock lock(mutex_);
  return parts_->port();
}

std::string ControllerServer::description() const {
  const MutexLock lock(mutex_);
  return fmt::format("ready: port {}, scheduler {}{}{}", parts_->port(), options_.policy, parts_->observation(),
                     options_.election.empty() ? "" : fmt::format("; stands by, election {}", options_.election));
}

}  // namespace foliot
