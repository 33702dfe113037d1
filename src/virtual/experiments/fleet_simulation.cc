#include "virtual/experiments/fleet_simulation.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "control/fleet/scalers/greedy.h"
#include "control/fleet/scalers/worker_autoscaler.h"
#include "control/fleet/solvers/cbc_solver.h"
#include "control/variants/instance_monitor.h"
#include "control/variants/variant_policy.h"
#include "control/variants/variant_registry.h"
#include "foundation/base/check.h"
#include "foundation/base/random.h"
#include "virtual/world/virtual_loop.h"

namespace foliot {
namespace {

constexpr Duration kWorkerStart = Duration::seconds(30);
constexpr Duration kStateInterval = Duration::seconds(2);  // the paper's, of states and of workers
// Tasks without queries keep an instance.
constexpr double kLoadLeast = 0.1;

std::unique_ptr<Solver> make_solver(const std::string& name) {
  if (name == "greedy") return std::make_unique<GreedySolver>();
  if (name == "greedy_mixed") return std::make_unique<GreedyMixedSolver>();
  FOLIOT_CHECK(name == "ilp");
  return std::make_unique<CbcSolver>();
}

class FleetSimulation : public WorkerPool {
 public:
  FleetSimulation(const FleetSystem& system, const std::vector<FleetWorkers>& workers,
                  const std::vector<FleetTask>& tasks, const std::vector<FleetQuery>& queries, uint64_t seed)
      : system_(system), tasks_(tasks), queries_(queries), kinds_(workers), random_(seed) {
    policy_ = make_variant_policy(system.policy).value();
    if (!system.solver.empty()) solver_ = make_solver(system.solver);
    WorkerAutoscalerOptions options{.kinds = {}, .start_up = kWorkerStart};
    for (const FleetWorkers& kind : kinds_) options.kinds[kind.kind] = {kind.price, kind.least, kind.most};
    worker_autoscaler_ = std::make_unique<WorkerAutoscaler>(options, *this);
    for (uint32_t k = 0; k < kinds_.size(); ++k) {
      wanted_.push_back(kinds_[k].count);
      for (uint32_t i = 0; i < kinds_[k].count; ++i) add_worker(k);
    }
    for (const FleetTask& task : tasks) add_task(task);
    report_.latency.resize(tasks.size());
    report_.in_time_of.resize(tasks.size());
    report_.offered_of.resize(tasks.size());
  }

  FleetReport run() {
    for (uint32_t t = 0; t < tasks_.size(); ++t) start(t);
    for (const auto& instance : instances_) ready_shares(*instance);  // what is there at the beginning is loaded
    begin_ = loop_.now();
    end_ = begin_ + queries_.back().at + Duration::seconds(1);
    take_next(0);
    loop_.at(begin_, [this] { step_models(); });
    loop_.at(begin_, [this] { step_workers(); });
    loop_.run_until(TimePoint::infinite_future());
    report_.length = queries_.back().at;
    report_.offered = queries_.size();
    report_.accuracy /= std::max(1.0, static_cast<double>(report_.in_time));
    report_.utilisation = busy_seconds_ / executor_seconds_;
    return std::move(report_);
  }

 private:
  struct Query {
    TimePoint at;
    TimePoint deadline;
  };
  struct Instance {
    uint32_t task, variant, worker;
    VariantId id;
    uint32_t shares = 0;   // loaded or loading
    uint32_t ready = 0;    // loaded
    bool retired = false;  // answers what it has
    TimePoint loaded;      // the first share
    std::deque<Query> queue;
    std::vector<TimePoint> ends{};  // of its EXECs
    std::unique_ptr<InstanceMonitor> monitor{};
    TimePoint last_end{};
  };
  struct Worker {
    uint32_t kind;
    std::string name;
    bool present = true, draining = false;
    uint32_t used = 0;  // shares
    uint32_t busy = 0;  // executors
    double busy_recent = 0;
    std::vector<Instance*> instances{};
  };
  struct Task {
    TaskId id;
    std::vector<VariantId> variants;
    std::unique_ptr<ModelAutoscaler> autoscaler;
    uint32_t arrivals[2] = {0, 0};  // in this second and the one before
  };

