#include "observe/tracing/span_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace foliot {
namespace {

// OTLP's numbers.
constexpr int kInternalSpan = 1;
constexpr int kServerSpan = 2;
constexpr int kErrorStatus = 2;

constexpr std::array kParts = {SpanPart::kFrontend, SpanPart::kController, SpanPart::kWorker};

std::string_view service_of(SpanPart part) {
  switch (part) {
    case SpanPart::kFrontend: return "foliot-frontend";
    case SpanPart::kController: return "foliot-controller";
    case SpanPart::kWorker: return "foliot-worker";
  }
  return "foliot";
}

std::string_view word_of(SpanKind kind) {
  switch (kind) {
    case SpanKind::kCall: return "infer";
    case SpanKind::kRequest: return "request";
    case SpanKind::kRun: return "pipeline";
    case SpanKind::kStage: return "stage";
    case SpanKind::kQueue: return "queue";
    case SpanKind::kLoad: return "LOAD";
    case SpanKind::kInput: return "INPUT";
    case SpanKind::kExec: return "EXEC";
    case SpanKind::kOutput: return "OUTPUT";
  }
  return "";
}

// A whole character of UTF-8 at the beginning of `text`: its bytes; 0: there is none.
size_t character_bytes(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  const size_t size = first < 0x80 ? 1 : first >= 0xC2 && first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if ((first >= 0x80 && first < 0xC2) || first > 0xF4 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
  }
  return size;
}

void append_text(std::string_view text, std::string& json) {
  json += '"';
  while (!text.empty()) {
    const size_t size = character_bytes(text);
    if (size == 0) {
      json += "\\ufffd";
    } else if (size == 1 && (text.front() == '"' || text.front() == '\\')) {
      json += {'\\', text.front()};
    } else if (size == 1 && static_cast<unsigned char>(text.front()) < 0x20) {
      fmt::format_to(std::back_inserter(json), "\\u{:04x}", static_cast<unsigned char>(text.front()));
    } else {
      json += text.substr(0, size);
    }
    text.remove_prefix(std::max<size_t>(size, 1));
  }
  json += '"';
}

class Attributes {
 public:
  explicit Attributes(std::string& json) : json_(json) { json_ += ",\"attributes\":["; }
  ~Attributes() { json_ += ']'; }
  void add(std::string_view key, std::string_view text) {
    begin(key);
    json_ += "\"stringValue\":";
    append_text(text, json_);
    json_ += "}}";
  }
  void add(std::string_view key, uint64_t number) {
    begin(key);
    fmt::format_to(std::back_inserter(json_), "\"intValue\":\"{}\"}}}}", number);
  }

 private:
  void begin(std::string_view key) {
    if (json_.back() == '}') json_ += ',';
    fmt::format_to(std::back_inserter(json_), "{{\"key\":\"{}\",\"value\":{{", key);
  }
  std::string& json_;
};

void append_attributes(const Span& span, std::string& json) {
  Attributes attributes(json);
  attributes.add(span.kind == SpanKind::kStage ? "foliot.stage" : "foliot.model", span.name_text());
  if (span.request != RequestId()) attributes.add("foliot.request", std::to_string(span.request.value()));
  if (span.rows > 0) attributes.add(span.kind == SpanKind::kCall ? "foliot.rows" : "foliot.batch_size", span.rows);
  if (span.device) attributes.add("foliot.device", span.device->value());
  if (span.refusal != Refusal::kNone) attributes.add("foliot.refusal", to_string(span.refusal));
}

void append_span(const Span& span, Duration since_1970, std::string& json) {
  const auto at = std::back_inserter(json);
  fmt::format_to(at, "{{\"traceId\":\"{:016x}{:016x}\",\"spanId\":\"{:016x}\"", span.context.trace_high,
                 span.context.trace_low, span.context.span);
  if (span.parent != 0) fmt::format_to(at, ",\"parentSpanId\":\"{:016x}\"", span.parent);
  json += ",\"name\":";
  append_text(fmt::format("{} {}", word_of(span.kind), span.name_text()), json);
  const int64_t begin = (span.begin - TimePoint() + since_1970).nanoseconds();
  const int64_t end = (std::max(span.end, span.begin) - TimePoint() + since_1970).nanoseconds();
  fmt::format_to(at, ",\"kind\":{},\"startTimeUnixNano\":\"{}\",\"endTimeUnixNano\":\"{}\"",
                 span.kind == SpanKind::kCall ? kServerSpan : kInternalSpan, begin, end);
  append_attributes(span, json);
  if (span.refusal != Refusal::kNone) {
    fmt::format_to(at, ",\"status\":{{\"code\":{},\"message\":\"{}\"}}", kErrorStatus, to_string(span.refusal));
  }
  json += '}';
}

}  // namespace

std::string span_json(std::span<const Span> spans, Duration since_1970, std::string_view instance) {
  std::string json = "{\"resourceSpans\":[";
  for (const SpanPart part : kParts) {
    if (std::ranges::none_of(spans, [part](const Span& span) { return span.part == part; })) continue;
    if (json.back() != '[') json += ',';
    json += "{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{\"stringValue\":";
    append_text(service_of(part), json);
    json += "}},{\"key\":\"service.instance.id\",\"value\":{\"stringValue\":";
    append_text(instance, json);
    json += "}}]},\"scopeSpans\":[{\"scope\":{\"name\":\"foliot\"},\"spans\":[";
    for (const Span& span : spans) {
      if (span.part != part) continue;
      if (json.back() != '[') json += ',';
      append_span(span, since_1970, json);
    }
    json += "]}]}";
  }
  return json + "]}";
}

}  // namespace foliot
