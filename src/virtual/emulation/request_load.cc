#include "virtual/emulation/request_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cluster/transport/frame_handlers.h"
#include "cluster/transport/peer_clock.h"
#include "foundation/base/check.h"

namespace foliot {
namespace {

// Requests that fall due within this are sent together: a system call for each
// would cost more than the request.
constexpr Duration kTick = Duration::microseconds(100);
// What the controller's socket does not take is not sent: a lost request would
// only make the next one late, too.
constexpr size_t kUnsentBytesMax = size_t{4} << 20;
// How long after its deadline, or after it was sent if it has none, an answer is
// waited for.
constexpr Duration kAnswerTimeout = Duration::seconds(3);
// The load grows from this share of it during the first half of the warm-up: what
// is asked of cold devices at once is still in the queues much later.
constexpr double kFirstShare = 0.1;

}  // namespace

class RequestLoad::ControllerSession : public Session {
 public:
  ControllerSession(RequestLoad& load, Connection& connection)
      : load_(load), connection_(connection), host_clock_(connection, load.options_.pong_timeout) {}

  void start(TimePoint now) { host_clock_.start(now); }
  Connection& connection() { return connection_; }
  PeerClock& host_clock() { return host_clock_; }

  Status on_frame(const Frame& frame, TimePoint now) override {
    switch (frame.type) {
      case MessageType::kCompletion: return on_completion(frame, now);
      case MessageType::kModels: return on_models(frame, now);
      case MessageType::kPong: return on_pong(frame, now);
      case MessageType::kStatistics: return on_statistics(frame);
      case MessageType::kGoodbye: return on_goodbye(frame);
      case MessageType::kAdmission: return read<Admission>(frame);
      case MessageType::kWorkers: return read<Workers>(frame);
      case MessageType::kUnserved: return read<Unserved>(frame);
      default: return unexpected(frame);
    }
  }
  void on_close(const Status& reason, TimePoint /*now*/) override {
    load_.session_ = nullptr;
    load_.end(reason.ok() ? Status::unavailable("stopped before the end") : reason.with_context(connection_.peer()));
  }

