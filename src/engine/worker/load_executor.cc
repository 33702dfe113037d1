#include "engine/worker/load_executor.h"

namespace foliot {

LoadExecutor::LoadExecutor(uint32_t page_count, size_t queue_capacity, ModelTable& models, Engine& engine,
                           OutcomeSink& outcomes)
    : page_cache_(page_count),
      models_(models),
      engine_(engine),
      outcomes_(outcomes),
      inbox_(queue_capacity),
      queue_(inbox_.capacity()) {}

Executor::Step LoadExecutor::poll(TimePoint now) {
  while (!queue_.full()) {
    std::optional<Action> action = inbox_.pop();
    if (!action) break;
    const auto [earliest, latest] = std::pair(action->earliest, action->latest);
    queue_.push(*std::move(action), earliest, latest);
  }
  while (true) {
    switch (queue_.head_state(now)) {
      case HeadState::kNone: return {.wake = TimePoint::infinite_future()};
      case HeadState::kWaiting: return {.wake = queue_.head_earliest()};
      case HeadState::kTooLate: report(queue_.pop(), OutcomeStatus::kTooLate, now, now); continue;
      case HeadState::kOpen: break;
    }
    current_ = queue_.pop();
    const OutcomeStatus status = current_.type == ActionType::kLoad ? begin_load(current_) : begin_unload(current_);
    if (status == OutcomeStatus::kDone) return {.run = true, .action = &current_};
    report(current_, status, now, now);
  }
}

Status LoadExecutor::load_now(ModelId model) {
  std::vector<PageIndex>& pages = models_.pages(model);
  page_cache_.acquire(models_.find(model)->pages, pages);
  const Status status = engine_.load(model, pages);
  status.ok() ? models_.set_resident(model) : page_cache_.release(pages);
  return status;
}

OutcomeStatus LoadExecutor::begin_load(const Action& action) {
  const WorkerModel* model = models_.find(action.model);
  if (model == nullptr) return OutcomeStatus::kUnknownModel;
  if (models_.resident(action.model)) return OutcomeStatus::kBusy;
  if (model->pages > page_cache_.free_pages()) return OutcomeStatus::kNoPages;
  page_cache_.acquire(model->pages, models_.pages(action.model));
  return OutcomeStatus::kDone;
}

OutcomeStatus LoadExecutor::begin_unload(const Action& action) {
  if (models_.find(action.model) == nullptr) return OutcomeStatus::kUnknownModel;
  if (!models_.resident(action.model)) return OutcomeStatus::kNotLoaded;
  return models_.begin_unload(action.model) ? OutcomeStatus::kDone : OutcomeStatus::kBusy;
}

Status LoadExecutor::perform() {
  if (current_.type == ActionType::kLoad) return engine_.load(current_.model, models_.pages(current_.model));
  engine_.unload(current_.model);
  return Status();
}

void LoadExecutor::finish(TimePoint start, TimePoint end, const Status& status) {
  if (current_.type == ActionType::kLoad && status.ok()) {
    models_.set_resident(current_.model);
  } else {
    page_cache_.release(models_.pages(current_.model));
  }
  report(current_, status.ok() ? OutcomeStatus::kDone : OutcomeStatus::kFailed, start, end);
}

void LoadExecutor::report(const Action& action, OutcomeStatus status, TimePoint start, TimePoint end) {
  outcomes_.report({.action = action.id,
                    .type = action.type,
                    .device = action.device,
                    .model = action.model,
                    .status = status,
                    .start = start,
                    .end = end,
                    .duration = end - start});
}

}  // namespace foliot
