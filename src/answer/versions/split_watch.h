// SplitWatch: looks at the calls that the split of a model has sent to its versions. It compares the versions
// (CanaryTrial) where the rules have `rollback`, and sends a copy of each call to the shadow where there is one.
//
// A copy is a call of class kOffline without a deadline and without a tenant: nothing waits for it. Its answer is
// compared with the client's and dropped. At most kCopiesMax of them are under way, with kCopiedBytesMax of inputs;
// what comes beyond is not copied, and counted.
//
// Threading: start() as Inference; what else is public by any thread.
#ifndef FOLIOT_ANSWER_VERSIONS_SPLIT_WATCH_H_
#define FOLIOT_ANSWER_VERSIONS_SPLIT_WATCH_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "answer/inference/inference.h"
#include "answer/inference/served_names.h"
#include "answer/versions/canary_trial.h"
#include "foundation/base/mutex.h"
#include "foundation/base/time.h"
#include "foundation/core/version_table.h"

namespace foliot {

class SplitWatch {
 public:
  static constexpr size_t kCopiesMax = 64;
  static constexpr uint64_t kCopiedBytesMax = 64 << 20;

  // Called once for each version that is found to be worse, by the thread that saw it.
  using OnWorse = std::function<void(const std::string& name, uint64_t version, const std::string& why)>;

  struct Shadow {
    uint64_t agree = 0;
    uint64_t disagree = 0;
    uint64_t failed = 0;   // the copy alone
    uint64_t skipped = 0;  // not copied
    Duration latency{};    // of the copies that were answered, together
  };
  struct Evidence {
    std::string name;
    uint64_t version = 0;
    std::array<double, CanaryTrial::kNames.size()> tests{};
  };

  // All outlive this.
  SplitWatch(Inference& below, const ServedNames& names, const std::function<TimePoint()>& now);
  ~SplitWatch();

  // A call of `name` that the split has sent to `version`; `query` names that version's model. `shadow`: 0: none.
  Inference::Started start(std::string_view name, uint64_t version, uint64_t shadow, const Query& query,
                           const Caller& caller);
  // The loss of an answer that this version gave.
  void add_loss(std::string_view name, uint64_t version, double loss);
  void set_on_worse(OnWorse on_worse) { on_worse_ = std::move(on_worse); }

  // Forgets what it has of models that are not served any more.
  void forget_gone();
  // By name and version of the shadow.
  std::map<std::pair<std::string, uint64_t>, Shadow> shadows() const;
  std::vector<Evidence> evidence() const;
  // By name and version.
  std::map<std::pair<std::string, uint64_t>, uint64_t> rollbacks() const;

 private:
  class Call;
  class Copy;
  struct Pair;
  struct Trials {
    std::vector<VersionRules::Share> split{};
    std::map<uint64_t, CanaryTrial> canaries{};
  };

  void start_copy(const std::shared_ptr<Pair>& pair, const Query& query, const Caller& caller);
  void end(Call& call, CallId id, std::unique_ptr<Answer> answer);
  void end(Copy& copy, std::unique_ptr<Answer> answer);
  void compare(const Pair& pair);
  // By the rules as they are now: what was under way when a canary was taken out no longer counts.
  template <typename Add>
  void judge(const std::string& name, uint64_t version, Add add);

  Inference& below_;
  const ServedNames& names_;
  const std::function<TimePoint()>& now_;
  OnWorse on_worse_ = [](const std::string&, uint64_t, const std::string&) {};

  mutable Mutex mutex_;
  std::unordered_map<const Call*, std::unique_ptr<Call>> calls_ GUARDED_BY(mutex_);
  std::unordered_map<const Copy*, std::unique_ptr<Copy>> copies_ GUARDED_BY(mutex_);
  uint64_t copied_bytes_ GUARDED_BY(mutex_) = 0;
  std::map<std::string, Trials, std::less<>> trials_ GUARDED_BY(mutex_);
  std::map<std::pair<std::string, uint64_t>, Shadow> shadows_ GUARDED_BY(mutex_);
  std::map<std::pair<std::string, uint64_t>, uint64_t> rollbacks_ GUARDED_BY(mutex_);
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_VERSIONS_SPLIT_WATCH_H_
