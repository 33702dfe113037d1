#include "observe/request_log/log_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <memory>
#include <system_error>
#include <utility>

#include "foundation/base/bounded_array.h"
#include "foundation/base/escaped_text.h"

namespace foliot {
namespace {

constexpr std::string_view kDropped = "# dropped ";

// Of the first version of each file.
template <typename Record>
constexpr size_t kFieldsMin = std::is_same_v<Record, RequestRecord>  ? 20
                              : std::is_same_v<Record, ActionRecord> ? 24
                                                                     : 9;

// The rows of an action as one field: their ids, separated by spaces.
template <typename Record>
struct RowList {
  Record& action;
};

// A label as two fields: what is kept of the id, and the bytes of all of it.
template <typename Record>
struct LabelText {
  Record& request;
};
template <typename Record>
struct LabelBytes {
  Record& request;
};

// How an application chose the model.
template <typename Record>
struct SelectionText {
  Record& request;
};

// Of feedback: text from outside, escaped.
template <typename Text>
struct OutsideText {
  Text& text;
};
template <typename Text>
OutsideText<Text> outside(Text& text) {
  return {text};
}
// Of feedback: "NAME=PROBABILITY" of all models, without a number where it was not available; the
// names of those that were asked; "NAME=LOSS" where it is known. Separated by spaces.
template <typename Record>
struct ModelProbabilities {
  Record& feedback;
};
template <typename Record>
struct ModelsAsked {
  Record& feedback;
};
template <typename Record>
struct ModelLosses {
  Record& feedback;
};

// Every field of a record, in the order of the file: the one place that says what
// a log holds. `Record` is const to write and not const to read.
template <typename Record, typename Visitor>
void visit_request(Record& r, Visitor& visit) {
  visit("id", r.id);
  visit("model", r.model);
  visit("bucket", r.bucket);
  visit("arrival_us", r.arrival);
  visit("deadline_us", r.deadline);
  visit("slo_us", r.slo);
  visit("queue_length", r.queue_length);
  visit("cold_start", r.cold_start);
  visit("returns", r.returns);
  visit("status", r.refusal);
  visit("departure_us", r.departure);
  visit("earliest_completion_us", r.earliest_completion);
  visit("load", r.load);
  visit("action", r.action);
  visit("device", r.device);
  visit("batch_size", r.batch_size);
  visit("exec_start_us", r.exec_start);
  visit("input_us", r.input_duration);
  visit("exec_us", r.exec_duration);
  visit("output_us", r.output_duration);
  visit("client_id", LabelText<Record>{r});
  visit("client_id_bytes", LabelBytes<Record>{r});
  visit("class", r.request_class);
  visit("task", r.task);
  visit("selection", SelectionText<Record>{r});
  visit("unmet", r.unmet);
}

template <typename Record, typename Visitor>
void visit_action(Record& r, Visitor& visit) {
  visit("id", r.id);
  visit("type", r.type);
  visit("device", r.device);
  visit("model", r.model);
  visit("pages", r.pages);
  visit("sent_us", r.sent);
  visit("outcome_us", r.outcome);
  visit("earliest_us", r.earliest);
  visit("latest_us", r.latest);
  visit("expected_start_us", r.expected_start);
  visit("expected_end_us", r.expected_end);
  visit("expected_us", r.expected_duration);
  visit("start_us", r.start);
  visit("end_us", r.end);
  visit("duration_us", r.duration);
  visit("status", r.status);
  visit("queue_length", r.queue_length);
  visit("bucket", r.bucket);
  visit("batch_size", r.batch_size);
  visit("input_us", r.input_duration);
  visit("output_us", r.output_duration);
  visit("output_end_us", r.output_end);
  visit("rows", r.rows);
  visit("requests", RowList<Record>{r});
  visit("kind", r.kind);
  visit("lane", r.lanes.first);
  visit("lanes", r.lanes.count);
}

template <typename Record, typename Visitor>
void visit_feedback(Record& r, Visitor& visit) {
  visit("id", outside(r.id));
  visit("application", outside(r.application));
  visit("policy", outside(r.policy));
  visit("context", outside(r.context));
  visit("answered_us", r.answered);
  visit("observed_us", r.observed);
  visit("probabilities", ModelProbabilities<Record>{r});
  visit("asked", ModelsAsked<Record>{r});
  visit("losses", ModelLosses<Record>{r});
}

template <typename Visitor>
void visit_fields(const FeedbackRecord& r, Visitor& visit) {
  visit_feedback(r, visit);
}
template <typename Visitor>
void visit_fields(FeedbackRecord& r, Visitor& visit) {
  visit_feedback(r, visit);
}
template <typename Visitor>
void visit_fields(const RequestRecord& r, Visitor& visit) {
  visit_request(r, visit);
}
template <typename Visitor>
void visit_fields(RequestRecord& r, Visitor& visit) {
  visit_request(r, visit);
}
template <typename Visitor>
void visit_fields(const ActionRecord& r, Visitor& visit) {
  visit_action(r, visit);
}
template <typename Visitor>
void visit_fields(ActionRecord& r, Visitor& visit) {
  visit_action(r, visit);
}

// ---- Writing ----

class FieldNames {
 public:
  template <typename T>
  void operator()(std::string_view name, const T&) {
    if (!text_.empty()) text_ += ',';
    text_ += name;
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

class FieldWriter {
 public:
  FieldWriter(TimePoint origin, std::string& to) : origin_(origin), to_(to) {}

  template <typename T>
  void operator()(std::string_view /*name*/, const T& value) {
    if (!std::exchange(first_, false)) to_ += ',';
    put(value);
  }

 private:
  void put(uint64_t value) {
    char digits[20];
    to_.append(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr);
  }
  void put(uint32_t value) { put(uint64_t{value}); }
  void put(bool value) { to_ += value ? '1' : '0'; }
  template <typename Tag, typename Rep>
  void put(Id<Tag, Rep> id) {
    put(uint64_t{id.value()});
  }
  template <typename T>
  void put(const std::optional<T>& value) {
    if (value) put(*value);
  }
  void put(Duration duration) {
    int64_t ns = duration.nanoseconds();
    if (ns < 0) to_ += '-';
    ns = ns < 0 ? -ns : ns;
    put(static_cast<uint64_t>(ns / 1000));
    const auto below = static_cast<int>(ns % 1000);
    const char decimals[] = {'.', digit(below / 100), digit(below / 10 % 10), digit(below % 10)};
    to_.append(decimals, sizeof(decimals));
  }
  void put(TimePoint time) {
    if (!time.is_infinite()) put(time - origin_);
  }
  void put(Refusal refusal) { to_ += refusal == Refusal::kNone ? "served" : to_string(refusal); }
  void put(UnmetRequirement unmet) { to_ += to_string(unmet); }
  void put(ActionType type) { to_ += to_string(type); }
  void put(RequestClass request_class) { to_ += to_string(request_class); }
  void put(OutcomeStatus status) { to_ += to_string(status); }
  void put(std::string_view name) {
    const bool quote = name.find_first_of(",\"") != std::string_view::npos;
    if (quote) to_ += '"';
    for (const char c : name) {
      if (c == '"') to_ += '"';
      to_ += static_cast<unsigned char>(c) < ' ' ? '?' : c;
    }
    if (quote) to_ += '"';
  }
  void put(const RowList<const ActionRecord>& list) {
    for (size_t i = 0; i < list.action.requests.size(); ++i) {
      if (i > 0) to_ += ' ';
      put(list.action.requests[i]);
    }
  }
  void put(const LabelText<const RequestRecord>& of) {
    if (of.request.label != nullptr) put(std::string_view(escaped(of.request.label->text)));
  }
  void put(const SelectionText<const RequestRecord>& of) {
    if (of.request.label) put(std::string_view(escaped(of.request.label->selection)));
  }
  void put(const LabelBytes<const RequestRecord>& of) {
    if (of.request.label != nullptr && of.request.label->bytes > 0) put(of.request.label->bytes);
  }
  void put(const OutsideText<const std::string>& of) { put(std::string_view(escaped(of.text))); }
  void put(const ModelProbabilities<const FeedbackRecord>& of) {
    std::string text;
    for (const FeedbackRecord::Model& model : of.feedback.models) {
      text += fmt::format("{}{}=", text.empty() ? "" : " ", list_name(model.name));
      if (model.probability) text += fmt::format("{}", *model.probability);
    }
    put(std::string_view(text));
  }
  void put(const ModelsAsked<const FeedbackRecord>& of) {
    std::string text;
    for (const FeedbackRecord::Model& model : of.feedback.models) {
      if (model.asked) text += (text.empty() ? "" : " ") + list_name(model.name);
    }
    put(std::string_view(text));
  }
  void put(const ModelLosses<const FeedbackRecord>& of) {
    std::string text;
    for (const FeedbackRecord::Model& model : of.feedback.models) {
      if (model.loss) text += fmt::format("{}{}={}", text.empty() ? "" : " ", list_name(model.name), *model.loss);
    }
    put(std::string_view(text));
  }
  // Without the characters that separate items of a list.
  static std::string list_name(std::string_view name) {
    std::string text;
    for (const char c : escaped(name)) {
      text += c == ' ' ? "\\x20" : c == '=' ? "\\x3d" : std::string(1, c);
    }
    return text;
  }
  static char digit(int value) { return static_cast<char>('0' + value); }

  TimePoint origin_;
  std::string& to_;
  bool first_ = true;
};

// ---- Reading ----

template <typename Enum>
bool parse_name(std::string_view text, Enum last, Enum& into) {
  for (auto i = uint8_t{0}; i <= static_cast<uint8_t>(last); ++i) {
    if (to_string(static_cast<Enum>(i)) != text) continue;
    into = static_cast<Enum>(i);
    return true;
  }
  return false;
}

// Takes field after field off a line; after the first that is wrong, none.
class FieldReader {
 public:
  FieldReader(std::string_view line, RecordMemory& memory, size_t fields)
      : rest_(line), memory_(memory), left_(fields) {}

  template <typename T>
  void operator()(std::string_view name, T&& value) {
    if (!error_.empty() || left_ == 0) return;
    --left_;
    if (at_end_) {
      error_ = fmt::format("the line ends before its field '{}'; is it cut off?", name);
      return;
    }
    const std::string text = next();
    if (!get(text, value)) error_ = fmt::format("'{}' is no {}", text, name);
  }
  Status finish() const {
    if (!error_.empty()) return Status::invalid_argument(error_);
    if (!at_end_) return Status::invalid_argument(fmt::format("there is more after the last field: '{}'", rest_));
    return Status();
  }

 private:
  std::string next() {
    std::string field;
    bool quoted = false;
    size_t i = 0;
    for (; i < rest_.size() && (quoted || rest_[i] != ','); ++i) {
      if (rest_[i] != '"') {
        field += rest_[i];
      } else if (quoted && i + 1 < rest_.size() && rest_[i + 1] == '"') {
        field += rest_[i++];
      } else {
        quoted = !quoted;
      }
    }
    at_end_ = i == rest_.size();
    rest_.remove_prefix(at_end_ ? i : i + 1);
    return field;
  }

  template <typename Number>
  static bool get_number(std::string_view text, Number& into) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
    return error == std::errc() && end == text.data() + text.size();
  }
  static bool get(std::string_view text, uint32_t& into) { return get_number(text, into); }
  static bool get(std::string_view text, bool& into) {
    into = text == "1";
    return text == "0" || text == "1";
  }
  template <typename Tag, typename Rep>
  static bool get(std::string_view text, Id<Tag, Rep>& into) {
    Rep value = 0;
    if (!get_number(text, value)) return false;
    into = Id<Tag, Rep>(value);
    return true;
  }
  template <typename T>
  static bool get(std::string_view text, std::optional<T>& into) {
    return text.empty() || get(text, into.emplace());
  }
  static bool get(std::string_view text, Duration& into) {
    const bool negative = text.starts_with('-');
    if (negative) text.remove_prefix(1);
    const size_t point = text.find('.');
    int64_t whole = 0;
    int64_t decimals = 0;
    if (point == std::string_view::npos || text.size() - point != 4) return false;
    if (!get_number(text.substr(0, point), whole) || !get_number(text.substr(point + 1), decimals)) return false;
    if (whole < 0 || decimals < 0 || whole > std::numeric_limits<int64_t>::max() / 1000 - 1) return false;
    into = Duration::nanoseconds(whole * 1000 + decimals);
    if (negative) into = -into;
    return true;
  }
  static bool get(std::string_view text, TimePoint& into) {
    Duration since_origin;
    if (text.empty()) {
      into = kNoTime;
    } else if (get(text, since_origin)) {
      into = TimePoint() + since_origin;
    } else {
      return false;
    }
    return true;
  }
  static bool get(std::string_view text, Refusal& into) {
    into = Refusal::kNone;
    return text == "served" || (text != "none" && parse_name(text, kRefusalLast, into));
  }
  static bool get(std::string_view text, UnmetRequirement& into) {
    return parse_name(text, kUnmetRequirementLast, into);
  }
  static bool get(std::string_view text, RequestClass& into) { return parse_name(text, kRequestClassLast, into); }
  static bool get(std::string_view text, ActionType& into) { return parse_name(text, ActionType::kInfer, into); }
  static bool get(std::string_view text, OutcomeStatus& into) { return parse_name(text, kOutcomeStatusLast, into); }
  bool get(std::string_view text, std::string_view& into) {
    into = memory_.keep(text);
    return true;
  }
  bool get(std::string_view text, const RowList<ActionRecord>& list) {
    if (list.action.rows > kBatchSizeMax) return false;
    BoundedArray<RequestId, kBatchSizeMax> requests;
    while (!text.empty() && requests.size() < list.action.rows) {
      const size_t end = std::min(text.find(' '), text.size());
      RequestId request;
      if (!get(text.substr(0, end), request)) return false;
      requests.add(request);
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (requests.size() > 0) list.action.requests = memory_.keep({requests.begin(), requests.end()});
    return text.empty() && requests.size() == list.action.rows;
  }

  static bool get(std::string_view text, const LabelText<RequestRecord>& of) {
    if (text.empty()) return true;
    std::optional<std::string> id = unescaped(text);
    if (!id || id->size() > kCallLabelBytesMax) return false;
    of.request.label = std::make_shared<const CallLabel>(CallLabel{.text = *std::move(id)});
    return true;
  }
  static bool get(std::string_view text, const SelectionText<RequestRecord>& of) {
    if (text.empty()) return true;
    std::optional<std::string> selection = unescaped(text);
    if (!selection || selection->size() > kSelectionTextBytesMax) return false;
    CallLabel label = of.request.label ? *of.request.label : CallLabel();
    label.selection = *std::move(selection);
    of.request.label = std::make_shared<const CallLabel>(std::move(label));
    return true;
  }
  static bool get(std::string_view text, const LabelBytes<RequestRecord>& of) {
    if (of.request.label == nullptr) return text.empty();
    CallLabel label = *of.request.label;
    if (!get(text, label.bytes) || label.bytes < label.text.size()) return false;
    of.request.label = std::make_shared<const CallLabel>(std::move(label));
    return true;
  }

  static bool get(std::string_view text, const OutsideText<std::string>& of) {
    std::optional<std::string> plain = plain_text(text);
    if (!plain) return false;
    of.text = *std::move(plain);
    return true;
  }
  static bool get(std::string_view text, const ModelProbabilities<FeedbackRecord>& of) {
    return for_each_item(text, [&](std::string name, std::string_view number) {
      FeedbackRecord::Model& model = of.feedback.models.emplace_back(FeedbackRecord::Model{.name = std::move(name)});
      return number.empty() || get_share(number, model.probability.emplace());
    });
  }
  static bool get(std::string_view text, const ModelsAsked<FeedbackRecord>& of) {
    return for_each_item(text, [&](const std::string& name, std::string_view number) {
      FeedbackRecord::Model* model = find_model(of.feedback, name);
      if (model != nullptr) model->asked = true;
      return model != nullptr && number.empty();
    });
  }
  static bool get(std::string_view text, const ModelLosses<FeedbackRecord>& of) {
    return for_each_item(text, [&](const std::string& name, std::string_view number) {
      FeedbackRecord::Model* model = find_model(of.feedback, name);
      return model != nullptr && get_share(number, model->loss.emplace());
    });
  }
  static FeedbackRecord::Model* find_model(FeedbackRecord& feedback, const std::string& name) {
    const auto found = std::ranges::find(feedback.models, name, &FeedbackRecord::Model::name);
    return found == feedback.models.end() ? nullptr : &*found;
  }
  static bool get_share(std::string_view text, double& into) {
    return get_number(text, into) && into >= 0 && into <= 1;
  }
  // The separators of a list may be escaped, too.
  static std::optional<std::string> plain_text(std::string_view text) {
    std::string inner;
    for (size_t i = 0; i < text.size(); ++i) {
      const std::string_view code = text.substr(i, 4);
      const bool separator = code == "\\x20" || code == "\\x3d";
      const bool pair = !separator && text[i] == '\\' && i + 1 < text.size();
      inner += separator ? std::string(1, code == "\\x20" ? ' ' : '=') : std::string(text.substr(i, pair ? 2 : 1));
      i += separator ? 3 : pair ? 1 : 0;
    }
    return unescaped(inner);
  }
  // "NAME" or "NAME=NUMBER" each, separated by spaces. False: one is wrong.
  template <typename Take>
  static bool for_each_item(std::string_view text, const Take& take) {
    while (!text.empty()) {
      const std::string_view item = text.substr(0, text.find(' '));
      text.remove_prefix(std::min(item.size() + 1, text.size()));
      const size_t equals = item.find('=');
      std::optional<std::string> name = plain_text(item.substr(0, equals));
      const std::string_view number = equals == std::string_view::npos ? "" : item.substr(equals + 1);
      if (!name || !take(*std::move(name), number)) return false;
    }
    return true;
  }

  std::string_view rest_;
  RecordMemory& memory_;
  size_t left_;  // fields
  bool at_end_ = false;
  std::string error_;
};

}  // namespace

template <typename Record>
std::string LogFormat<Record>::header() {
  FieldNames names;
  const Record record;
  visit_fields(record, names);
  return names.take();
}

template <typename Record>
void LogFormat<Record>::append(const Record& record, TimePoint origin, std::string& to) {
  FieldWriter writer(origin, to);
  visit_fields(record, writer);
  to += '\n';
}

template <typename Record>
std::optional<size_t> LogFormat<Record>::fields_in(std::string_view given) {
  const std::string known = header() + ',';
  if (!known.starts_with(given) || known[given.size()] != ',') return std::nullopt;
  const auto fields = static_cast<size_t>(std::ranges::count(given, ',')) + 1;
  return fields < kFieldsMin<Record> ? std::nullopt : std::optional(fields);
}

template <typename Record>
Result<Record> LogFormat<Record>::parse(std::string_view line, RecordMemory& memory, size_t fields) {
  FieldReader reader(line, memory, fields);
  Record record;
  visit_fields(record, reader);
  FOLIOT_RETURN_IF_ERROR(reader.finish());
  return record;
}

template struct LogFormat<RequestRecord>;
template struct LogFormat<ActionRecord>;
template struct LogFormat<FeedbackRecord>;

std::string dropped_line(uint64_t count) { return fmt::format("{}{}\n", kDropped, count); }

std::optional<uint64_t> parse_dropped_line(std::string_view line) {
  if (!line.starts_with(kDropped)) return std::nullopt;
  line.remove_prefix(kDropped.size());
  uint64_t count = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), count);
  if (error != std::errc() || end != line.data() + line.size()) return std::nullopt;
  return count;
}

}  // namespace foliot
