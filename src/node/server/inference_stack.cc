#include "node/server/inference_stack.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace foliot {
namespace {

// It runs for microseconds, when an answer is about to be late.
constexpr int kTimerNice = -15;

}  // namespace

InferenceStack::InferenceStack(const FrontendOptions& options, Catalog& catalog, LabelledRequestSink& requests,
                               ModelRepository& repository, const std::function<TimePoint()>& now,
                               PersonalService* personal, JobService* jobs)
    : versions_(catalog),
      names_(catalog, options.strict_readiness),
      service_({.rows_max = options.requests_in_flight_max,
                .bytes_max = options.bodies_bytes_max,
                .tensors = options.tensors},
               names_, requests, statistics_, metrics_, now),
      cached_(options.prediction_cache_bytes, service_, names_, statistics_, now),
      now_(now),
      selected_({.seed = static_cast<uint64_t>((now() - TimePoint()).nanoseconds()),
                 .inputs_bytes_max = options.bodies_bytes_max},
                versioned_, names_, statistics_, now),
      frontend_(make_frontend(
          options, {.inference = selected_,
                    .names = names_,
                    .statistics = statistics_,
                    .repository = repository,
                    .count_unknown_name = [this](std::string_view place,
                                                 std::string_view name) { metrics_.count_unknown_name(place, name); },
                    .now = now,
                    .personal = personal,
                    .jobs = jobs})) {
  frontend_->add_metrics(*this);
  frontend_->add_metrics(cache_metrics_);
  frontend_->add_metrics(selection_metrics_);
  frontend_->add_metrics(version_metrics_);
  service_.use_timer([this](TimePoint due) { timer_.set(0, due); });
  selected_.use_timer([this](TimePoint due) { timer_.set(1, due); });
}

std::string InferenceStack::text() const {
  metrics_.forget_gone([this](const std::string& name) { return names_.knows(name); }, now_());
  return metrics_.text(frontend_->tenants()) + info_;
}

void InferenceStack::trace(Tracing& tracing) {
  service_.use(tracing.tracer());
  frontend_->add_metrics(tracing);
}

void InferenceStack::log_rollbacks(std::function<void(const std::string&)> log) {
  versioned_.watch().set_on_worse([this, log = std::move(log)](const std::string& name, uint64_t version,
                                                               const std::string& why) {
    log(fmt::format("version {} of model '{}' is taken out of its split, until the rules of its model.toml change: {}",
                    version, name, why));
    versions_.take_out(name, version, why);
  });
}

Status InferenceStack::start() {
  FOLIOT_RETURN_IF_ERROR(timer_.start({.name = "foliot-timer", .nice = kTimerNice}, [this](TimePoint now) {
    service_.expire(now);
    selected_.expire(now);
  }));
  return frontend_->start();
}

}  // namespace foliot
