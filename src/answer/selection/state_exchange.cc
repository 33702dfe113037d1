#include "answer/selection/state_exchange.h"

#include <utility>

namespace foliot {
namespace {

// Of one application in one round; what is left goes with the next.
constexpr int kBatchesMax = 16;

void keep_first(Status& first, Status status) {
  if (first.ok()) first = std::move(status);
}

}  // namespace

Status StateExchange::exchange() {
  std::map<std::string, Progress> served;
  Status unavailable, damaged;
  for (const std::shared_ptr<ServedApplication>& application : applications_()) {
    const std::string name = application->shared_name();
    Progress& progress = served[name];
    if (const auto known = progress_.find(name); known != progress_.end()) progress = std::move(known->second);
    keep_first(unavailable, exchange(*application, name, progress, damaged));
  }
  progress_ = std::move(served);
  return unavailable.ok() ? damaged : unavailable;
}

Status StateExchange::exchange(ServedApplication& application, const std::string& name, Progress& progress,
                               Status& damaged) {
  // First, since what was written must not be read as another's.
  if (!progress.unanswered.empty()) FOLIOT_RETURN_IF_ERROR(write(application, name, progress, damaged));
  FOLIOT_RETURN_IF_ERROR(read(application, name, progress, damaged));
  for (int i = 0; i < kBatchesMax; ++i) {
    progress.unanswered = application.unshared(name, SharedStates::kStatesMax);
    if (progress.unanswered.empty()) break;
    ++progress.batch.number;
    progress.batch.contexts_max = application.application()->contexts_max;
    progress.batch.writes.clear();
    for (const ServedApplication::Unshared& one : progress.unanswered) progress.batch.writes.push_back(one.state);
    FOLIOT_RETURN_IF_ERROR(write(application, name, progress, damaged));
  }
  return Status();
}

Status StateExchange::read(ServedApplication& application, const std::string& name, Progress& progress,
                           Status& damaged) {
  size_t count = SharedStates::kStatesMax;
  while (count == SharedStates::kStatesMax) {
    FOLIOT_ASSIGN_OR_RETURN(const std::vector<SharedState> states, states_.read(name, progress.revision));
    for (const SharedState& state : states) {
      keep_first(damaged, application.take(name, state));
      progress.revision = state.revision;
    }
    count = states.size();
  }
  return Status();
}

Status StateExchange::write(ServedApplication& application, const std::string& name, Progress& progress,
                            Status& damaged) {
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<SharedStates::Written> results,
                          states_.write(name, writer_, progress.batch));
  const auto unanswered = std::exchange(progress.unanswered, {});
  for (size_t i = 0; i < results.size(); ++i) {
    const SharedStates::Written& written = results[i];
    if (written.instead) {
      keep_first(damaged, application.take(name, {unanswered[i].state.context, written.revision, *written.instead}));
    } else {
      application.set_shared(unanswered[i], written.revision);
    }
  }
  return Status();
}

}  // namespace foliot
