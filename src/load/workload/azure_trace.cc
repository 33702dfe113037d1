#include "load/workload/azure_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>
#include <unordered_map>
#include <utility>

namespace foliot {
namespace {

constexpr Duration kTraceMinute = Duration::seconds(60);
constexpr uint32_t kCountMax = 1'000'000'000;
constexpr size_t kNameColumns = 4;  // of 2019, before the minutes
// The format of 2021 rounds to milliseconds.
constexpr double kRoundingSeconds = 0.001 + 1e-9;

Status wrong(const std::string& name, size_t line, std::string_view what) {
  return Status::invalid_argument(fmt::format("{}:{}: {}", name, line, what));
}

std::string_view take_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// The next field of a line; nullopt after the last.
class Fields {
 public:
  explicit Fields(std::string_view line) : line_(line) {}
  std::optional<std::string_view> next() {
    if (done_) return std::nullopt;
    const size_t comma = line_.find(',');
    const std::string_view field = line_.substr(0, comma);
    done_ = comma == std::string_view::npos;
    if (!done_) line_.remove_prefix(comma + 1);
    return field;
  }

 private:
  std::string_view line_;
  bool done_ = false;
};

template <typename T>
bool parse(std::string_view text, T& to) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), to);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

// Numbers for names.
class Names {
 public:
  uint32_t number(std::string_view app, std::string_view function) {
    key_.assign(app).append(1, '/').append(function);
    return numbers_.try_emplace(key_, static_cast<uint32_t>(numbers_.size())).first->second;
  }
  uint32_t size() const { return static_cast<uint32_t>(numbers_.size()); }

 private:
  std::unordered_map<std::string, uint32_t> numbers_;
  std::string key_;
};

Duration end_of(const TraceOptions& options) {
  return options.length >= Duration::max() - options.from ? Duration::max() : options.from + options.length;
}

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status::not_found(fmt::format("trace '{}' cannot be opened", path));
  return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

uint64_t round_randomly(double mean, Random& random) {
  const double whole = std::floor(mean);
  return static_cast<uint64_t>(whole) + (random.uniform() < mean - whole ? 1 : 0);
}

// ---- 2019: counts per minute ----

class MinuteTrace : public FunctionTrace {
 public:
  explicit MinuteTrace(const TraceOptions& options) : options_(options) {}

  // Days are given in order.
  Status add_day(const TraceText& day) {
    std::string_view text = day.text;
    FOLIOT_ASSIGN_OR_RETURN(const size_t minutes, read_header(day.name, take_line(text)));
    minutes_.resize(minutes_before_ + minutes);
    for (size_t line = 2; !text.empty(); ++line) {
      FOLIOT_RETURN_IF_ERROR(read_function(day.name, line, take_line(text), minutes));
    }
    minutes_before_ += minutes;
    return Status();
  }

  Status finish() {
    const Duration end = std::min(end_of(options_), kTraceMinute * static_cast<int64_t>(minutes_.size()));
    if (total_ == 0) return Status::invalid_argument("the trace has no invocations in the part that is asked for");
    if (options_.rate > 0) scale_ = options_.rate * (end - options_.from).to_seconds() / static_cast<double>(total_);
    return Status();
  }

  uint32_t functions() const override { return names_.size(); }
  std::unique_ptr<TraceReplay> replay(Random random) const override { return std::make_unique<Replay>(*this, random); }

 private:
  struct Cell {
    uint32_t function;
    uint32_t count;
  };

  // One minute at a time is made, and put in order.
  class Replay : public TraceReplay {
   public:
    Replay(const MinuteTrace& trace, Random random) : trace_(trace), random_(random) {}
    std::optional<Invocation> next() override {
      while (next_ == minute_.size()) {
        if (next_minute_ == trace_.minutes_.size()) return std::nullopt;
        fill();
      }
      return minute_[next_++];
    }

   private:
    void fill() {
      minute_.clear();
      next_ = 0;
      const Duration begin = kTraceMinute * static_cast<int64_t>(next_minute_) - trace_.options_.from;
      const Duration length = end_of(trace_.options_) - trace_.options_.from;
      for (const Cell& cell : trace_.minutes_[next_minute_++]) {
        for (uint64_t i = round_randomly(cell.count * trace_.scale_, random_); i > 0; --i) {
          const Duration at = begin + kTraceMinute.scaled(random_.uniform());
          if (at >= Duration() && at < length) minute_.push_back({at, cell.function});
        }
      }
      std::sort(minute_.begin(), minute_.end(), [](const Invocation& a, const Invocation& b) {
        return std::pair(a.at, a.function) < std::pair(b.at, b.function);
      });
    }

