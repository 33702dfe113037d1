#include "planning/pipelines/tuned_run.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "foundation/base/check.h"

namespace foliot {
namespace {

constexpr Duration kMinute = Duration::seconds(60);

// The replicas of one stage: those that serve, and those that are being activated.
class StageReplicas {
 public:
  StageReplicas(uint32_t serving, Duration activation) : serving_(serving), activation_(activation) {}

  uint32_t all() const {
    uint32_t sum = serving_;
    for (const auto& [at, count] : activating_) sum += count;
    return sum;
  }

  void set(uint32_t target, TimePoint now) {
    activate(now);
    const uint32_t before = all();
    if (target > before) activating_.emplace_back(now + activation_, target - before);
    for (uint32_t extra = before - std::min(before, target); extra > 0;) {
      if (activating_.empty()) {
        serving_ -= extra;
        changes_.push_back({now.nanoseconds(), serving_});
        return;
      }
      const uint32_t fewer = std::min(extra, activating_.back().second);
      extra -= fewer;
      if ((activating_.back().second -= fewer) == 0) activating_.pop_back();
    }
  }

  // All stand still until then.
  void set_halted(uint32_t target, TimePoint now, TimePoint until) {
    serving_ = target;
    changes_.push_back({now.nanoseconds(), serving_, until.nanoseconds()});
  }

  void activate(TimePoint now) {
    for (; !activating_.empty() && activating_.front().first <= now; activating_.pop_front()) {
      serving_ += activating_.front().second;
      changes_.push_back({activating_.front().first.nanoseconds(), serving_});
    }
  }

  std::vector<ReplicaChange> take_changes() { return std::move(changes_); }

 private:
  uint32_t serving_;
  const Duration activation_;
  std::deque<std::pair<TimePoint, uint32_t>> activating_;
  std::vector<ReplicaChange> changes_;
};

class Player {
 public:
  Player(const PlannedPipeline& pipeline, const Configuration& from, const TunedRunOptions& options, TunedRun& run)
      : pipeline_(pipeline), from_(from), options_(options), run_(run) {
    for (const StageConfiguration& stage : from.stages) replicas_.emplace_back(stage.replicas, options.activation);
  }

  void set(const std::vector<uint32_t>& targets, TimePoint now) {
    pay_until(now);
    for (size_t i = 0; i < replicas_.size(); ++i) {
      if (options_.halt) {
        replicas_[i].set_halted(targets[i], now, now + *options_.halt);
      } else {
        replicas_[i].set(targets[i], now);
      }
    }
  }

  void pay_until(TimePoint now) {
    const double per_hour = dollars_per_hour();
    for (TimePoint minute = TimePoint() + kMinute * static_cast<int64_t>(run_.dollars_per_hour.size()); minute <= now;
         minute += kMinute) {
      run_.dollars_per_hour.push_back(per_hour);
    }
    run_.dollars += per_hour * (now - paid_until_).to_seconds() / 3600;
    paid_until_ = now;
  }

  void finish(TimePoint end) {
    pay_until(end);
    for (StageReplicas& each : replicas_) {
      each.activate(end);
      run_.changes.push_back(each.take_changes());
    }
  }

 private:
  double dollars_per_hour() const {
    double sum = 0;
    for (size_t i = 0; i < replicas_.size(); ++i) {
      sum += replicas_[i].all() * kind_of(pipeline_.stages[i], from_.stages[i]).price;
    }
    return sum;
  }

  const PlannedPipeline& pipeline_;
  const Configuration& from_;
  const TunedRunOptions& options_;
  TunedRun& run_;
  std::vector<StageReplicas> replicas_;
  TimePoint paid_until_;
};

TimePoint instant(int64_t ns) { return TimePoint::from_nanoseconds(ns); }

Duration p99_of(std::vector<int64_t>& latencies_ns) {
  std::erase(latencies_ns, Estimator::kRefusedNs);
  if (latencies_ns.empty()) return Duration();
  const auto nth = latencies_ns.begin() + static_cast<int64_t>(latencies_ns.size() * 99 / 100);
  std::nth_element(latencies_ns.begin(), nth, latencies_ns.end());
  return Duration::nanoseconds(*nth);
}

void estimate(const PlannedPipeline& pipeline, const Configuration& from, const QueryTrace& trace, LatencyGoal goal,
              LateQueries late, TunedRun& run) {
  Estimator estimator(pipeline, trace, goal);
  run.estimate = estimator.estimate(from, run.changes, late);
  std::vector<std::vector<int64_t>> minutes(static_cast<size_t>(trace.arrivals_ns.back() / kMinute.nanoseconds()) + 1);
  for (size_t i = 0; i < trace.size(); ++i) {
    minutes[static_cast<size_t>(trace.arrivals_ns[i] / kMinute.nanoseconds())].push_back(estimator.latencies_ns()[i]);
  }
  for (std::vector<int64_t>& minute : minutes) {
    const int64_t slo = goal.slo.nanoseconds();
    const auto met = std::count_if(minute.begin(), minute.end(), [&](int64_t latency) { return latency <= slo; });
    run.attainment.push_back(minute.empty() ? 1 : static_cast<double>(met) / static_cast<double>(minute.size()));
    run.p99.push_back(p99_of(minute));
  }
}

}  // namespace

TunedRun run_tuned(const PlannedPipeline& pipeline, const Configuration& from, const QueryTrace& trace,
                   LatencyGoal goal, ReplicaTuner& tuner, const TunedRunOptions& options) {
  FOLIOT_CHECK(trace.size() > 0);
  TunedRun run;
  Player player(pipeline, from, options, run);
  TimePoint tick = TimePoint() + options.tick;
  for (const int64_t arrival_ns : trace.arrivals_ns) {
    const TimePoint now = instant(arrival_ns);
    for (; tick <= now; tick += options.tick) {
      if (tuner.tick(tick)) player.set(tuner.replicas(), tick);
    }
    if (tuner.arrive(now)) player.set(tuner.replicas(), now);
  }
  player.finish(instant(trace.arrivals_ns.back()));
  estimate(pipeline, from, trace, goal, options.late, run);
  return run;
}

TunedRun run_fixed(const PlannedPipeline& pipeline, const Configuration& configuration, const QueryTrace& trace,
                   LatencyGoal goal, const TunedRunOptions& options) {
  FOLIOT_CHECK(trace.size() > 0);
  TunedRun run;
  Player(pipeline, configuration, options, run).finish(instant(trace.arrivals_ns.back()));
  estimate(pipeline, configuration, trace, goal, options.late, run);
  return run;
}

}  // namespace foliot
