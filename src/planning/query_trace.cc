#include "planning/query_trace.h"

#include <algorithm>

#include "base/check.h"

namespace foliot {

QueryTrace QueryTrace::draw(const PlannedPipeline& pipeline, std::span<const Duration> arrivals, uint64_t seed) {
  FOLIOT_CHECK(std::is_sorted(arrivals.begin(), arrivals.end()));
  Random random(seed);
  QueryTrace trace;
  trace.arrivals_ns.reserve(arrivals.size());
  trace.visits.reserve(arrivals.size());
  for (const Duration arrival : arrivals) {
    trace.arrivals_ns.push_back(arrival.nanoseconds());
    trace.visits.push_back(pipeline.draw_visits(random));
  }
  return trace;
}

Duration QueryTrace::length() const {
  return arrivals_ns.empty() ? Duration() : Duration::nanoseconds(arrivals_ns.back() - arrivals_ns.front());
}

double QueryTrace::rate() const {
  return length() > Duration() ? static_cast<double>(size() - 1) / length().to_seconds() : 0;
}

QueryTrace QueryTrace::between(Duration begin, Duration end) const {
  const auto first = std::lower_bound(arrivals_ns.begin(), arrivals_ns.end(), begin.nanoseconds());
  const auto last = std::lower_bound(first, arrivals_ns.end(), end.nanoseconds());
  const auto from = first - arrivals_ns.begin();
  const auto to = last - arrivals_ns.begin();
  return {{first, last}, {visits.begin() + from, visits.begin() + to}};
}

QueryTrace QueryTrace::last(size_t count) const {
  const auto skipped = static_cast<int64_t>(size() - std::min(size(), count));
  return {{arrivals_ns.begin() + skipped, arrivals_ns.end()}, {visits.begin() + skipped, visits.end()}};
}

QueryTrace QueryTrace::sample(double share, uint32_t blocks, Duration gap) const {
  if (arrivals_ns.empty() || blocks == 0 || share >= 1) return *this;
  const Duration start = Duration::nanoseconds(arrivals_ns.front());
  const Duration stride = length() / blocks;
  const Duration block_length = stride.scaled(share);
  QueryTrace all;
  for (uint32_t i = 0; i < blocks; ++i) {
    const Duration begin = start + stride * i + stride.scaled((1 - share) / 2);
    const QueryTrace block = between(begin, begin + block_length);
    const int64_t earlier_ns = (begin - (block_length + gap) * i).nanoseconds();
    for (const int64_t arrival_ns : block.arrivals_ns) all.arrivals_ns.push_back(arrival_ns - earlier_ns);
    all.visits.insert(all.visits.end(), block.visits.begin(), block.visits.end());
  }
  return all;
}

}  // namespace foliot