    const MinuteTrace& trace_;
    Random random_;
    size_t next_minute_ = 0;
    std::vector<Invocation> minute_;
    size_t next_ = 0;
  };

  // How many minutes the day has.
  static Result<size_t> read_header(const std::string& name, std::string_view line) {
    Fields fields(line);
    for (const std::string_view expected : {"HashOwner", "HashApp", "HashFunction", "Trigger"}) {
      if (fields.next() != expected) return wrong(name, 1, fmt::format("the column '{}' is missing", expected));
    }
    size_t minutes = 0;
    while (const auto field = fields.next()) {
      size_t minute = 0;
      if (!parse(*field, minute) || minute != minutes + 1) {
        return wrong(name, 1, fmt::format("column '{}' where minute {} is expected: a gap", *field, minutes + 1));
      }
      ++minutes;
    }
    if (minutes == 0) return wrong(name, 1, "there are no columns of minutes");
    return minutes;
  }

  Status read_function(const std::string& name, size_t number, std::string_view line, size_t minutes) {
    if (line.empty()) return Status();
    Fields fields(line);
    std::array<std::string_view, kNameColumns> names;
    for (std::string_view& each : names) each = fields.next().value_or("");
    if (names[1].empty() || names[2].empty()) return wrong(name, number, "HashApp or HashFunction is missing");
    const uint32_t function = names_.number(names[1], names[2]);
    for (size_t minute = 0; minute < minutes; ++minute) {
      const auto field = fields.next();
      uint32_t count = 0;
      if (!field || field->empty()) return wrong(name, number, fmt::format("minute {} is missing", minute + 1));
      if (!parse(*field, count) || count > kCountMax) {
        return wrong(name, number, fmt::format("minute {}: '{}' is no count", minute + 1, *field));
      }
      if (count > 0) add(minutes_before_ + minute, {function, count});
    }
    return fields.next() ? wrong(name, number, fmt::format("more than {} minutes", minutes)) : Status();
  }

  void add(size_t minute, Cell cell) {
    const Duration begin = kTraceMinute * static_cast<int64_t>(minute);
    if (begin + kTraceMinute <= options_.from || begin >= end_of(options_)) return;
    minutes_[minute].push_back(cell);
    total_ += cell.count;
  }

  const TraceOptions options_;
  Names names_;
  std::vector<std::vector<Cell>> minutes_;
  size_t minutes_before_ = 0;
  uint64_t total_ = 0;
  double scale_ = 1;
};

// ---- 2021: every invocation ----

class InvocationTrace : public FunctionTrace {
 public:
  static Result<std::shared_ptr<const FunctionTrace>> parse_text(const TraceText& trace, const TraceOptions& options) {
    auto result = std::make_shared<InvocationTrace>();
    std::string_view text = trace.text;
    if (take_line(text) != "app,func,end_timestamp,duration") {
      return wrong(trace.name, 1, "the columns must be app,func,end_timestamp,duration");
    }
    double before = 0;
    for (size_t number = 2; !text.empty(); ++number) {
      const std::string_view line = take_line(text);
      if (line.empty()) continue;
      FOLIOT_ASSIGN_OR_RETURN(const double begin, result->read_line(trace.name, number, line, before, options));
      before = begin;
    }
    if (result->invocations_.empty()) {
      return Status::invalid_argument("the trace has no invocations in the part that is asked for");
    }
    const Duration last = Duration::from_seconds(before) - options.from + Duration::nanoseconds(1);
    const Duration length = std::min(last, options.length);
    const double recorded = static_cast<double>(result->invocations_.size()) / length.to_seconds();
    if (options.rate > 0) result->scale_ = options.rate / recorded;
    return std::shared_ptr<const FunctionTrace>(std::move(result));
  }

  uint32_t functions() const override { return names_.size(); }
  std::unique_ptr<TraceReplay> replay(Random random) const override { return std::make_unique<Replay>(*this, random); }