 private:
  // What only matters to clients that have inputs.
  template <typename Message>
  static Status read(const Frame& frame) {
    Message message;
    return decode(frame, message);
  }
  Status on_completion(const Frame& frame, TimePoint now) {
    Completion completion;
    FOLIOT_RETURN_IF_ERROR(decode(frame, completion));
    if (completion.model.value() >= load_.positions_.size()) {
      return Status::invalid_argument("an answer of a model that was not asked");
    }
    completion.arrival = host_clock_.offset().to_own(completion.arrival);
    load_.on_completion(completion, now);
    return Status();
  }
  Status on_models(const Frame& frame, TimePoint now) {
    Models models;
    FOLIOT_RETURN_IF_ERROR(decode(frame, models));
    if (load_.phase_ != Phase::kConnecting) return Status();  // the load stays what it is
    load_.models_ = std::move(models.models);
    return begin_if_ready(now);
  }
  Status on_pong(const Frame& frame, TimePoint now) {
    Pong pong;
    FOLIOT_RETURN_IF_ERROR(decode(frame, pong));
    FOLIOT_RETURN_IF_ERROR(host_clock_.on_pong(pong, now));
    return begin_if_ready(now);
  }
  Status begin_if_ready(TimePoint now) {
    if (load_.phase_ == Phase::kConnecting && host_clock_.ready() && !load_.models_.empty()) load_.begin(now);
    return Status();
  }
  Status on_statistics(const Frame& frame) {
    Statistics statistics;
    FOLIOT_RETURN_IF_ERROR(decode(frame, statistics));
    load_.on_statistics(statistics);
    return Status();
  }
  RequestLoad& load_;
  Connection& connection_;
  PeerClock host_clock_;
};

RequestLoad::RequestLoad(const RequestLoadOptions& options, std::function<void()> on_end)
    : options_(options),
      on_end_(std::move(on_end)),
      random_(options.seed),
      arrivals_(make_arrivals({.kind = ArrivalKind::kRamp,
                               .rate = options.rate * kFirstShare,
                               .ramp_rate = options.rate,
                               .ramp_length = options.warm_up / 2})
                    .value()) {
  if (options.functions == 0) return;
  trace_.emplace(AzureLikeOptions{.functions = options.functions, .rate = options.rate, .seed = options.seed});
  replay_ = trace_->replay(random_.fork());
}
RequestLoad::~RequestLoad() = default;

Result<std::unique_ptr<Session>> RequestLoad::on_open(Connection& connection, Role peer, TimePoint now) {
  if (peer != Role::kController) {
    return Status::invalid_argument(fmt::format("it is a {}, not a controller", to_string(peer)));
  }
  if (connection.peer_standing().stands_by) return Status::unavailable("it stands by: name the controller that leads");
  auto session = std::make_unique<ControllerSession>(*this, connection);
  session_ = session.get();
  session->start(now);
  return std::unique_ptr<Session>(std::move(session));
}

void RequestLoad::on_no_greeting(const std::string& peer, const Status& reason) {
  end(reason.ok() ? Status::unavailable("stopped before the end") : reason.with_context(peer));
}

Result<RequestLoadResult> RequestLoad::result() const {
  if (!status_.ok()) return status_;
  return RequestLoadResult{*report_, cold_starts_, *statistics_};
}

void RequestLoad::end(Status status) {
  if (phase_ == Phase::kOver) return;
  phase_ = Phase::kOver;
  status_ = std::move(status);
  on_end_();
}

void RequestLoad::begin(TimePoint now) {
  LoadReportOptions report{.models = {}, .settings = {}};
  for (uint32_t i = 0; i < models_.size(); ++i) {
    report.models.push_back(models_[i].name);
    const uint32_t id = models_[i].id.value();
    if (id >= positions_.size()) positions_.resize(id + 1);
    positions_[id] = i;
  }
  report_.emplace(std::move(report));
  report_->set_duration(options_.duration);
  popularity_.emplace(static_cast<uint32_t>(models_.size()), options_.zipf);
  phase_ = Phase::kWarmUp;
  begin_ = now;
  measure_from_ = now + options_.warm_up;
  measure_until_ = measure_from_ + options_.duration;
  drained_by_ = measure_until_ + options_.deadline.value_or(Duration()) + kAnswerTimeout;
  next_due_ = now;
  draw_next();
}

TimePoint RequestLoad::on_turn_end(TimePoint now) {
  if (session_ == nullptr || phase_ == Phase::kOver) return TimePoint::infinite_future();
  PeerClock& clock = session_->host_clock();
  clock.keep(now);
  if (phase_ == Phase::kConnecting) return clock.next_keep();
  advance_phase(now);
  if (phase_ == Phase::kDraining || phase_ == Phase::kOver) return std::min(drained_by_, clock.next_keep());
  send_due(now);
  return std::max(next_due_.value_or(measure_until_), now + kTick);
}

void RequestLoad::advance_phase(TimePoint now) {
  if (phase_ == Phase::kWarmUp && now >= measure_from_) {
    phase_ = Phase::kMeasuring;
    session_->connection().send(StatisticsRequest{});
  }
  if (phase_ == Phase::kMeasuring && now >= measure_until_) {
    send_due(measure_until_);
    phase_ = Phase::kDraining;
    session_->connection().send(StatisticsRequest{});
  }
  if (phase_ != Phase::kDraining) return;
  if (now >= drained_by_) {
    for (; measured_unanswered_ > 0; --measured_unanswered_) {
      report_->record({.scheduled = measure_until_,
                       .sent = measure_until_,
                       .finished = now,
                       .outcome = LoadOutcome::kFailed,
                       .reason = "no answer"});
    }
    if (!statistics_) return end(Status::unavailable("the controller does not answer"));
  }
  if (measured_unanswered_ == 0 && statistics_) end(Status());
}

void RequestLoad::send_due(TimePoint now) {
  while (next_due_ && *next_due_ <= now) {
    send_one(*next_due_, next_position_, now);
    draw_next();
  }
}

// From the one that was due last, or from the beginning, to the next.
void RequestLoad::draw_next() {
  if (replay_ != nullptr) {
    while (!drawn_from_trace()) {
    }
    return;
  }
  const auto gap = arrivals_->next_gap(random_);
  next_due_ = gap ? std::optional(*next_due_ + *gap) : std::nullopt;
  next_position_ = popularity_->draw(random_);
}

// False if the invocation is left out, so that the load grows as that of arrivals_ does.
bool RequestLoad::drawn_from_trace() {
  const auto invocation = replay_->next();
  next_due_ = invocation ? std::optional(begin_ + invocation->at) : std::nullopt;
  if (!invocation) return true;
  next_position_ = invocation->function % static_cast<uint32_t>(models_.size());
  if (options_.warm_up == Duration()) return true;
  const double grown = invocation->at.to_seconds() / (options_.warm_up / 2).to_seconds();
  return grown >= 1 || random_.uniform() < kFirstShare + (1 - kFirstShare) * grown;
}

void RequestLoad::send_one(TimePoint due, uint32_t position, TimePoint now) {
  const bool measured = due >= measure_from_;
  if (!measured) first_measured_ = RequestId(next_request_ + 1);
  Connection& connection = session_->connection();
  if (connection.unsent_bytes() > kUnsentBytesMax) {
    if (measured) {
      report_->record({.model = position,
                       .scheduled = due,
                       .sent = now,
                       .finished = now,
                       .outcome = LoadOutcome::kUnsent,
                       .slo = options_.deadline.value_or(Duration::max())});
    }
    return;
  }
  measured_unanswered_ += measured ? 1 : 0;
  const TimePoint arrival = session_->host_clock().offset().to_host(due);
  connection.send(Request{.id = RequestId(next_request_++),
                          .model = models_[position].id,
                          .bucket = BucketId(0),
                          // There is no payload; so the handle, which comes back unread, says when it was sent.
                          .payload = PayloadHandle(static_cast<uint64_t>(now.nanoseconds())),
                          .arrival = arrival,
                          .deadline = options_.deadline ? arrival + *options_.deadline : TimePoint::infinite_future(),
                          .tenant = options_.tenant});
}

void RequestLoad::on_completion(const Completion& completion, TimePoint now) {
  if (completion.id < first_measured_ || measured_unanswered_ == 0) return;
  --measured_unanswered_;
  cold_starts_ += completion.cold_start ? 1 : 0;
  report_->record({.model = positions_[completion.model.value()],
                   .scheduled = completion.arrival,
                   .sent = TimePoint::from_nanoseconds(static_cast<int64_t>(completion.payload.value())),
                   .finished = now,
                   .outcome = completion.served() ? LoadOutcome::kAnswered : LoadOutcome::kRefused,
                   .reason = completion.served() ? std::string_view() : to_string(completion.refusal),
                   .slo = options_.deadline.value_or(Duration::max())});
}

// The first answer only marks where the measurement begins.
void RequestLoad::on_statistics(const Statistics& statistics) {
  if (phase_ == Phase::kDraining) statistics_ = statistics;
}

}  // namespace foliot
