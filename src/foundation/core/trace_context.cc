#include "foundation/core/trace_context.h"

namespace foliot {
namespace {

// VERSION-TRACE-SPAN-FLAGS
constexpr size_t kTraceAt = 3;
constexpr size_t kSpanAt = 36;
constexpr size_t kFlagsAt = 53;
constexpr size_t kSize = 55;
constexpr uint64_t kVersionForbidden = 0xFF;
constexpr uint64_t kSampledFlag = 1;

// Lower case only, as the specification has it.
std::optional<uint64_t> hexadecimal(std::string_view digits) {
  uint64_t value = 0;
  for (const char digit : digits) {
    if (digit >= '0' && digit <= '9') {
      value = value << 4 | static_cast<uint64_t>(digit - '0');
    } else if (digit >= 'a' && digit <= 'f') {
      value = value << 4 | static_cast<uint64_t>(digit - 'a' + 10);
    } else {
      return std::nullopt;
    }
  }
  return value;
}

}  // namespace

std::optional<TraceParent> parse_traceparent(std::string_view header) {
  if (header.size() < kSize) return std::nullopt;
  if (header[kTraceAt - 1] != '-' || header[kSpanAt - 1] != '-' || header[kFlagsAt - 1] != '-') return std::nullopt;
  const auto version = hexadecimal(header.substr(0, 2));
  const auto trace_high = hexadecimal(header.substr(kTraceAt, 16));
  const auto trace_low = hexadecimal(header.substr(kTraceAt + 16, 16));
  const auto span = hexadecimal(header.substr(kSpanAt, 16));
  const auto flags = hexadecimal(header.substr(kFlagsAt, 2));
  if (!version || !trace_high || !trace_low || !span || !flags || *version == kVersionForbidden) return std::nullopt;
  if (header.size() > kSize && (*version == 0 || header[kSize] != '-')) return std::nullopt;
  const TraceContext context{*trace_high, *trace_low, *span};
  if (!context || *span == 0) return std::nullopt;
  return TraceParent{context, (*flags & kSampledFlag) != 0};
}

}  // namespace foliot