 private:
  class Replay : public TraceReplay {
   public:
    Replay(const InvocationTrace& trace, Random random) : trace_(trace), random_(random) {}
    std::optional<Invocation> next() override {
      const auto& recorded = trace_.invocations_;
      while (next_ < recorded.size() && (copies_.empty() || recorded[next_].at <= copies_.front().at)) {
        copy(recorded[next_++]);
      }
      if (copies_.empty()) return std::nullopt;
      std::pop_heap(copies_.begin(), copies_.end(), later);
      const Invocation invocation = copies_.back();
      copies_.pop_back();
      return invocation;
    }

   private:
    static bool later(const Invocation& a, const Invocation& b) {
      return std::pair(a.at, a.function) > std::pair(b.at, b.function);
    }
    void copy(const Invocation& recorded) {
      const uint64_t count = round_randomly(trace_.scale_, random_);
      for (uint64_t i = 0; i < count; ++i) {
        const Duration after = i == 0 ? Duration() : Duration::from_seconds(random_.uniform());
        copies_.push_back({recorded.at + after, recorded.function});
        std::push_heap(copies_.begin(), copies_.end(), later);
      }
    }

    const InvocationTrace& trace_;
    Random random_;
    size_t next_ = 0;
    std::vector<Invocation> copies_;
  };

  // When the invocation began, in seconds.
  Result<double> read_line(const std::string& name, size_t number, std::string_view line, double before,
                           const TraceOptions& options) {
    Fields fields(line);
    const std::string_view app = fields.next().value_or("");
    const std::string_view function = fields.next().value_or("");
    const std::string_view end_text = fields.next().value_or("");
    const std::string_view duration_text = fields.next().value_or("");
    if (app.empty() || function.empty() || fields.next()) return wrong(name, number, "four fields are expected");
    double end = 0, duration = 0;
    if (!parse(end_text, end) || !(end >= 0 && end < 1e9)) {
      return wrong(name, number, fmt::format("end_timestamp '{}' is no instant in seconds", end_text));
    }
    if (!parse(duration_text, duration) || !(duration >= 0 && duration < 1e9)) {
      return wrong(name, number, fmt::format("duration '{}' is no duration in seconds", duration_text));
    }
    const double begin = std::max(end - duration, 0.0);
    if (begin < before - kRoundingSeconds) {
      return wrong(name, number, fmt::format("it begins at {:.6f} s, before the one above it: unsorted", begin));
    }
    const double in_order = std::max(begin, before);
    const Duration at = Duration::from_seconds(in_order);
    const uint32_t id = names_.number(app, function);
    if (at >= options.from && at < end_of(options)) invocations_.push_back({at - options.from, id});
    return in_order;
  }

  Names names_;
  std::vector<Invocation> invocations_;
  double scale_ = 1;
};

}  // namespace

Result<std::shared_ptr<const FunctionTrace>> parse_azure_2019(const std::vector<TraceText>& days,
                                                              const TraceOptions& options) {
  auto trace = std::make_shared<MinuteTrace>(options);
  for (const TraceText& day : days) FOLIOT_RETURN_IF_ERROR(trace->add_day(day));
  FOLIOT_RETURN_IF_ERROR(trace->finish());
  return std::shared_ptr<const FunctionTrace>(std::move(trace));
}

Result<std::shared_ptr<const FunctionTrace>> read_azure_2019(const std::vector<std::string>& files,
                                                             const TraceOptions& options) {
  auto trace = std::make_shared<MinuteTrace>(options);
  for (const std::string& file : files) {
    FOLIOT_ASSIGN_OR_RETURN(const std::string text, read_file(file));
    FOLIOT_RETURN_IF_ERROR(trace->add_day({file, text}));
  }
  FOLIOT_RETURN_IF_ERROR(trace->finish());
  return std::shared_ptr<const FunctionTrace>(std::move(trace));
}

Result<std::shared_ptr<const FunctionTrace>> parse_azure_2021(const TraceText& text, const TraceOptions& options) {
  return InvocationTrace::parse_text(text, options);
}

Result<std::shared_ptr<const FunctionTrace>> read_azure_2021(const std::string& file, const TraceOptions& options) {
  FOLIOT_ASSIGN_OR_RETURN(const std::string text, read_file(file));
  return InvocationTrace::parse_text({file, text}, options);
}

}  // namespace foliot