  void add_worker(uint32_t kind) {
    const auto index = static_cast<uint32_t>(workers_.size());
    workers_.push_back({.kind = kind, .name = kinds_[kind].kind + "-" + std::to_string(index)});
    registry_.add_device(DeviceId(index), kinds_[kind].kind, uint64_t{1} << 50);
  }

  void add_task(const FleetTask& task) {
    Task added{.id = registry_.add_task(task.name)};
    for (const Variant& variant : task.variants)
      added.variants.push_back(registry_.add_variant(added.id, variant).value());
    if (solver_) {
      added.autoscaler = std::make_unique<ModelAutoscaler>(
          *solver_, ModelAutoscalerOptions{.headroom = system_.headroom, .scale_down = system_.scale_down});
    }
    own_.push_back(std::move(added));
  }

  void start(uint32_t t) {
    if (system_.load_all) {
      for (uint32_t v = 0; v < tasks_[t].variants.size(); ++v) {
        for (uint32_t w = 0; w < workers_.size(); ++w) {
          if (kinds_[workers_[w].kind].kind != tasks_[t].variants[v].kind) continue;
          Instance& instance = add_instance(t, v, w);
          instance.shares = kinds_[workers_[w].kind].shares;
        }
      }
      return;
    }
    for (uint32_t i = 0; i < tasks_[t].start; ++i) place(t, 0);
  }

  void take_next(uint32_t index) {
    if (index == queries_.size()) return;
    loop_.at(begin_ + queries_[index].at, [this, index] {
      arrive(queries_[index].task);
      take_next(index + 1);
    });
  }

  void arrive(uint32_t t) {
    const TimePoint now = loop_.now();
    const FleetTask& task = tasks_[t];
    ++own_[t].arrivals[0];
    ++report_.offered_of[t];
    const VariantRequirements asked{.latency = task.slo, .accuracy = task.accuracy};
    const VariantChoice choice = policy_->get_variant(registry_, own_[t].id, asked, now);
    Instance* to = nullptr;
    if (choice.outcome == VariantChoice::Outcome::kLoaded) {
      to = find(*choice.variant, choice.device.value());
    } else if (!system_.refuse || choice.outcome == VariantChoice::Outcome::kToLoad) {
      to = least_loaded(t);
      // Only where nothing is loaded, or loading, does a query bring a LOAD about.
      if (to == nullptr && choice.variant) to = place(t, choice.variant->value() - own_[t].variants.front().value());
      if (to != nullptr && system_.refuse && predict(*to) > now + task.slo) to = nullptr;
    }
    if (to == nullptr) {
      ++report_.refused;
      return;
    }
    to->queue.push_back({now, now + task.slo});
    dispatch(to->worker);
  }

  Instance* find(VariantId variant, uint32_t worker) {
    for (Instance* instance : workers_[worker].instances) {
      if (instance->id == variant && !instance->retired) return instance;
    }
    FOLIOT_CHECK(false);
  }

  // Of the task, whatever its state.
  Instance* least_loaded(uint32_t t) {
    Instance* best = nullptr;
    for (const VariantId id : own_[t].variants) {
      for (const VariantRegistry::Instance& loaded : registry_.instances(id)) {
        Instance* instance = find(id, loaded.device.value());
        if (best == nullptr || predict(*instance) < predict(*best)) best = instance;
      }
    }
    return best;
  }

  Instance& add_instance(uint32_t t, uint32_t v, uint32_t w) {
    const VariantId id = own_[t].variants[v];
    instances_.push_back(std::make_unique<Instance>(Instance{.task = t, .variant = v, .worker = w, .id = id}));
    Instance& instance = *instances_.back();
    instance.loaded = loop_.now() + registry_.variant(id).load;
    instance.monitor = std::make_unique<InstanceMonitor>(registry_.variant(id), loop_.now());
    workers_[w].instances.push_back(&instance);
    registry_.add_instance(id, DeviceId(w));
    return instance;
  }

