#include "planning/pipelines/query_trace.h"

#include <algorithm>

#include "foundation/base/check.h"

namespace foliot {

QueryTrace QueryTrace::draw(const PlannedPipeline& pipeline, std::span<const Duration> arrivals, uint64_t seed) {
  FOLIOT_CHECK(std::is_sorted(arrivals.begin(), arrivals.end()));
  Random random(seed);
  QueryTrace trace;
  trace.arrivals_ns.reserve(arrivals.size());
  trace.visits.reserve(arrivals.size());
  for (const Duration arrival : arrivals) trace.add(arrival.nanoseconds(), pipeline, random);
  return trace;
}

void QueryTrace::add(int64_t arrival_ns, const PlannedPipeline& pipeline, Random& random) {
  arrivals_ns.push_back(arrival_ns);
  visits.push_back(pipeline.draw_visits(random));
  if (!pipeline.has_elements()) return;
  elements.resize(pipeline.stages.size());
  const std::vector<uint8_t> drawn = pipeline.draw_elements(random);
  for (size_t i = 0; i < drawn.size(); ++i) {
    if (pipeline.stages[i].counted_by) elements[i].push_back(drawn[i]);
  }
}

void QueryTrace::append(const QueryTrace& from, size_t first, size_t last, int64_t earlier_ns) {
  for (size_t i = first; i < last; ++i) arrivals_ns.push_back(from.arrivals_ns[i] - earlier_ns);
  const auto part = [&](const auto& values, auto& to) {
    to.insert(to.end(), values.begin() + static_cast<ptrdiff_t>(first), values.begin() + static_cast<ptrdiff_t>(last));
  };
  part(from.visits, visits);
  elements.resize(from.elements.size());
  for (size_t i = 0; i < elements.size(); ++i) {
    if (!from.elements[i].empty()) part(from.elements[i], elements[i]);
  }
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
  QueryTrace trace;
  trace.append(*this, static_cast<size_t>(first - arrivals_ns.begin()), static_cast<size_t>(last - arrivals_ns.begin()),
               0);
  return trace;
}

QueryTrace QueryTrace::last(size_t count) const {
  QueryTrace trace;
  trace.append(*this, size() - std::min(size(), count), size(), 0);
  return trace;
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
    all.append(block, 0, block.size(), (begin - (block_length + gap) * i).nanoseconds());
  }
  return all;
}

}  // namespace foliot
