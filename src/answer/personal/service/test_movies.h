// For tests: personal models over a simulated disk and a store of users.
#ifndef FOLIOT_ANSWER_PERSONAL_SERVICE_TEST_MOVIES_H_
#define FOLIOT_ANSWER_PERSONAL_SERVICE_TEST_MOVIES_H_

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "answer/personal/service/personal_model.h"
#include "foundation/base/mutex.h"
#include "foundation/store/simulated_storage.h"
#include "foundation/store/test_storage.h"

namespace foliot {

inline uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing sets it
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// What the model reports of its store.
class Lines {
 public:
  std::function<void(const std::string&)> writer() {
    return [this](const std::string& line) {
      const MutexLock lock(mutex_);
      lines_.push_back(line);
    };
  }
  std::vector<std::string> take() {
    const MutexLock lock(mutex_);
    return std::exchange(lines_, {});
  }

 private:
  Mutex mutex_;
  std::vector<std::string> lines_ GUARDED_BY(mutex_);
};

inline PersonalModel::Options greedy_options() {
  return {.exploration = {.kind = ExplorationKind::kGreedy, .pool = 0}};
}

inline void snapshot(PersonalModel& model) {
  const uint64_t before = model.snapshots();
  model.request_snapshot();
  while (model.snapshots() == before) ::sched_yield();
}

// A model over a simulated disk, with all users in memory or few.
class Movies {
 public:
  Movies(std::shared_ptr<const ItemTable> items, PersonalModel::Options options, std::shared_ptr<UserStore> store)
      : items_(std::move(items)), options_(std::move(options)), store_(std::move(store)) {
    options_.on_failure = lines.writer();
  }
  Status open() {
    auto opened = PersonalModel::open(std::make_unique<SharedStorage>(disk), {.items = items_}, options_, store_);
    if (!opened.ok()) return opened.status();
    model_ = std::move(opened).value();
    return Status();
  }
  void close() { model_.reset(); }
  void restart() {
    close();
    ASSERT_TRUE(open().ok());
  }
  PersonalModel& model() { return *model_; }

  SimulatedStorage disk;
  Lines lines;

 private:
  const std::shared_ptr<const ItemTable> items_;
  PersonalModel::Options options_;
  const std::shared_ptr<UserStore> store_;
  std::unique_ptr<PersonalModel> model_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_SERVICE_TEST_MOVIES_H_
