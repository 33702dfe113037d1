// FeatureAsker: asks models for the features of items, as any other caller of an Inference does: with a deadline, and
// in rows of one call where inputs are of one shape.
//
// The features of an ask have one version: that it names. Any other is an error (503).
//
// Bounded: by what the Inference admits; more is refused there (overload).
//
// Threading: start() and stop() by its owner, ask() by any thread. What is done is called by its own thread, and must
// not block.
#ifndef FOLIOT_ANSWER_PERSONAL_SERVICE_FEATURE_ASKER_H_
#define FOLIOT_ANSWER_PERSONAL_SERVICE_FEATURE_ASKER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "answer/inference/call_error.h"
#include "answer/inference/inference.h"
#include "answer/inference/mailbox.h"
#include "answer/inference/tenant.h"
#include "answer/personal/items/known_items.h"
#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/core/catalog.h"
#include "foundation/core/request.h"
#include "foundation/platform/thread.h"

namespace foliot {

// An output of one version of a model, whose rows are features.
struct FeatureModel {
  std::string name;
  std::string version{};
  std::string content{};  // of the model, as ModelInfo
  std::string output{};
  size_t features = 0;  // numbers of a row
  bool batching = true;

  uint64_t checksum() const;
};

class FeatureAsker : private AnswerSink {
 public:
  // Of one call of the Inference.
  static constexpr size_t kRowsMax = 64;
  // A row of padded_rows(features) entries for each input, in their order; or why there are none.
  using Done = std::function<void(std::variant<std::vector<float>, CallError>)>;
  struct Ask {
    FeatureModel model;
    std::vector<ItemInput> inputs;  // at least one
    TimePoint arrival;
    TimePoint deadline = TimePoint::infinite_future();
    std::shared_ptr<Tenant> tenant{};
    Done done;
  };

  // The catalog outlives it. `now`: the clock of deadlines.
  FeatureAsker(const Catalog& catalog, std::function<TimePoint()> now);
  ~FeatureAsker() override;

  // Once. `inference` outlives what was asked; `rows_max`: that it has in flight at most.
  Status start(Inference& inference, uint32_t rows_max);
  // What is not answered is refused (kDraining). This outlives the calls that are under way.
  void stop();

  void ask(Ask ask);
  TimePoint now() const { return now_(); }

 private:
  struct Pending;  // an ask
  struct Flight;   // a call of the Inference
  using PendingPtr = std::shared_ptr<Pending>;

  void run();
  void begin(const PendingPtr& pending);
  std::optional<CallError> start_call(const PendingPtr& pending, std::vector<size_t> places);
  void on_answer(CallId call, std::unique_ptr<Answer> answer) override;
  // Writes the rows; or why it cannot.
  std::optional<CallError> read(const Flight& flight, Answer& answer) const;
  void fail(Pending& pending, CallError error);
  void on_part(const PendingPtr& pending);

  const Catalog& catalog_;
  const std::function<TimePoint()> now_;
  Inference* inference_ = nullptr;
  std::unique_ptr<Mailbox> mailbox_;
  std::map<CallId, std::unique_ptr<Flight>> flights_;  // of its thread

  Mutex mutex_;
  Condition woken_;
  bool has_mail_ GUARDED_BY(mutex_) = false;
  bool stopping_ GUARDED_BY(mutex_) = false;
  Thread thread_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_SERVICE_FEATURE_ASKER_H_
