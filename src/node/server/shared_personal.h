// SharedPersonal: personal models whose users are kept on several front ends (cluster/sessions/user_shards.h). A call
// is divided by users; each part is answered by the user's home, here or on another front end, and the parts are
// joined. One that fails fails the call: observations of other users in it may count, and may be sent again with the
// same ids.
//
// Calls of other front ends count neither with a key here nor with its limits: they did where they came in.
//
// Bounded: UserShards::Options::calls_max parts at a time; further ones are refused (overload).
//
// Threading: as PersonalService.
#ifndef FOLIOT_NODE_SERVER_SHARED_PERSONAL_H_
#define FOLIOT_NODE_SERVER_SHARED_PERSONAL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "answer/inference/personal_service.h"
#include "answer/personal/service/personal_models.h"
#include "cluster/sessions/home_links.h"
#include "cluster/sessions/user_shards.h"
#include "foundation/base/mutex.h"
#include "foundation/base/time.h"
#include "node/server/shared_calls.h"

namespace foliot {

class SharedPersonal : public PersonalService, private ShardStore {
 public:
  // `name`: of this front end. Models and links outlive it. `now` is the loop's clock.
  SharedPersonal(PersonalModels& models, HomeLinks& links, std::string name, std::function<TimePoint()> now);

  // Once, before the loop runs, when the models are open.
  void open() { served_ = models_.replicas(); }
  // Clients' calls from now on are refused (kDraining); other front ends' are answered.
  void drain() { draining_ = true; }
  // After drain(). False: some calls of clients are not.
  bool wait_until_answered(Duration timeout);
  // When the loop has ended: what is not answered is refused.
  void stop();
  UserShards& shards() { return shards_; }

  void predict(const PersonalCall& call, std::vector<UserItem> pairs, PersonalDone done) override;
  void top_k(const PersonalCall& call, TopKQuery query, PersonalDone done) override;
  void observe(const PersonalCall& call, std::vector<ItemObservation> observations, PersonalDone done) override;
  void forget(const PersonalCall& call, std::vector<uint64_t> users, PersonalDone done) override;

 private:
  // One user's part of a call, and where its results belong.
  struct Part {
    uint64_t user = 0;
    SharedCall call{};
    std::vector<size_t> places{};  // of predictions or lists
  };
  struct Joined;
  using ByUser = std::map<uint64_t, Part>;

  void start(const PersonalCall& call, ByUser parts, size_t requests, PersonalAnswer answer, PersonalDone done);
  void finish(Joined& joined);
  void finish_part(const std::shared_ptr<Joined>& joined, const Part& part, const ShardResult& result);
  // Carries it out here. `done`: on the loop's thread.
  void carry_out(const ShardCall& call, const SharedCall& shared, std::function<void(Executed)> done);

  std::vector<std::string> models() const override;
  size_t replicas(const std::string& model) const override;
  Result<std::vector<UserDigest>> digests(const std::string& model, size_t& place, size_t count) override;
  Result<UserDigest> digest(const std::string& model, uint64_t user) override;
  WireBytes facts(const std::string& model) override;
  Result<Exported> exported(const std::string& model, uint64_t pass,
                            const std::function<bool(uint64_t user)>& is_wanted) override;
  Result<WireBytes> copy(const std::string& model, uint64_t user) override;
  void merge(const std::string& model, std::span<const std::byte> copy, std::function<void(HomeOutcome)> done) override;
  void drop(const std::string& model, const UserDigest& digest, std::function<void()> done) override;
  void execute(const ShardCall& call, std::function<void(Executed)> done) override;

  PersonalModels& models_;
  HomeLinks& links_;
  const std::function<TimePoint()> now_;
  std::vector<std::pair<std::string, size_t>> served_;  // models and their replicas
  // On the loop's thread, by model.
  std::map<std::string, PersonalModel::UserPass> handed_over_;
  std::map<std::string, std::pair<uint64_t, PersonalModel::UserPass>> exports_;  // with the number of the pass
  uint64_t last_export_ = 0;
  std::atomic<bool> draining_{false};
  Mutex mutex_;
  Condition answered_;
  uint64_t in_flight_ GUARDED_BY(mutex_) = 0;  // calls of clients
  UserShards shards_;
};

}  // namespace foliot

#endif  // FOLIOT_NODE_SERVER_SHARED_PERSONAL_H_
