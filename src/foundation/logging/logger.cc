#include "foundation/logging/logger.h"

#include <fmt/format.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "foundation/base/check.h"

namespace foliot {
namespace {

// In UTC.
constexpr const char* kTextPattern = "%Y-%m-%dT%H:%M:%S.%eZ %l %v";
constexpr const char* kJsonPattern = R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})";

// The library has its sinks compiled for its own mutexes only, so this one locks for itself.
class FunctionSink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit FunctionSink(LoggerSink take) : take_(std::move(take)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const MutexLock lock(mutex_);
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    take_({line.data(), line.size()});
  }
  void flush_() override {}

  const LoggerSink take_;
  Mutex mutex_;
};

spdlog::level::level_enum to_spdlog(Severity level) {
  switch (level) {
    case Severity::kDebug: return spdlog::level::debug;
    case Severity::kInfo: return spdlog::level::info;
    case Severity::kWarning: return spdlog::level::warn;
    case Severity::kError: return spdlog::level::err;
  }
  FOLIOT_CHECK(false);
}

std::string escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const bool control = static_cast<unsigned char>(c) < ' ' || c == '\x7f';
    if (control) {
      escaped += fmt::format("\\x{:02x}", c);
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string members(const std::string& part, std::string_view message) {
  const nlohmann::ordered_json object{{"part", part}, {"message", message}};
  const std::string json = object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return json.substr(1, json.size() - 2);
}

}  // namespace

class Logger::Backend : public spdlog::logger {
 public:
  using spdlog::logger::logger;
};

TimePoint logger_now() {
  return TimePoint::from_nanoseconds(std::chrono::steady_clock::now().time_since_epoch().count());
}

Logger::Logger(LoggerOptions options, LoggerSink sink, std::function<TimePoint()> now)
    : options_(std::move(options)),
      now_(std::move(now)),
      logger_(std::make_unique<Backend>("foliot", std::make_shared<FunctionSink>(std::move(sink)))) {
  const bool json = options_.format == LoggerFormat::kJson;
  logger_->set_formatter(std::make_unique<spdlog::pattern_formatter>(json ? kJsonPattern : kTextPattern,
                                                                     spdlog::pattern_time_type::utc, "\n"));
  logger_->set_level(to_spdlog(options_.level));
}

Logger::~Logger() = default;

std::optional<uint64_t> Logger::admit() {
  MutexLock lock(mutex_);
  const TimePoint now = now_();
  if (now - second_began_ >= Duration::seconds(1)) {
    second_began_ = now;
    lines_ = 0;
  }
  if (lines_ == options_.lines_per_second_max) {
    ++left_out_;
    return std::nullopt;
  }
  ++lines_;
  return std::exchange(left_out_, 0);
}

void Logger::write(Severity level, std::string_view message) {
  if (!logger_->should_log(to_spdlog(level))) return;
  const std::optional<uint64_t> left_out = admit();
  if (!left_out) return;
  if (*left_out > 0) put(Severity::kWarning, fmt::format("{} lines were left out here", *left_out));
  put(level, message);
}

void Logger::put(Severity level, std::string_view message) {
  const bool json = options_.format == LoggerFormat::kJson;
  logger_->log(to_spdlog(level), spdlog::string_view_t(json ? members(options_.part, message)
                                                            : fmt::format("{}: {}", options_.part, escaped(message))));
}

}  // namespace foliot
