#include "observe/tracing/tracer.h"

#include <cmath>
#include <optional>

namespace foliot {
namespace {

constexpr double kTwoTo64 = 18446744073709551616.0;

}  // namespace

Tracer::Tracer(double share, uint64_t seed, SpanSink& sink)
    : sampled_below_(share >= 1 ? 0 : static_cast<uint64_t>(share * kTwoTo64)),
      all_sampled_(share >= 1),
      sink_(sink),
      state_(seed) {}

// SplitMix64: one addition for all threads, and the rest for each.
uint64_t Tracer::random() {
  uint64_t z = state_.fetch_add(0x9E3779B97F4A7C15, std::memory_order_relaxed);
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
  z = (z ^ z >> 27) * 0x94D049BB133111EB;
  return z ^ z >> 31;
}

uint64_t Tracer::next_span() {
  const uint64_t id = random();
  return id == 0 ? 1 : id;
}

Tracer::Begun Tracer::begin(std::string_view traceparent) {
  if (!traceparent.empty()) {
    if (const std::optional<TraceParent> parent = parse_traceparent(traceparent)) {
      if (!parent->sampled) return {};
      const TraceContext& of = parent->context;
      return {{of.trace_high, of.trace_low, next_span()}, of.span};
    }
    malformed_.fetch_add(1, std::memory_order_relaxed);
  }
  if (!all_sampled_ && (sampled_below_ == 0 || random() >= sampled_below_)) return {};
  return {{next_span(), random(), next_span()}, 0};
}

}  // namespace foliot
