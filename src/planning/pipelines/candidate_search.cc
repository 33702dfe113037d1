#include "planning/pipelines/candidate_search.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

#include "foundation/base/check.h"

namespace foliot {

CandidateSearch::CandidateSearch(const PlannedPipeline& pipeline, const QueryTrace& trace, LatencyGoal goal,
                                 uint32_t threads)
    : visits_(pipeline.stages.size()) {
  FOLIOT_CHECK(threads > 0);
  for (uint32_t i = 0; i < threads; ++i) estimators_.emplace_back(pipeline, trace, goal);
  visits_most_.resize(visits_.size(), 1);
  for (size_t query = 0; query < trace.size(); ++query) {
    for (uint32_t i = 0; i < visits_.size(); ++i) {
      const uint32_t visits = trace.visits_of(query, i);
      visits_[i] += visits;
      visits_most_[i] = std::max<uint64_t>(visits_most_[i], visits);
    }
  }
}

void CandidateSearch::keep(const Configuration& configuration) {
  const Task task = [&](Estimator& estimator) { estimator.keep(configuration); };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < estimators_.size(); ++i) threads.emplace_back([&, i] { task(estimators_[i]); });
  task(estimators_.front());
  for (std::thread& thread : threads) thread.join();
}

void CandidateSearch::run(std::span<const Task> tasks) {
  std::atomic<size_t> next = 0;
  const auto work = [&](Estimator& estimator) {
    for (size_t i = next++; i < tasks.size(); i = next++) tasks[i](estimator);
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < std::min(estimators_.size(), tasks.size()); ++i) {
    threads.emplace_back([&, i] { work(estimators_[i]); });
  }
  work(estimators_.front());
  for (std::thread& thread : threads) thread.join();
}

uint32_t CandidateSearch::replicas_least(uint32_t stage, const StageKind& kind, uint32_t batch) const {
  const Estimator& estimator = estimators_.front();
  const uint64_t missed_most = estimator.goal().missed_most(trace().size()) * visits_most_[stage];
  if (visits_[stage] <= missed_most) return 1;
  double per_query_ns = std::numeric_limits<double>::max();
  for (uint32_t rows = 1; rows <= batch; ++rows) {
    per_query_ns = std::min(per_query_ns, static_cast<double>(kind.durations_ns[rows]) / rows);
  }
  const double work_ns = static_cast<double>(visits_[stage] - missed_most) * per_query_ns;
  const double time_ns = static_cast<double>((trace().length() + estimator.goal().slo).nanoseconds());
  return std::max(uint32_t{1}, static_cast<uint32_t>(std::min(std::ceil(work_ns / time_ns * (1 - 1e-9)), 1e9)));
}

}  // namespace foliot