  // One share more, where it is loaded already, or else on the fullest worker; nullptr: no room.
  Instance* place(uint32_t t, uint32_t v) {
    const Variant& variant = tasks_[t].variants[v];
    std::optional<uint32_t> best;
    Instance* existing = nullptr;
    for (uint32_t w = 0; w < workers_.size(); ++w) {
      const Worker& worker = workers_[w];
      if (!worker.present || worker.draining || kinds_[worker.kind].kind != variant.kind) continue;
      if (worker.used >= kinds_[worker.kind].shares) continue;
      Instance* here = nullptr;
      for (Instance* instance : worker.instances) {
        if (instance->id == own_[t].variants[v] && !instance->retired) here = instance;
      }
      const auto rank = [&](const Instance* at, uint32_t used) { return std::pair(at != nullptr, used); };
      if (best && rank(here, worker.used) <= rank(existing, workers_[*best].used)) continue;
      best = w;
      existing = here;
    }
    if (!best) return nullptr;
    Instance& instance = existing != nullptr ? *existing : add_instance(t, v, *best);
    ++instance.shares;
    ++workers_[*best].used;
    ++report_.loads;
    const bool at_once = existing != nullptr && kinds_[workers_[*best].kind].executors == 1;
    Instance* loading = &instance;
    loop_.at(at_once ? std::max(instance.loaded, loop_.now()) : loop_.now() + variant.load, [this, loading] {
      loading->ready = std::min(loading->shares, loading->ready + 1);
      dispatch(loading->worker);
    });
    refresh(*best);
    return &instance;
  }

  void ready_shares(Instance& instance) {
    instance.loaded = loop_.now();
    instance.ready = instance.shares;
    refresh(instance.worker);
  }

  // One share less: of draining workers first, then where fewest are.
  void unload(uint32_t t, uint32_t v) {
    Instance* least = nullptr;
    const auto rank = [&](const Instance* i) {
      return std::pair(!workers_[i->worker].draining, workers_[i->worker].used);
    };
    for (const VariantRegistry::Instance& loaded : registry_.instances(own_[t].variants[v])) {
      Instance* instance = find(own_[t].variants[v], loaded.device.value());
      if (least == nullptr || rank(instance) < rank(least)) least = instance;
    }
    if (least == nullptr) return;
    --workers_[least->worker].used;
    --least->shares;
    least->ready = std::min(least->ready, std::max(1u, least->shares));
    if (least->shares == 0) retire(*least);
  }

  void retire(Instance& instance) {
    workers_[instance.worker].used -= instance.shares;
    instance.shares = 0;
    instance.retired = true;
    registry_.remove_instance(instance.id, DeviceId(instance.worker));
  }

  uint32_t parallel(const Instance& instance) const {
    if (instance.retired) return 1;
    return std::min(instance.ready, kinds_[workers_[instance.worker].kind].executors);
  }

  // Runs what can run now.
  void dispatch(uint32_t w) {
    Worker& worker = workers_[w];
    while (worker.busy < kinds_[worker.kind].executors) {
      Instance* next = nullptr;
      for (Instance* instance : worker.instances) {
        drop_late(*instance);
        if (instance->queue.empty() || instance->loaded > loop_.now()) continue;
        if (instance->ends.size() >= parallel(*instance)) continue;
        if (next == nullptr || instance->queue.front().at < next->queue.front().at) next = instance;
      }
      if (next == nullptr) break;
      run(*next);
    }
    std::erase_if(worker.instances, [](const Instance* instance) {
      return instance->retired && instance->queue.empty() && instance->ends.empty();
    });
    refresh(w);
  }

  void drop_late(Instance& instance) {
    if (!system_.refuse) return;
    while (!instance.queue.empty() &&
           loop_.now() + registry_.variant(instance.id).latency() > instance.queue.front().deadline) {
      instance.queue.pop_front();
      ++report_.refused;
    }
  }

