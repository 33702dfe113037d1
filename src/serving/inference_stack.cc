#include "serving/inference_stack.h"

#include <string_view>

namespace foliot {

InferenceStack::InferenceStack(const FrontendOptions& options, const Catalog& catalog, LabelledRequestSink& requests,
                               ModelRepository& repository, const std::function<TimePoint()>& now,
                               PersonalService* personal)
    : names_(catalog, options.strict_readiness),
      service_({.rows_max = options.requests_in_flight_max,
                .bytes_max = options.bodies_bytes_max,
                .tensors = options.tensors},
               names_, requests, statistics_, metrics_, now),
      cached_(options.prediction_cache_bytes, service_, names_, statistics_, now),
      selected_(cached_, names_, statistics_, now, static_cast<uint64_t>((now() - TimePoint()).nanoseconds())),
      frontend_(make_frontend(
          options, {.inference = selected_,
                    .names = names_,
                    .statistics = statistics_,
                    .repository = repository,
                    .count_unknown_name = [this](std::string_view place,
                                                 std::string_view name) { metrics_.count_unknown_name(place, name); },
                    .now = now,
                    .personal = personal})) {
  frontend_->add_metrics(*this);
  frontend_->add_metrics(cache_metrics_);
  frontend_->add_metrics(selection_metrics_);
}

}  // namespace foliot
