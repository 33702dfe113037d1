// Tracing: what a process needs to take part in traces: a tracer, the observer of its controller, and the exporter that
// sends spans to a collector by OTLP over HTTP, with its counters as Prometheus series.
//
// Threading: as its parts.
#ifndef FOLIOT_OBSERVE_TRACING_TRACING_H_
#define FOLIOT_OBSERVE_TRACING_TRACING_H_

#include <memory>
#include <string>

#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "observe/metrics/metrics_source.h"
#include "observe/tracing/request_spans.h"
#include "observe/tracing/span_exporter.h"
#include "observe/tracing/tracer.h"

namespace foliot {

struct TracingOptions {
  std::string url;   // of the collector, such as http://localhost:4318; empty: nothing is traced
  double share = 0;  // of the calls that bring no traceparent, 0 to 1

  bool on() const { return !url.empty(); }
};

class Tracing : public MetricsSource {
 public:
  // Of one POST. A collector on the way takes milliseconds; the limit also holds up the end of the process.
  static constexpr Duration kPostTimeout = Duration::seconds(2);

  // Errors: kInvalidArgument naming the flag.
  static Result<std::unique_ptr<Tracing>> start(const TracingOptions& options);

  Tracer& tracer() { return tracer_; }
  RequestSpans& requests() { return requests_; }
  std::string text() const override;

 private:
  Tracing(const TracingOptions& options, std::string url, std::string instance, uint64_t seed);

  SpanExporter exporter_;
  Tracer tracer_;
  RequestSpans requests_{tracer_};
};

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_TRACING_TRACING_H_