  void run(Instance& instance) {
    const Variant& variant = registry_.variant(instance.id);
    auto rows = static_cast<uint32_t>(std::min<size_t>(instance.queue.size(), variant.batch_most()));
    // Those that refuse take no batch that makes its first query late.
    while (system_.refuse && rows > 1 &&
           loop_.now() + variant.latency_of(rows).scaled(1.05) > instance.queue.front().deadline) {
      --rows;
    }
    const Duration took = variant.latency_of(rows).scaled(1 + 0.05 * random_.uniform());
    const TimePoint end = loop_.now() + took;
    const TimePoint could_begin = std::max({instance.queue.front().at, instance.last_end, instance.loaded});
    for (uint32_t i = 0; i < rows; ++i) {
      answer(instance, instance.queue.front(), end);
      instance.queue.pop_front();
    }
    instance.ends.push_back(end);
    ++workers_[instance.worker].busy;
    workers_[instance.worker].busy_recent += took.to_seconds();
    busy_seconds_ += took.to_seconds();
    const Duration observed = end - could_begin;  // with what others held it up
    Instance* running = &instance;
    loop_.at(end, [this, running, rows, observed] { finish(*running, rows, observed); });
  }

  void finish(Instance& instance, uint32_t rows, Duration observed) {
    instance.ends.erase(std::ranges::min_element(instance.ends));
    instance.last_end = loop_.now();
    instance.monitor->on_outcome(rows, observed, loop_.now());
    --workers_[instance.worker].busy;
    dispatch(instance.worker);
  }

  void answer(const Instance& instance, const Query& query, TimePoint end) {
    const double accuracy = tasks_[instance.task].variants[instance.variant].accuracy;
    report_.latency[instance.task].record(end - query.at);
    if (accuracy < tasks_[instance.task].accuracy) ++report_.below_accuracy;
    if (end > query.deadline) {
      ++report_.late;
      return;
    }
    ++report_.in_time;
    ++report_.in_time_of[instance.task];
    report_.accuracy += accuracy;
  }

  // When a query that is sent now would be answered.
  TimePoint predict(const Instance& instance) const {
    const Worker& worker = workers_[instance.worker];
    const FleetWorkers& kind = kinds_[worker.kind];
    const Variant& variant = registry_.variant(instance.id);
    TimePoint begin = std::max(loop_.now(), instance.loaded);
    Duration ahead;
    const auto waits = [&](const Instance& other, size_t rows) {
      const Variant& facts = registry_.variant(other.id);
      const uint32_t most = facts.batch_most();
      Duration time = facts.latency_of(most) * static_cast<int64_t>(rows / most);
      if (&other != &instance && rows % most > 0) time += facts.latency_of(static_cast<uint32_t>(rows % most));
      return time;
    };
    if (kind.executors == 1) {
      for (const Instance* other : worker.instances) {
        for (const TimePoint end : other->ends) begin = std::max(begin, end);
        ahead += waits(*other, other->queue.size());
      }
    } else {
      const uint32_t lanes = std::max(1u, parallel(instance));
      if (instance.ends.size() >= lanes) begin = std::max(begin, *std::ranges::min_element(instance.ends));
      ahead = waits(instance, instance.queue.size()) / lanes;
    }
    // While it waits, its batch may fill.
    const bool waits_for_others = begin + ahead > loop_.now();
    const uint32_t rows = waits_for_others ? variant.batch_most() : static_cast<uint32_t>(instance.queue.size()) + 1;
    return begin + ahead + variant.latency_of(rows).scaled(1.05);
  }

  void refresh(uint32_t w) {
    for (Instance* instance : workers_[w].instances) {
      instance->monitor->set_saturation(registry_.variant(instance->id).saturation * std::max(1u, instance->shares));
    }
    for (const Instance* instance : workers_[w].instances) {
      if (instance->retired) continue;
      registry_.set_begins(instance->id, DeviceId(w), predict(*instance) - registry_.variant(instance->id).latency());
    }
  }

