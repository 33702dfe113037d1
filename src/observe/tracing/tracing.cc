#include "observe/tracing/tracing.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <utility>

#include "foundation/net/http_call.h"
#include "foundation/platform/clock.h"
#include "observe/tracing/span_json.h"

namespace foliot {
namespace {

// Where OTLP over HTTP takes traces, unless the URL says where.
constexpr std::string_view kTracesPath = "/v1/traces";

Duration since_1970() {
  using std::chrono::nanoseconds;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return Duration::nanoseconds(std::chrono::duration_cast<nanoseconds>(now).count()) - (monotonic_now() - TimePoint());
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

Status post(const std::string& url, std::string body) {
  FOLIOT_ASSIGN_OR_RETURN(const HttpAnswer answer, http_call({.method = "POST",
                                                              .url = url,
                                                              .headers = {"Content-Type: application/json", "Expect:"},
                                                              .body = std::move(body),
                                                              .timeout = Tracing::kPostTimeout}));
  if (answer.code / 100 == 2) return Status();
  return Status::unavailable(fmt::format("{} answered {}", url, answer.code));
}

}  // namespace

Result<std::unique_ptr<Tracing>> Tracing::start(const TracingOptions& options) {
  if (const auto parts = parse_url(options.url); !parts.ok()) return parts.status().with_context("--otlp");
  if (!(options.share >= 0 && options.share <= 1)) {
    return Status::invalid_argument(fmt::format("--otlp-share is {}: it must be from 0 to 1", options.share));
  }
  if (options.url.find_first_of("?#") != std::string::npos) {
    return Status::invalid_argument(
        fmt::format("--otlp: {} has a query; give the collector's address, and a path if it has one", options.url));
  }
  const size_t path = options.url.find('/', options.url.find("://") + 3);
  const bool has_path = path != std::string::npos && path + 1 < options.url.size();
  std::string url = options.url;
  if (!has_path) url = options.url.substr(0, path) + std::string(kTracesPath);
  uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, 0) != sizeof seed) return Status::unavailable("the system gives no random numbers");
  std::unique_ptr<Tracing> tracing(
      new Tracing(options, std::move(url), fmt::format("{}:{}", host_name(), getpid()), seed));
  FOLIOT_RETURN_IF_ERROR(tracing->exporter_.start());
  return tracing;
}

Tracing::Tracing(const TracingOptions& options, std::string url, std::string instance, uint64_t seed)
    : exporter_([url = std::move(url), instance = std::move(instance)](std::span<const Span> spans) {
        return post(url, span_json(spans, since_1970(), instance));
      }),
      tracer_(options.share, seed, exporter_) {}

std::string Tracing::text() const {
  const SpanExporter::Counts counts = exporter_.counts();
  return fmt::format(
      "# HELP foliot_spans_total Spans of traced calls, by what became of them: sent to the collector, failed "
      "(it did not take them), dropped (there was no room)\n"
      "# TYPE foliot_spans_total counter\n"
      "foliot_spans_total{{result=\"sent\"}} {}\n"
      "foliot_spans_total{{result=\"failed\"}} {}\n"
      "foliot_spans_total{{result=\"dropped\"}} {}\n"
      "# HELP foliot_traceparent_malformed_total Calls whose traceparent was malformed, and was ignored\n"
      "# TYPE foliot_traceparent_malformed_total counter\n"
      "foliot_traceparent_malformed_total {}\n",
      counts.sent, counts.failed, counts.dropped, tracer_.malformed());
}

}  // namespace foliot
