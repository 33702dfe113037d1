#include "observe/request_log/perfetto.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace foliot {
namespace {

constexpr uint64_t kRequestsProcess = 1;
constexpr uint64_t kFirstDeviceProcess = 2;
enum Executor : uint64_t { kLoad = 1, kInput, kExec, kOutput };
constexpr std::string_view kExecutorNames[] = {"", "LOAD", "INPUT", "EXEC", "OUTPUT"};

// Of an EXEC: that of the first of its lanes. No other runs on that meanwhile.
uint64_t track_of(LaneInterval lanes) { return lanes.first == 0 ? uint64_t{kExec} : uint64_t{kOutput} + lanes.first; }

// Text within quotation marks.
std::string json(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < ' ' ? '?' : c;
  }
  return result + '"';
}

double microseconds(TimePoint time) { return (time - TimePoint()).to_microseconds(); }

uint64_t process_of(DeviceId device) { return kFirstDeviceProcess + device.value(); }

class TraceEvents {
 public:
  explicit TraceEvents(std::ostream& out) : out_(out) { out_ << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"; }
  ~TraceEvents() { out_ << "\n]}\n"; }
  TraceEvents(const TraceEvents&) = delete;
  TraceEvents& operator=(const TraceEvents&) = delete;

  void name_process(uint64_t process, std::string_view name) { name_as("process_name", process, 0, name); }
  // Tracks are shown in the order of `place`.
  void name_track(uint64_t process, uint64_t track, std::string_view name, uint64_t place) {
    name_as("thread_name", process, track, name);
    begin();
    fmt::print(out_, R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})", process,
               track, place);
  }
  // `arguments`: the inside of a JSON object.
  void slice(uint64_t process, uint64_t track, std::string_view name, TimePoint start, Duration duration,
             std::string_view arguments) {
    begin();
    fmt::print(out_,
               R"({{"ph":"X","name":{},"cat":"foliot","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{{}}}}})",
               json(name), process, track, microseconds(start), duration.to_microseconds(), arguments);
  }
  void counter(uint64_t process, std::string_view name, TimePoint time, int64_t value) {
    begin();
    fmt::print(out_, R"({{"ph":"C","name":{},"pid":{},"tid":0,"ts":{:.3f},"args":{{"value":{}}}}})", json(name),
               process, microseconds(time), value);
  }
  // An arrow between the slices that are on the two tracks at the two instants.
  void arrow_begin(uint64_t id, uint64_t process, uint64_t track, TimePoint time) {
    arrow("\"s\"", id, process, track, time);
  }
  void arrow_end(uint64_t id, uint64_t process, uint64_t track, TimePoint time) {
    arrow(R"("f","bp":"e")", id, process, track, time);
  }

 private:
  void begin() { out_ << (std::exchange(first_, false) ? "" : ",\n"); }
  void name_as(std::string_view kind, uint64_t process, uint64_t track, std::string_view name) {
    begin();
    fmt::print(out_, R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})", kind, process, track,
               json(name));
  }
  void arrow(std::string_view phase, uint64_t id, uint64_t process, uint64_t track, TimePoint time) {
    begin();
    fmt::print(out_, R"({{"ph":{},"name":"answer","cat":"request","id":{},"pid":{},"tid":{},"ts":{:.3f}}})", phase, id,
               process, track, microseconds(time));
  }

  std::ostream& out_;
  bool first_ = true;
};

template <typename Record, typename Key>
std::vector<const Record*> sorted(const std::vector<Record>& records, Key key) {
  std::vector<const Record*> result;
  result.reserve(records.size());
  for (const Record& record : records) result.push_back(&record);
  std::stable_sort(result.begin(), result.end(), [&](const Record* a, const Record* b) { return key(*a) < key(*b); });
  return result;
}

std::string arguments_of(const ActionRecord& action) {
  std::string text = fmt::format(R"("action":{},"status":"{}","expected_ms":{:.3f},"sent_ms":{:.3f})",
                                 action.id.value(), to_string(action.status),
                                 action.expected_duration.to_milliseconds(), microseconds(action.sent) / 1000);
  if (action.type == ActionType::kInfer) {
    text += fmt::format(R"(,"rows":{},"batch_size":{},"queue_length":{},"lanes":{})", action.rows, action.batch_size,
                        action.queue_length, action.lanes.count);
  }
  return text;
}

void write_infer(const ActionRecord& action, TimePoint& input_free, TraceEvents& events) {
  const uint64_t process = process_of(action.device);
  const std::string arguments = arguments_of(action);
  const TimePoint input_start = std::max(action.sent, input_free);
  if (action.input_duration > Duration()) {
    events.slice(process, kInput, action.model, input_start, action.input_duration, arguments);
    input_free = input_start + action.input_duration;
  }
  events.slice(process, track_of(action.lanes), action.model, action.start, action.end - action.start, arguments);
  if (!action.output_end.is_infinite()) {
    events.slice(process, kOutput, action.model, action.output_end - action.output_duration, action.output_duration,
                 arguments);
  }
}