  ScalingProblem problem_of(uint32_t t) const {
    ScalingProblem problem{.variants = {}, .slo = tasks_[t].slo};
    problem.load =
        std::max(kLoadLeast, std::max(own_[t].arrivals[1], (own_[t].arrivals[0] + own_[t].arrivals[1]) / 2) * 1.0);
    for (uint32_t k = 0; k < kinds_.size(); ++k) {
      int64_t free = 0;
      for (const Worker& worker : workers_) {
        if (worker.kind == k && worker.present && !worker.draining) free += kinds_[k].shares - worker.used;
      }
      problem.resources.push_back({kinds_[k].kind, free});
    }
    for (uint32_t v = 0; v < tasks_[t].variants.size(); ++v) {
      const Variant& variant = tasks_[t].variants[v];
      const auto kind = std::ranges::find(kinds_, variant.kind, &FleetWorkers::kind) - kinds_.begin();
      ScalableVariant scalable{.name = variant.name,
                               .architecture = variant.architecture,
                               .price = variant.price,
                               .saturation = variant.saturation,
                               .latency = variant.latency(),
                               .load = variant.load,
                               .needs = std::vector<int64_t>(kinds_.size(), 0)};
      scalable.needs[static_cast<size_t>(kind)] = 1;
      for (const VariantRegistry::Instance& loaded : registry_.instances(own_[t].variants[v])) {
        for (const Instance* instance : workers_[loaded.device.value()].instances) {
          if (instance->id != own_[t].variants[v] || instance->retired || workers_[instance->worker].draining) continue;
          scalable.running += instance->shares;
        }
      }
      problem.resources[static_cast<size_t>(kind)].total += scalable.running;
      problem.variants.push_back(std::move(scalable));
    }
    return problem;
  }

  void step_models() {
    charge();
    lacking_.clear();
    for (uint32_t t = 0; t < tasks_.size(); ++t) {
      Task& task = own_[t];
      if (task.autoscaler) scale(t);
      task.arrivals[1] = task.arrivals[0];
      task.arrivals[0] = 0;
    }
    if (loop_.now() < end_) loop_.at(loop_.now() + Duration::seconds(1), [this] { step_models(); });
  }

  void scale(uint32_t t) {
    std::swap(own_[t].arrivals[0], own_[t].arrivals[1]);  // the second that is over counts
    const ScalingProblem problem = problem_of(t);
    std::swap(own_[t].arrivals[0], own_[t].arrivals[1]);
    const ScalingStep step = own_[t].autoscaler->step(problem, loop_.now());
    if (step.status.code() == StatusCode::kResourceExhausted) lacking_.emplace(lacking_kind(problem), 1);
    for (uint32_t v = 0; v < step.deltas.size(); ++v) {
      for (int64_t i = 0; i < step.deltas[v]; ++i) place(t, v);
      for (int64_t i = 0; i > step.deltas[v]; --i) unload(t, v);
    }
  }

  // Of the variant that takes the load for the least price.
  std::string lacking_kind(const ScalingProblem& problem) const {
    const ScalableVariant* best = nullptr;
    size_t kind = 0;
    for (const ScalableVariant& variant : problem.variants) {
      if (variant.latency > problem.slo) continue;
      if (best != nullptr && static_cast<double>(variant.price) / variant.saturation >=
                                 static_cast<double>(best->price) / best->saturation) {
        continue;
      }
      best = &variant;
      kind = static_cast<size_t>(std::ranges::find(variant.needs, 1) - variant.needs.begin());
    }
    return best == nullptr ? kinds_.front().kind : kinds_[kind].kind;
  }

  // For the second that begins.
  void charge() {
    uint32_t there = 0;
    for (const Worker& worker : workers_) {
      if (!worker.present) continue;
      ++there;
      report_.worker_dollars += static_cast<double>(kinds_[worker.kind].price) * 1e-6;
      executor_seconds_ += kinds_[worker.kind].executors;
    }
    for (uint32_t k = 0; k < kinds_.size(); ++k) {
      report_.worker_dollars += static_cast<double>(kinds_[k].price * starting_of(k)) * 1e-6;
    }
    report_.workers_most = std::max(report_.workers_most, there);
    for (const Worker& worker : workers_) {
      if (!worker.present) continue;
      for (const Instance* instance : worker.instances) {
        report_.instance_dollars +=
            static_cast<double>(tasks_[instance->task].variants[instance->variant].price * instance->shares) * 1e-6;
      }
    }
  }

  int64_t starting_of(uint32_t k) const {
    const auto there = std::ranges::count_if(workers_, [k](const Worker& w) { return w.present && w.kind == k; });
    return std::max<int64_t>(0, int64_t{wanted_[k]} - there);
  }

  void step_workers() {
    std::vector<WorkerView> views;
    for (uint32_t w = 0; w < workers_.size(); ++w) {
      Worker& worker = workers_[w];
      if (!worker.present) continue;
      const double executors = kinds_[worker.kind].executors;
      WorkerView view{.name = worker.name,
                      .kind = kinds_[worker.kind].kind,
                      .utilisation = std::min(1.0, worker.busy_recent / (kStateInterval.to_seconds() * executors)),
                      .may_leave = worker.instances.empty()};
      worker.busy_recent = 0;
      registry_.set_utilisation(DeviceId(w), view.utilisation);
      for (const Instance* instance : worker.instances) {
        if (instance->retired) continue;
        const InstanceState state = instance->monitor->state(loop_.now());
        registry_.set_state(instance->id, DeviceId(w), state);
        view.overloaded = view.overloaded || state == InstanceState::kOverloaded;
        view.interfered = view.interfered || state == InstanceState::kInterfered;
      }
      views.push_back(view);
    }
    if (system_.scale_workers) {
      // A maximum that is reached is a result of the simulation.
      const Status limited = worker_autoscaler_->step(views, {.lacking = lacking_}, loop_.now());
      (void)limited;
      follow_draining();
    }
    if (loop_.now() < end_) loop_.at(loop_.now() + kStateInterval, [this] { step_workers(); });
  }

  // What stands on a worker that is to leave is loaded elsewhere meanwhile.
  void follow_draining() {
    for (uint32_t w = 0; w < workers_.size(); ++w) {
      Worker& worker = workers_[w];
      if (!worker.present) continue;
      const bool draining = worker_autoscaler_->draining().contains(worker.name);
      if (draining && !worker.draining) {
        loop_.at(loop_.now() + Duration::seconds(12), [this, w] { retire_all(w); });
      }
      worker.draining = draining;
    }
  }

  void retire_all(uint32_t w) {
    if (!workers_[w].draining) return;
    for (Instance* instance : workers_[w].instances) {
      if (!instance->retired) retire(*instance);
    }
    dispatch(w);
  }

  uint32_t kind_of(std::string_view name) const {
    return static_cast<uint32_t>(std::ranges::find(kinds_, name, &FleetWorkers::kind) - kinds_.begin());
  }

  Result<uint32_t> size(std::string_view kind) override { return wanted_[kind_of(kind)]; }

  Status set_size(std::string_view kind, uint32_t workers) override {
    const uint32_t k = kind_of(kind);
    if (workers < wanted_[k]) {
      const std::optional<std::string> leaving = next_to_leave(kind);
      const auto worker = std::ranges::find(workers_, *leaving, &Worker::name);
      worker->present = false;
      registry_.remove_device(DeviceId(static_cast<uint32_t>(worker - workers_.begin())));
    }
    if (workers > wanted_[k]) loop_.at(loop_.now() + kWorkerStart, [this, k] { add_worker(k); });
    wanted_[k] = workers;
    return Status();
  }

  std::optional<std::string> next_to_leave(std::string_view kind) override {
    for (auto worker = workers_.rbegin(); worker != workers_.rend(); ++worker) {
      if (worker->present && kinds_[worker->kind].kind == kind) return worker->name;
    }
    return std::nullopt;
  }

  const FleetSystem& system_;
  const std::vector<FleetTask>& tasks_;
  const std::vector<FleetQuery>& queries_;
  const std::vector<FleetWorkers>& kinds_;
  Random random_;
  VirtualLoop loop_;
  VariantRegistry registry_;
  std::unique_ptr<VariantPolicy> policy_;
  std::unique_ptr<Solver> solver_;
  std::unique_ptr<WorkerAutoscaler> worker_autoscaler_;
  std::vector<Worker> workers_;   // by DeviceId
  std::vector<uint32_t> wanted_;  // workers, by kind
  std::vector<Task> own_;
  std::vector<std::unique_ptr<Instance>> instances_;
  std::map<std::string, uint32_t> lacking_;
  TimePoint begin_, end_;
  double busy_seconds_ = 0;
  double executor_seconds_ = 0;
  FleetReport report_;
};

}  // namespace

FleetReport simulate_fleet(const FleetSystem& system, const std::vector<FleetWorkers>& workers,
                           const std::vector<FleetTask>& tasks, const std::vector<FleetQuery>& queries, uint64_t seed) {
  return FleetSimulation(system, workers, tasks, queries, seed).run();
}

}  // namespace foliot