void name_device(DeviceId device, TraceEvents& events) {
  const uint64_t process = process_of(device);
  events.name_process(process, fmt::format("device {}", device.value()));
  for (const Executor executor : {kLoad, kInput, kExec}) {
    events.name_track(process, executor, kExecutorNames[executor], executor);
  }
  events.name_track(process, kOutput, kExecutorNames[kOutput], kExec + kLanesMax);  // below all lanes
}

void write_devices(const Log& log, TraceEvents& events) {
  std::map<DeviceId, TimePoint> input_free;
  std::set<std::pair<DeviceId, uint32_t>> lanes;  // that have a track, but for the first
  for (const ActionRecord& action : log.actions()) {
    if (input_free.try_emplace(action.device).second) name_device(action.device, events);
    const uint32_t lane = action.lanes.first;
    if (lane > 0 && lanes.emplace(action.device, lane).second) {
      events.name_track(process_of(action.device), track_of(action.lanes), fmt::format("EXEC on lane {}", lane),
                        kExec + lane);
    }
    if (action.type == ActionType::kInfer) {
      write_infer(action, input_free[action.device], events);
    } else {
      events.slice(process_of(action.device), kLoad, fmt::format("{} {}", to_string(action.type), action.model),
                   action.start, action.end - action.start, arguments_of(action));
    }
  }
}

// Pages are taken when a LOAD is sent and free when an UNLOAD is; what is refused
// is as if it had not been sent.
void write_pages(const Log& log, TraceEvents& events) {
  std::map<DeviceId, int64_t> used;
  for (const ActionRecord* action : sorted(log.actions(), [](const ActionRecord& a) { return a.sent; })) {
    if (action->type == ActionType::kInfer || !action->done()) continue;
    int64_t& pages = used[action->device];
    pages += action->type == ActionType::kLoad ? int64_t{action->pages} : -int64_t{action->pages};
    events.counter(process_of(action->device), "pages in use", action->sent, pages);
  }
}

void write_queue(const Log& log, TraceEvents& events) {
  std::vector<std::pair<TimePoint, uint32_t>> samples;
  for (const RequestRecord& request : log.requests()) samples.emplace_back(request.arrival, request.queue_length);
  for (const ActionRecord& action : log.actions()) samples.emplace_back(action.sent, action.queue_length);
  std::sort(samples.begin(), samples.end());
  for (const auto& [time, length] : samples) {
    events.counter(kRequestsProcess, "requests queued", time, length);
  }
}

std::string arguments_of(const RequestRecord& request) {
  std::string text =
      fmt::format(R"("request":{},"status":"{}","queue_length":{},"cold_start":{})", request.id.value(),
                  request.served() ? "served" : to_string(request.refusal), request.queue_length, request.cold_start);
  if (request.slo) text += fmt::format(R"(,"slo_ms":{:.3f})", request.slo->to_milliseconds());
  if (request.action) text += fmt::format(R"(,"action":{})", request.action->value());
  if (request.load) text += fmt::format(R"(,"load":{})", request.load->value());
  return text;
}

// Each on the first track that is free.
void write_requests(const Log& log, TraceEvents& events) {
  std::map<ActionId, uint64_t> exec_tracks;
  for (const ActionRecord& action : log.actions()) exec_tracks.emplace(action.id, track_of(action.lanes));
  events.name_process(kRequestsProcess, "requests");
  std::set<uint64_t> free_tracks;
  using Busy = std::pair<TimePoint, uint64_t>;  // until when, which
  std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy_tracks;
  uint64_t tracks = 0;
  for (const RequestRecord* request : sorted(log.requests(), [](const RequestRecord& r) { return r.arrival; })) {
    while (!busy_tracks.empty() && busy_tracks.top().first <= request->arrival) {
      free_tracks.insert(busy_tracks.top().second);
      busy_tracks.pop();
    }
    if (free_tracks.empty()) {
      free_tracks.insert(++tracks);
      events.name_track(kRequestsProcess, tracks, fmt::format("in flight {}", tracks), tracks);
    }
    const uint64_t track = *free_tracks.begin();
    free_tracks.erase(free_tracks.begin());
    busy_tracks.emplace(request->departure, track);
    events.slice(kRequestsProcess, track, request->model, request->arrival, request->latency(), arguments_of(*request));
    if (request->exec_start.is_infinite() || !request->device) continue;
    events.arrow_begin(request->id.value(), kRequestsProcess, track, request->arrival);
    const auto exec = request->action ? exec_tracks.find(*request->action) : exec_tracks.end();
    events.arrow_end(request->id.value(), process_of(*request->device),
                     exec == exec_tracks.end() ? uint64_t{kExec} : exec->second, request->exec_start);
  }
}

}  // namespace

void write_perfetto(const Log& log, std::ostream& out) {
  TraceEvents events(out);
  write_requests(log, events);
  write_queue(log, events);
  write_devices(log, events);
  write_pages(log, events);
}

}  // namespace foliot
